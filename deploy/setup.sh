#!/usr/bin/env bash
# Sets up what the Makefile needs, on Debian or Ubuntu with Python >= 3.11, root or not.
#   deploy/setup.sh venv      .venv with exactly the locked packages and this project, editable
# What only tests need; what cannot be had is skipped aloud:
#   deploy/setup.sh browser     Chromium and CJK fonts for the browser tests
#   deploy/setup.sh compiler    a C compiler, which builds the stand-in for the GPU driver's library
#   deploy/setup.sh prometheus  Prometheus and promtool; no service of the system is left running
#   deploy/setup.sh cluster     the programs of the test cluster, built from their Go modules
#   deploy/setup.sh focus       the validator of the cost export, in an environment of its own
set -euo pipefail
cd "$(dirname "$0")/.."
export UV_PYTHON_DOWNLOADS=never

say() { printf '%s\n' "$*" >&2; }

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"
    elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then sudo -n "$@"
    else return 1; fi
}

apt_install() {
    command -v apt-get >/dev/null || return 1
    as_root apt-get update -qq >&2 || return 1
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >&2
}

python_found() {
    for candidate in python3 python3.13 python3.12 python3.11; do
        if command -v "$candidate" >/dev/null &&
            "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$candidate"; return
        fi
    done
    say "error: no Python >= 3.11 found"; say "hint: install it, for example: apt-get install python3"; exit 1
}

# uv comes from PATH, else from PyPI into a folder of its own, with pip where there is one.
uv_found() {
    if command -v uv >/dev/null; then command -v uv; return; fi
    local home="${XDG_CACHE_HOME:-$HOME/.cache}/steward/uv" python
    if [ ! -x "$home/bin/uv" ]; then
        python=$(python_found)
        say "setup: fetching uv"
        if "$python" -m venv "$home" >/dev/null 2>&1 || { apt_install python3-venv && "$python" -m venv --clear "$home"; }; then
            "$home/bin/python" -m pip install -q --disable-pip-version-check uv >&2
        elif "$python" -m pip --version >/dev/null 2>&1; then
            "$python" -m pip install -q --disable-pip-version-check --target "$home" uv >&2
        else
            say "error: neither venv nor pip is available for $python"
            say "hint: apt-get install python3-venv, then run again"; exit 1
        fi
    fi
    echo "$home/bin/uv"
}

make_venv() {
    local uv stamp
    stamp=".venv/.installed-$(cat requirements.lock pyproject.toml | sha256sum | cut -c1-16)"
    [ -e "$stamp" ] && return
    uv=$(uv_found)
    [ -x .venv/bin/python ] || "$uv" venv -q --python "$(python_found)" .venv
    say "setup: installing the locked packages into .venv"
    "$uv" pip sync -q --python .venv/bin/python --require-hashes requirements.lock
    "$uv" pip install -q --python .venv/bin/python --no-deps -e .
    rm -f .venv/.installed-*
    touch "$stamp"
}

get_browser() {
    command -v chromium >/dev/null && return
    say "setup: installing Chromium for the browser tests"
    apt_install chromium fonts-noto-cjk || say "SKIPPED: Chromium cannot be installed here, so the browser tests will be skipped"
}

get_compiler() {
    command -v gcc >/dev/null && return
    say "setup: installing gcc for the tests of the GPU driver's library"
    apt_install gcc libc6-dev || say "SKIPPED: gcc cannot be installed here, so the tests of the GPU driver's library will be skipped"
}

# The package would start and enable a server of its own: a policy file forbids the start.
install_prometheus() {
    local policy=/usr/sbin/policy-rc.d rc=0 wrote=
    if [ ! -e "$policy" ]; then
        printf '#!/bin/sh\nexit 101\n' | as_root tee "$policy" >/dev/null && as_root chmod +x "$policy" || return 1
        wrote=yes
    fi
    apt_install prometheus || rc=$?
    [ -z "$wrote" ] || as_root rm -f "$policy"
    if [ "$rc" = 0 ] && [ -d /run/systemd/system ]; then as_root systemctl disable --quiet --now prometheus || rc=$?; fi
    return "$rc"
}

get_prometheus() {
    command -v prometheus >/dev/null && command -v promtool >/dev/null && return
    say "setup: installing Prometheus for the tests beside a real server"
    install_prometheus || say "SKIPPED: Prometheus cannot be installed here, so the tests beside it will be skipped"
}

get_cluster() {
    local tool
    for tool in openssl flock; do
        command -v "$tool" >/dev/null || apt_install openssl util-linux || break
    done
    deploy/cluster_binaries.sh etcd kubernetes kwok kueue jobset kuberay training ||
        say "SKIPPED: the programs of the test cluster cannot be built here, so the cluster tests will be skipped"
}

case "${1:-}" in
    venv) make_venv ;;
    browser) get_browser ;;
    compiler) get_compiler ;;
    prometheus) get_prometheus ;;
    cluster) get_cluster ;;
    focus) deploy/focus_validator.sh ;;
    *) say "usage: deploy/setup.sh venv|browser|compiler|prometheus|cluster|focus"; exit 2 ;;
esac
