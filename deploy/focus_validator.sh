#!/usr/bin/env bash
# Brings the validator of the FinOps specification (FOCUS) for the tests of the export.
#   deploy/focus_validator.sh          installs it, once; says why where it cannot be had, and exits 0
#   deploy/focus_validator.sh --where  prints the folder it is in, or nothing
# It lands in ${XDG_CACHE_HOME:-~/.cache}/steward/focus-validator/<hash of what is pinned>/, outside the tree, since
# it needs another Python and other libraries than Steward. A killed install leaves nothing that counts.
set -euo pipefail
cd "$(dirname "$0")/.."
pins=deploy/focus-validator.txt
home="${XDG_CACHE_HOME:-$HOME/.cache}/steward/focus-validator/$(sha256sum "$pins" | cut -c1-16)"

say() { printf '%s\n' "$*" >&2; }

is_new_enough() {
    "$1" -c 'import sys; sys.exit(not (3, 12) <= sys.version_info < (3, 14))' 2>/dev/null
}

python_found() {
    local candidate
    for candidate in python3.12 python3.13 python3 "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.1[23].*/bin/python; do
        if candidate=$(command -v "$candidate") && is_new_enough "$candidate"; then
            # A shim answers only in folders that chose its version.
            "$candidate" -c 'import sys; print(sys.executable)'
            return
        fi
    done
    if command -v uv >/dev/null && candidate=$(uv python find --no-python-downloads '>=3.12,<3.14' 2>/dev/null); then
        echo "$candidate"
        return
    fi
    return 1
}

install() {
    local python part="$home.part"
    if ! python=$(python_found); then
        say "SKIPPED: no Python 3.12 or 3.13 found, so the validator of the cost export cannot be installed"
        return
    fi
    say "setup: installing the validator of the cost export, once, in $home"
    rm -rf "$part"
    mkdir -p "$(dirname "$home")"
    if command -v uv >/dev/null; then
        uv venv -q --no-python-downloads --python "$python" "$part" && uv pip install -q --python "$part/bin/python" -r "$pins"
    else
        "$python" -m venv "$part" && "$part/bin/python" -m pip install -q --disable-pip-version-check -r "$pins"
    fi >&2 || { say "SKIPPED: the validator of the cost export cannot be installed here"; rm -rf "$part"; return; }
    mv "$part" "$home"
}

[ "${1:-}" != --where ] || { [ ! -x "$home/bin/python" ] || echo "$home"; exit 0; }
[ -x "$home/bin/python" ] || install
