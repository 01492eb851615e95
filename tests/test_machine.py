"""tools/machine.sh: installs what is missing where it can, else names it in one line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SCRIPT = ROOT / "tools" / "machine.sh"


@pytest.fixture
def bare_path(tmp_path: Path) -> Path:
    """A PATH with nothing but a user who is not root."""
    return stub(tmp_path, "id", "echo 1000").parent


def stub(directory: Path, name: str, body: str) -> Path:
    path = directory / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def machine(path: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/sh", SCRIPT, *args], env={"PATH": str(path)}, capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip


def test_without_a_compiler_and_without_root_the_package_is_named(bare_path: Path) -> None:
    result = machine(bare_path, "build", sys.executable)
    assert result.returncode == 2
    assert len(result.stderr.splitlines()) == 1
    assert "apt-get install g++" in result.stderr


def test_without_python_it_says_so(bare_path: Path) -> None:
    result = machine(bare_path, "build", "python3")
    assert result.returncode == 2
    assert result.stderr.startswith("error: no python3")


def test_root_installs_what_is_missing(bare_path: Path) -> None:
    stub(bare_path, "id", "echo 0")
    stub(bare_path, "apt-get", f'echo "$@" > {bare_path}/asked')
    result = machine(bare_path, "build", sys.executable)
    assert result.returncode == 0, result.stderr
    assert "install -y --no-install-recommends g++" in (bare_path / "asked").read_text()


def test_a_failed_installation_is_no_success(bare_path: Path) -> None:
    stub(bare_path, "id", "echo 0")
    stub(bare_path, "apt-get", "exit 100")
    result = machine(bare_path, "build", sys.executable)
    assert result.returncode == 2
    assert "error: this machine lacks: g++" in result.stderr


def test_tools_of_tests_are_optional(bare_path: Path) -> None:
    result = machine(bare_path, "test")
    assert result.returncode == 0
    wanted = "tshark iproute2 clang libbpf1 postgresql"
    assert result.stdout == f"note: tests that need {wanted} will be skipped\n"


def test_without_a_cross_compiler_and_qemu_arm_names_them(bare_path: Path) -> None:
    stub(bare_path, "mmdebstrap", "")
    result = machine(bare_path, "arm")
    assert (result.returncode, len(result.stderr.splitlines())) == (2, 1)
    assert "apt-get install g++-aarch64-linux-gnu qemu-user" in result.stderr
    for name in ("aarch64-linux-gnu-g++", "qemu-aarch64-static"):  # of qemu-user-static
        stub(bare_path, name, "")
    assert "qemu-user" not in machine(bare_path, "arm").stderr


def test_on_arm_itself_there_is_nothing_to_emulate(tmp_path: Path) -> None:
    stub(tmp_path, "uname", "echo aarch64")
    path = f"{tmp_path}:{os.environ['PATH']}"
    result = subprocess.run(
        [ROOT / "tools/arm.sh", "test", sys.executable], env={"PATH": path, "HOME": str(tmp_path)},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == "error: this machine is 64-bit ARM itself: make wheel, make test\n"


def test_nothing_is_said_when_nothing_is_missing(bare_path: Path) -> None:
    stub(bare_path, "c++", "")
    result = machine(bare_path, "build", sys.executable)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_mininet_without_root_is_refused(bare_path: Path) -> None:
    result = machine(bare_path, "bmv2")
    assert result.returncode == 2
    assert "needs root" in result.stderr


def test_without_bmv2_mininet_is_installed_and_the_soft_switch_named(bare_path: Path) -> None:
    stub(bare_path, "id", "echo 0")
    stub(bare_path, "apt-get", f'echo "$@" > {bare_path}/asked')
    result = machine(bare_path, "bmv2")
    assert result.returncode == 0, result.stderr
    notes = [line for line in result.stdout.splitlines() if line.startswith("note:")]
    assert ["simple_switch_grpc" in notes[0], "soft switch" in notes[0]] == [True, True]
    assert "p4c-bm2-ss" in notes[1]
    assert (
        " mininet net-tools iproute2 iperf3 ethtool nftables" in (bare_path / "asked").read_text()
    )


def test_a_module_that_moved_makes_make_install_again(tmp_path: Path) -> None:
    """The list of modules is older than what depends on it unless there is another one."""
    (tmp_path / ".tools").touch()
    modules = tmp_path / ".modules"

    def look() -> str:
        command = ["make", f"VENV={tmp_path}", "-o", f"{tmp_path}/.tools", str(modules)]
        subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=60)
        return modules.read_text()

    listed = look()
    assert "ina/cli/main.py\n" in listed
    assert "native/module.cpp\n" in listed  # compiled files that are gone count, too
    os.utime(modules, (1, 1))
    assert look() == listed
    assert modules.stat().st_mtime == 1
    for gone in ("ina/cli/main.py", "native/module.cpp"):
        modules.write_text(listed.replace(f"{gone}\n", "moved\n"))
        os.utime(modules, (1, 1))
        assert look() == listed
        assert modules.stat().st_mtime > 1


def test_a_clang_without_libfuzzer_is_not_enough(bare_path: Path) -> None:
    """It prints the name of a library that it does not find without a folder."""
    stub(bare_path, "uname", "echo x86_64")
    stub(bare_path, "clang++-14", 'echo "${1#-print-file-name=}"')
    result = machine(bare_path, "fuzz")
    assert result.returncode == 2
    assert "apt-get install clang-14 libclang-rt-14-dev" in result.stderr
    stub(bare_path, "clang++-14", 'echo "/usr/lib/${1#-print-file-name=}"')
    assert machine(bare_path, "fuzz").returncode == 0
