#!/usr/bin/env bash
# Runs all tests, or those that the arguments name. All of them run as two processes at once, so that
# two cores are used: what only computes, at a lower priority, beside what starts programs and waits
# for them, whose programs are also built meanwhile. Coverage is of both together.
set -uo pipefail
cd "$(dirname "$0")/.."
BIN=.venv/bin
COMPUTING=(tests/unit tests/property tests/acceptance tests/architecture)
WAITING=(tests/contract tests/integration tests/browser tests/cluster)

if [ $# -gt 0 ]; then
    deploy/setup.sh cluster || exit 1
    exec "$BIN/pytest" "$@"
fi

missing=$(comm -23 <(ls -d tests/*/ | sed 's,/$,,' | grep -v __pycache__ | sort) \
    <(printf '%s\n' "${COMPUTING[@]}" "${WAITING[@]}" tests/support | sort))
[ -z "$missing" ] || { echo "error: no process runs $missing" >&2; exit 1; }

rm -f .coverage .coverage.computing .coverage.waiting
log=$(mktemp)
first=
trap 'kill "$first" 2>/dev/null; rm -f "$log"' EXIT
COVERAGE_FILE=.coverage.computing nice -n 10 \
    "$BIN/pytest" --cov --cov-report= --cov-fail-under=0 "${COMPUTING[@]}" >"$log" 2>&1 &
first=$!
deploy/setup.sh cluster || exit 1
COVERAGE_FILE=.coverage.waiting \
    "$BIN/pytest" --cov --cov-report= --cov-fail-under=0 "${WAITING[@]}"
waiting=$?
wait "$first"
computing=$?
cat "$log"
"$BIN/coverage" combine -q .coverage.computing .coverage.waiting || exit 1
"$BIN/coverage" report --skip-covered
covered=$?
[ "$waiting" = 0 ] && [ "$computing" = 0 ] && [ "$covered" = 0 ]
