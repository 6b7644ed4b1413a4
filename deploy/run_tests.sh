#!/usr/bin/env bash
# Runs all tests, or those that the arguments name. All of them run as two processes at once, so that
# two cores are used: the laws, which compute for long, at a lower priority, beside what starts
# programs and waits for them (these are built meanwhile) and then the quick ones. Coverage is of all.
set -uo pipefail
cd "$(dirname "$0")/.."
BIN=.venv/bin
LAWS=(tests/property tests/acceptance)
WAITING=(tests/contract tests/integration tests/browser tests/cluster)
QUICK=(tests/unit tests/architecture)

if [ $# -gt 0 ]; then
    deploy/setup.sh cluster || exit 1
    exec "$BIN/pytest" "$@"
fi

missing=$(comm -23 <(ls -d tests/*/ | sed 's,/$,,' | grep -v __pycache__ | sort) \
    <(printf '%s\n' "${LAWS[@]}" "${WAITING[@]}" "${QUICK[@]}" tests/support | sort))
[ -z "$missing" ] || { echo "error: no process runs $missing" >&2; exit 1; }

run() {
    local name=$1; shift
    COVERAGE_FILE=.coverage.$name "$BIN/pytest" --cov --cov-report= --cov-fail-under=0 "$@"
}

rm -f .coverage .coverage.laws .coverage.waiting .coverage.quick
log=$(mktemp)
(renice -n 10 -p "$BASHPID" >/dev/null; run laws "${LAWS[@]}") >"$log" 2>&1 &
laws=$!
trap 'kill "$laws" 2>/dev/null; rm -f "$log"' EXIT
deploy/setup.sh cluster || exit 1
failed=0
run waiting "${WAITING[@]}" || failed=1
run quick "${QUICK[@]}" || failed=1
wait "$laws" || failed=1
cat "$log"
"$BIN/coverage" combine -q .coverage.laws .coverage.waiting .coverage.quick || exit 1
"$BIN/coverage" report --skip-covered || failed=1
exit "$failed"
