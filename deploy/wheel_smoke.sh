#!/usr/bin/env bash
# Builds the wheel, installs it in an empty environment elsewhere, runs the main job there.
set -euo pipefail
cd "$(dirname "$0")/.."
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
make wheel
wheel=$(echo "$PWD"/dist/*.whl)
python=$(.venv/bin/python -c 'import sys; print(sys._base_executable)')
"$python" -m venv "$place/venv"
grep -E '^[a-z]' requirements.lock | sed -E 's/ *\\$//' >"$place/constraints.txt"
"$place/venv/bin/python" -m pip install -q --disable-pip-version-check -c "$place/constraints.txt" "$wheel"
cd "$place"
export STEWARD_DATA_DIR="$place/data"
venv/bin/steward --version
venv/bin/steward demo --exit
venv/bin/steward sql "select count(*) as sample_count from device_sample"
echo "wheel smoke passed"
