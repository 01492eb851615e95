"""Runs tests with the native extension, and the programs the soft switch compiles, under
AddressSanitizer and UndefinedBehaviorSanitizer: ``make test-sanitized``.

The environment stays as it is. What is built so is in ``build/sanitized``; a finder that Python
imports at its start puts it in the extension's place, in every process that a test starts. Every
report is kept in a file, so none is lost with the output of a process that nobody looks at.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
BUILD = ROOT / "build" / "sanitized"
REPORTS = BUILD / "reports"
TESTS = (
    *("tests/fuzz", "tests/host", "tests/switch", "tests/congestion", "tests/embed", "tests/infer"),
    *("tests/conformance/test_cases.py", "tests/conformance/test_differential.py"),
)
# Random programs compile by the hundred, without sanitizers: under them they pass their time limit.
_PLAIN = tuple(f"--ignore=tests/fuzz/test_programs{name}.py" for name in ("", "_on_bmv2"))
SHORT = (
    *_PLAIN,
    *("tests/fuzz", "tests/congestion"),
    *("tests/host/test_worker_core.py", "tests/host/test_shm_frames.py"),
    *("tests/host/test_blocks_kernels.py", "tests/host/test_word_sum.py"),
    *("tests/host/test_packed.py", "tests/host/test_stream.py"),
    *("tests/switch/ports/test_shm.py", "tests/embed", "tests/infer/test_world.py"),
)
_SANITIZE = (
    "-O1 -g1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=undefined"
)
_FINDER = """\
# Puts the sanitized extension in the place of the usual one; tools/sanitized.py wrote this.
import importlib.machinery
import importlib.util
import sys


class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != "ina._native":
            return None
        return importlib.util.spec_from_file_location(name, {extension!r})


sys.meta_path.insert(0, Finder)
"""
_COMPILER = """\
#!/bin/sh
# The soft switch's compiler, with sanitizers. A cached program's name has what --version says.
case "$*" in
--version) cc --version && echo "with sanitizers" ;;
*) exec cc "$@" {flags} ;;
esac
"""


def build() -> None:
    """Only what has changed is compiled."""
    nanobind = subprocess.check_output([sys.executable, "-m", "nanobind", "--cmake_dir"], text=True)
    configure = [
        *("cmake", "-S", str(ROOT), "-B", str(BUILD), "-G", "Ninja", "-DINA_SANITIZE=ON"),
        *("-DCMAKE_BUILD_TYPE=None", f"-Dnanobind_DIR={nanobind.strip()}"),
        f"-DPython_EXECUTABLE={sys.executable}",
    ]
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    for command in (configure, ["cmake", "--build", str(BUILD)]):
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=1800, check=False
        )
        if done.returncode:
            sys.exit(f"error: {command[1]} failed:\n{(done.stdout + done.stderr)[-4000:]}")


def environment() -> dict[str, str]:
    """For pytest, and all that it starts."""
    found = {
        name: subprocess.check_output(["cc", f"-print-file-name={name}"], text=True).strip()
        for name in ("libasan.so", "libstdc++.so")
    }
    for name, path in found.items():
        if not Path(path).is_absolute():
            sys.exit(f"error: the C compiler has no {name}: apt install gcc")
    start, compiler = BUILD / "start", BUILD / "cc"
    start.mkdir(exist_ok=True)
    (extension,) = BUILD.glob("_native*.so")
    (start / "sitecustomize.py").write_text(_FINDER.format(extension=str(extension)))
    compiler.write_text(_COMPILER.format(flags=_SANITIZE))
    compiler.chmod(0o755)
    options = [
        # Python keeps what it has to its end, on purpose.
        "detect_leaks=0",
        # cc and others that tests start are preloaded with the runtime as well.
        "verify_asan_link_order=0",
        "print_stacktrace=1",
        f"log_path={REPORTS}/report",
    ]
    return {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "LD_PRELOAD": " ".join(str(Path(path).resolve()) for path in found.values()),
        "PYTHONPATH": f"{start}:{ROOT}",
        "INA_CC": str(compiler),
        "XDG_CACHE_HOME": str(BUILD / "cache"),  # of compiled programs
        "INA_SANITIZED": "1",
        "ASAN_OPTIONS": ":".join(options),
        "UBSAN_OPTIONS": ":".join(options),
    }


def compile_programs() -> None:
    """The pool program's builds, before tests load them with deadlines: it takes far longer so."""
    code = (
        "from ina.p4 import compiled\n"
        "from ina.protocol.spec import VALUES_PER_PACKET_BUILDS\n"
        "from ina.switch.targets import default_target\n"
        "for values in VALUES_PER_PACKET_BUILDS:\n"
        "    default_target().read_and_build(compiled(values).bmv2_json)\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment(), check=True)


def main() -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(prog="make test-sanitized", description=__doc__.split(":")[0])
    parser.add_argument("--short", action="store_true", help="what CI runs: a minute or so")
    asked, more = parser.parse_known_args()
    build()
    shutil.rmtree(REPORTS, ignore_errors=True)
    REPORTS.mkdir(parents=True)
    tests = SHORT if asked.short else TESTS
    if not asked.short:
        compile_programs()
    pytest = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "2"]
    command = [*pytest, *tests, *more]
    ended = subprocess.run(command, cwd=ROOT, env=environment(), check=False).returncode
    reports = sorted(REPORTS.iterdir())
    for report in reports:
        print(f"--- {report}\n{report.read_text(errors='replace')[:4000]}")
    print(f"sanitizers: {len(reports)} reports")
    return ended or (1 if reports else 0)


if __name__ == "__main__":
    sys.exit(main())
