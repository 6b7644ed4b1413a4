"""``steward completion``: scripts for bash, zsh and fish, and the words they ask for.

The scripts hold no list of words: they ask ``steward completion --words …`` each time, so that they
stay right when commands or flags change.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

from steward.catalogue import load_command, offers
from steward.command import Command, Context
from steward.errors import StewardError, UsageError
from steward.output import write_output
from steward.parser import actions, command_parser, is_shown, nested_parsers

BASH = """\
_steward() {
  local line
  COMPREPLY=()
  while IFS= read -r line; do
    COMPREPLY+=("$line")
  done < <(steward completion --words "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o bashdefault -o default -F _steward steward
"""
ZSH = """\
#compdef steward
_steward() {
  local -a found
  found=("${(@f)$(steward completion --words "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ -n "${found[1]}" ]]; then
    compadd -- "${found[@]}"
  else
    _files
  fi
}
compdef _steward steward
"""
FISH = """\
function __steward_words
  set --local before (commandline --tokenize --cut-at-cursor --current-process)
  set --local current (commandline --current-token --cut-at-cursor)
  steward completion --words $before[2..] "$current" 2>/dev/null
end
complete --command steward --arguments "(__steward_words)"
"""
SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}
OPTIONS = ("--help", "--version")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the shell's name and the hidden question that the scripts ask."""
    parser.epilog = 'bash: eval "$(steward completion bash)"   (the same for zsh; fish: | source)'
    parser.add_argument("shell", nargs="?", choices=sorted(SCRIPTS), help="print its script")
    parser.add_argument("--words", nargs=argparse.REMAINDER, default=None, help=argparse.SUPPRESS)


def run(args: argparse.Namespace, _context: Context) -> int:
    """Print the shell's script, or the words that may follow."""
    if args.words is not None:
        write_output(None, "".join(f"{word}\n" for word in words(args.words)))
        return 0
    if args.shell is None:
        raise UsageError("which shell?", hint=f"name one of {', '.join(sorted(SCRIPTS))}")
    write_output(None, SCRIPTS[args.shell])
    return 0


def words(typed: Sequence[str]) -> list[str]:
    """Return what may stand in place of the last word typed, given those before it.

    Args:
        typed: the words after ``steward``; the last one is being typed and may be empty.

    Returns:
        Commands, actions, flags or choices, in order of name; empty where a path or free text is
        meant, or the command cannot be loaded.
    """
    *before, current = typed or [""]
    if not before:
        candidates: Sequence[str] = [*offers(), *OPTIONS]
    else:
        candidates = list(_candidates(before, current))
    return sorted({each for each in candidates if each.startswith(current)})


def _candidates(before: Sequence[str], current: str) -> Iterator[str]:
    try:
        parser: argparse.ArgumentParser = command_parser(load_command(before[0]))
    except StewardError:
        return
    parser = _innermost(parser, before[1:])
    awaited = _awaiting(parser, before[-1])
    if awaited is not None:
        yield from map(str, awaited.choices or ())
    elif current.startswith("-"):
        yield from (flag for each in actions(parser) if is_shown(each) for flag in _flags(each))
    else:
        yield from _positional_words(parser)


def _innermost(parser: argparse.ArgumentParser, before: Sequence[str]) -> argparse.ArgumentParser:
    for word in before:
        parser = nested_parsers(parser).get(word, parser)
    return parser


def _awaiting(parser: argparse.ArgumentParser, last: str) -> argparse.Action | None:
    """Return the flag whose value is being typed, or None."""
    for action in actions(parser):
        if last in action.option_strings and action.nargs != 0:
            return action
    return None


def _positional_words(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in actions(parser):
        if not action.option_strings and action.choices is not None:
            yield from map(str, action.choices)


def _flags(action: argparse.Action) -> Iterator[str]:
    return (flag for flag in action.option_strings if flag.startswith("--"))


COMPLETION = Command(
    name="completion",
    summary="Print a shell's completion script: bash, zsh or fish",
    add_arguments=add_arguments,
    run=run,
    needs_settings=False,
)
