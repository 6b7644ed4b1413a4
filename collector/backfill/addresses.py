"""The server's address as a person gives it, and the headers that go with each question."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from steward.errors import InputError, UsageError

_API_PATH: Final = re.compile(r"/+(api/v1(/.*)?|graph|query)?/*$")
_HEADER: Final = re.compile(r"(?P<name>[A-Za-z0-9!#$%&'*+.^_`|~-]+):[ \t]*(?P<value>[ -~]+)")
_HINT: Final = "for example --url http://prometheus:9090"


def server_url(text: str) -> str:
    """Return the one spelling of a server's address, without a slash at its end.

    Raises:
        UsageError: it is no address of an HTTP server, or carries credentials.
    """
    stated = text.strip()
    try:
        parts = urlsplit(stated if "://" in stated else f"http://{stated}")
        port, host = parts.port, parts.hostname
    except ValueError as error:
        raise UsageError(f"bad --url {text!r}: {error}", hint=_HINT) from error
    if parts.username is not None or parts.password is not None:
        raise UsageError(
            "--url carries credentials, which others see on the command line",
            hint="put an `Authorization: …` line into a file and name it with --headers-file",
        )
    if parts.scheme not in {"http", "https"} or not host or re.search(r"\s", stated):
        raise UsageError(f"bad --url {text!r}: no address of an HTTP server", hint=_HINT)
    name = f"[{host}]" if ":" in host else host
    place = name if port is None else f"{name}:{port}"
    return f"{parts.scheme}://{place}{_API_PATH.sub('', parts.path)}"


def headers_from(path: Path) -> dict[str, str]:
    """Return the headers written in a file, one ``Name: value`` a line; # starts a comment.

    Raises:
        InputError: the file cannot be read, or a line is no header; its value is never shown.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise InputError(
            f"cannot read {path}: {reason}", hint="name a readable file with --headers-file"
        ) from error
    headers: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        stated = line.strip()
        if not stated or stated.startswith("#"):
            continue
        found = _HEADER.fullmatch(stated)
        if found is None:
            raise InputError(
                f"{path}:{number}: not a header", hint="write `Authorization: Bearer …` a line"
            )
        headers[found["name"]] = found["value"]
    return headers
