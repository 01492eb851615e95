#!/bin/sh
# What ina needs from the machine itself. As root on Debian or Ubuntu it is installed; else it is named.
#   tools/machine.sh build PYTHON   C++ compiler, Python headers, venv: exit 2 where one stays missing
#   tools/machine.sh test           tools that some tests use; without them those tests skip
#   tools/machine.sh bmv2           Mininet and what its tests use: exit 2 where it cannot run; names
#                                   what only a build from source gives (BMv2, p4c)
#   tools/machine.sh arm            cross compiler, QEMU and what unpacks a Debian: exit 2 where one stays missing
#   tools/machine.sh fuzz           clang with libFuzzer and the sanitizers: exit 2 where it stays missing
set -eu
what=${1:?build, test, bmv2, arm or fuzz}
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
elif [ "$what" = bmv2 ]; then
    [ "$(id -u)" = 0 ] || {
        echo "error: Mininet makes network namespaces, so it needs root: sudo make test-bmv2" >&2
        exit 2
    }
    command -v simple_switch_grpc >/dev/null ||
        echo "note: no simple_switch_grpc (BMv2) on PATH: everything runs on the soft switch; docs/mininet.md says how to get it"
    command -v p4c-bm2-ss >/dev/null ||
        echo "note: no p4c-bm2-ss (p4c) on PATH: the switches run the compiled program that ships with ina"
    command -v mnexec >/dev/null || want mininet
    command -v ifconfig >/dev/null || want net-tools
    command -v ip >/dev/null || want iproute2
    for tool in iperf3 ethtool; do command -v $tool >/dev/null || want $tool; done
    command -v nft >/dev/null || want nftables
    command -v ping >/dev/null || want iputils-ping
elif [ "$what" = arm ]; then
    command -v aarch64-linux-gnu-g++ >/dev/null || want g++-aarch64-linux-gnu
    command -v qemu-aarch64 >/dev/null || command -v qemu-aarch64-static >/dev/null || want qemu-user
    command -v mmdebstrap >/dev/null || want mmdebstrap
    [ -e /usr/share/keyrings/debian-archive-keyring.gpg ] || want debian-archive-keyring
elif [ "$what" = fuzz ]; then
    # Debian's clang++ has its version in its name, and libFuzzer is in a package of its own. Newer
    # ones have the processor in the folder's name, not the file's.
    found=""
    IFS=:
    for folder in $PATH; do
        for compiler in "$folder"/clang++ "$folder"/clang++-[0-9]*; do
            [ -x "$compiler" ] || continue
            for library in "libclang_rt.fuzzer-$(uname -m).a" libclang_rt.fuzzer.a; do
                case $("$compiler" "-print-file-name=$library") in */*) found=$compiler ;; esac
            done
        done
    done
    unset IFS
    [ -n "$found" ] || { want clang-14; want libclang-rt-14-dev; }
else
    command -v tshark >/dev/null || want tshark
    command -v ip >/dev/null || want iproute2
    command -v clang >/dev/null || want clang # for BPF: device xdp
    ldconfig -p 2>/dev/null | grep -q 'libbpf\.so\.1 ' || want libbpf1
    # Debian has initdb not on PATH, but pg_ctlcluster.
    command -v pg_ctlcluster >/dev/null || command -v initdb >/dev/null || want postgresql
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
if [ "$what" != test ]; then
    echo "error: this machine lacks:$missing (Debian, Ubuntu: sudo apt-get install$missing)" >&2
    exit 2
fi
echo "note: tests that need$missing will be skipped"
