#!/bin/sh
# What ina needs from the machine itself. As root on Debian or Ubuntu it is installed; else it is named.
#   tools/machine.sh build PYTHON   C++ compiler, Python headers, venv: exit 2 where one stays missing
#   tools/machine.sh test           tools that some tests use; without them those tests skip
set -eu
what=${1:?build or test}
python=${2:-python3}

missing=""
want() { missing="$missing $1"; }

if [ "$what" = build ]; then
    command -v "$python" >/dev/null || { echo "error: no $python: install python3 (3.10 or newer)" >&2; exit 2; }
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' || {
        echo "error: $python is older than 3.10: say make PYTHON=python3.11" >&2
        exit 2
    }
    command -v "${CXX:-c++}" >/dev/null || want g++
    "$python" -c 'import ensurepip' 2>/dev/null || want python3-venv
    "$python" -c 'import os, sysconfig, sys; sys.exit(not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))' ||
        want python3-dev
else
    command -v tshark >/dev/null || want tshark
    command -v ip >/dev/null || want iproute2
fi
[ -n "$missing" ] || exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "installing with apt-get:$missing"
    export DEBIAN_FRONTEND=noninteractive
    # shellcheck disable=SC2086  # a list of package names
    { apt-get -qq install -y --no-install-recommends $missing ||
        { apt-get -qq update && apt-get -qq install -y --no-install-recommends $missing; }; } >/dev/null 2>&1 &&
        exit 0
    echo "apt-get could not install:$missing" >&2
fi
if [ "$what" = build ]; then
    echo "error: this machine lacks:$missing (Debian, Ubuntu: sudo apt-get install$missing)" >&2
    exit 2
fi
echo "note: tests that need$missing will be skipped"
