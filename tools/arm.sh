#!/bin/sh
# ina for 64-bit ARM, made and tried on a machine that is none: a cross compiler, and QEMU for programs.
#   tools/arm.sh wheel PYTHON          dist/ina-*-linux_aarch64.whl; PYTHON has what builds one
#   tools/arm.sh test PYTHON [ARGS]    that wheel, installed, and the tests below with it; ARGS: pytest's
# What is ARM's is in a cache, ~/.cache/ina-arm/SUITE, and not in this checkout: a Debian, unpacked and
# nothing more, and an environment of its Python. There `python` is QEMU that runs it, so whatever asks
# that Python for its platform builds for ARM. The compiler and CMake are this machine's own.
set -eu
cd "$(dirname "$0")/.."
what=${1:?wheel or test}
python=$(realpath -s "${2:?an interpreter}")
shift 2
suite=${SUITE:-bookworm} # Python 3.11; trixie's 3.13 makes the wheel for 3.12 and all later ones
cache=${XDG_CACHE_HOME:-$HOME/.cache}/ina-arm/$suite
debian=$cache/debian
environment=$cache/environment
compiler=$cache/compiler
processor=cortex-a72 # BlueField-2's; those of later ones run all that it runs

if [ "$(uname -m)" = aarch64 ]; then
    echo "error: this machine is 64-bit ARM itself: make wheel, make test" >&2
    exit 2
fi
tools/machine.sh arm

# Gives $cache a Debian, an environment and a compiler for the soft switch.
prepare() {
    echo "unpacking Debian $suite for arm64 below $cache"
    rm -rf "$cache"
    mkdir -p "$debian" "$environment/bin" "$compiler"
    mmdebstrap --quiet --mode=chrootless --variant=extract --arch=arm64 --include=base-files,python3-dev,libstdc++6 \
        "$suite" "$cache/debian.tar" http://deb.debian.org/debian
    tar -x -C "$debian" --no-same-owner --exclude='./dev/*' -f "$cache/debian.tar"
    rm "$cache/debian.tar"
    name=$(readlink "$debian/usr/bin/python3")
    mkdir -p "$environment/lib/$name/site-packages"
    echo "home = $debian/usr/bin" >"$environment/pyvenv.cfg"
    qemu=$(command -v qemu-aarch64 || command -v qemu-aarch64-static)
    cat >"$environment/bin/python" <<EOF
#!/bin/sh
exec $qemu -cpu $processor -L '$debian' -0 "\$0" '$debian/usr/bin/$name' "\$@"
EOF
    # To a cross compiler no processor is native.
    cat >"$compiler/cc" <<EOF
#!/bin/sh
for word; do
    shift
    [ "\$word" != -march=native ] || word=-mcpu=$processor
    set -- "\$@" "\$word"
done
exec aarch64-linux-gnu-gcc "\$@"
EOF
    chmod +x "$environment/bin/python" "$compiler/cc"
    pip install scikit-build-core nanobind
    touch "$cache/made"
}

# pip of this machine in the environment of the other.
pip() {
    pins=""
    [ "$suite" != bookworm ] || pins="-c constraints.txt" # resolved for its Python
    command=$1
    shift
    # shellcheck disable=SC2086  # two words or none
    "$python" -m pip --disable-pip-version-check --python "$environment/bin/python" "$command" --quiet $pins "$@"
}

# Leaves the wheel in $cache/wheel, too.
wheel() {
    rm -rf "$cache/wheel"
    # Python's headers for ARM come behind those that the cross compiler has itself.
    PATH="$(dirname "$python"):$PATH" CC=aarch64-linux-gnu-gcc CXX=aarch64-linux-gnu-g++ \
        SKBUILD_CMAKE_DEFINE="CMAKE_CXX_FLAGS=-idirafter $debian/usr/include" \
        pip wheel --no-build-isolation --no-deps -w "$cache/wheel" .
    mkdir -p dist
    cp "$cache"/wheel/*.whl dist
    echo "dist/$(cd "$cache/wheel" && ls)"
}

# Says what runs, and runs it: $1, options of pytest after it. 5: ARGS choose none of these.
tests() {
    echo "=== $1, on aarch64"
    shift
    (cd "$cache/run" && PATH="$compiler:$PATH" "$environment/bin/python" -m pytest -q "$@") || [ $? = 5 ] || failed=1
}

[ -e "$cache/made" ] || prepare
wheel
[ "$what" = test ] || exit 0

pip install --force-reinstall --no-deps "$cache"/wheel/*.whl # of the same version as the one before
pip install "$cache"/wheel/*.whl pytest pytest-timeout hypothesis scapy filelock
# Apart from the checkout, whose ina would be imported instead.
mkdir -p "$cache/run"
ln -sfn "$PWD/tests" "$PWD/pyproject.toml" "$cache/run"
failed=0
# Without virtual cables, of which QEMU does not pass all on to the kernel; the kernel as a switch skips.
tests "the P4 program: conformance cases, random packets" tests/conformance/test_cases.py tests/conformance/test_differential.py \
    --deselect "tests/conformance/test_cases.py::test_case[soft_veth" \
    --deselect "tests/conformance/test_differential.py::test_no_difference[soft_veth" "$@"
tests "kernels, NEON and generic, against NumPy" tests/host/test_quantize.py tests/host/test_packed.py \
    tests/host/test_sum_check.py tests/host/test_blocks_kernels.py "$@"
tests "WorkerCore in virtual networks" tests/host/test_worker_core.py tests/host/test_loss_recovery.py \
    tests/host/test_resends.py tests/host/test_reordering.py tests/host/test_results.py tests/host/test_shares.py \
    tests/host/test_timers.py tests/host/test_stream.py tests/host/test_trees.py "$@"
exit $failed
