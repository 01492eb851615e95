"""pyproject.toml's lower bounds are true, constraints.txt keeps to its ranges, the wheel works.

One source distribution and, out of it, one wheel are built for all tests here: a minute or two of
a compiler, so the wheel is for ``make test-long``, and for CI, which runs this file so besides.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from importlib.metadata import distributions, requires, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import NormalizedName, canonicalize_name
from packaging.version import Version

import ina
from ina import files
from ina.rpc.generate import ROOT
from tests.deploy.containerfile import copied, script, stages, value
from tests.worlds.processes.machine import machine, ready_line, stop

DEBIAN_12 = "3.11.2"
"""The oldest Python that the pins are for; pip takes nothing that wants a newer one."""
BUILD_S = 900  # two cores that others may use
TRY_S = 600


def ours() -> dict[NormalizedName, Requirement]:
    """The installed ina's requirements, extras included, by name."""
    found = map(Requirement, requires("ina") or ())
    return {canonicalize_name(r.name): r for r in found if canonicalize_name(r.name) != "ina"}


def lower_bound(requirement: Requirement) -> Version:
    bounds = [Version(s.version) for s in requirement.specifier if s.operator == ">="]
    return max(bounds, default=Version("0"))


def pins() -> dict[NormalizedName, str]:
    """The versions of constraints.txt, by name."""
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    found = dict(line.split("==") for line in lines if not line.startswith("#"))
    return {canonicalize_name(name): version for name, version in found.items()}


def test_every_pin_is_within_our_bounds() -> None:
    pinned = pins()
    outside = [str(r) for name, r in ours().items()
               if name in pinned and not r.specifier.contains(pinned[name])]  # fmt: skip
    assert outside == []
    assert len(pinned.keys() & ours().keys()) > 15


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the pins are for Python 3.11")
def test_every_pin_installs_on_debian_12() -> None:
    pinned = pins()
    installed = [d for d in distributions() if pinned.get(canonicalize_name(d.name)) == d.version]
    assert len(installed) > 60
    wanted = {d.name: d.metadata["Requires-Python"] or "" for d in installed}
    too_new = {n: spec for n, spec in wanted.items() if DEBIAN_12 not in SpecifierSet(spec)}
    assert too_new == {}


@pytest.mark.parametrize("name", ["grpcio", "protobuf"])
def test_our_bound_is_not_below_finsys(name: str) -> None:
    theirs = {r.name: r for r in map(Requirement, requires("finsy") or ())}
    assert lower_bound(ours()[canonicalize_name(name)]) >= lower_bound(theirs[name])


def test_our_bounds_suffice_for_the_generated_code() -> None:
    grpc = (ROOT / "ina/rpc/controller_pb2_grpc.py").read_text()
    made_by = re.search(r"GRPC_GENERATED_VERSION = '(.+)'", grpc)
    assert made_by
    assert lower_bound(ours()[canonicalize_name("grpcio")]) >= Version(made_by[1])
    messages = (ROOT / "ina/rpc/controller_pb2.py").read_text()
    runtime = re.search(r"Protobuf Python Version: (\S+)", messages)
    assert runtime
    assert lower_bound(ours()[canonicalize_name("protobuf")]) >= Version(runtime[1])


def test_the_version_stands_in_one_place() -> None:
    assert version("ina") == ina.__version__, "make venv"
    project = (ROOT / "pyproject.toml").read_text().partition("[project]")[2].partition("\n[")[0]
    assert 'dynamic = ["version"]' in project
    assert re.search(r"^version\b", project, re.MULTILINE) is None
    # A release would leave it behind there. Other programs' versions may be the same number.
    for folder, pattern in (("deploy", f'"{ina.__version__}"'), ("docs", f"ina-{ina.__version__}")):
        listing = done("git", "ls-files", "-z", folder)
        texts = [ROOT / name for name in listing.split("\0") if name]
        assert [path for path in texts if pattern in path.read_text()] == []


def done(*command: str | Path, cwd: Path = ROOT, **environ: str) -> str:
    """Standard output of a command that must succeed."""
    ran = subprocess.run(
        [*command], cwd=cwd, env={**os.environ, **environ}, text=True, capture_output=True
    )
    assert ran.returncode == 0, f"{command}: {ran.stdout}{ran.stderr}"
    return ran.stdout


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sdist")
    code = "import sys; from scikit_build_core.build import build_sdist; build_sdist(sys.argv[1])"
    done(sys.executable, "-c", code, folder)
    (file,) = folder.iterdir()
    return file


@pytest.fixture(scope="module")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from the source distribution alone."""
    folder = tmp_path_factory.mktemp("wheel")
    compiler = {"CMAKE_CXX_COMPILER_LAUNCHER": "ccache"} if shutil.which("ccache") else {}
    done(
        *(sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "-w", folder),
        sdist, cwd=folder, PATH=f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        CCACHE_BASEDIR="/tmp", CCACHE_NOHASHDIR="1", **compiler,
    )  # fmt: skip
    (file,) = folder.iterdir()
    return file


def bare(folder: Path) -> Path:
    """An environment with the packages of this one, but without ina; its interpreter.

    A .pth file brings them, and does not bring this one's own .pth files, so not the editable ina.
    """
    done(sys.executable, "-m", "venv", "--without-pip", folder)
    python = folder / "bin" / "python"
    site = done(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    Path(site, "packages_of_the_tests.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    return python


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with the wheel."""
    python = bare(tmp_path_factory.mktemp("environment"))
    done(sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", wheel)
    return python


@pytest.mark.timeout(BUILD_S)
def test_the_sdist_has_all_that_is_built_and_shipped(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    listing = done("git", "ls-files", "-z", "native", "ina", "tools", "Makefile", "LICENSE")
    tracked = {name for name in listing.split("\0") if name and (ROOT / name).exists()}
    wanted = tracked | {str(path) for path in files.shipped()} | {"CMakeLists.txt", "LICENSE"}
    assert wanted - names == set()


@pytest.mark.long
@pytest.mark.timeout(BUILD_S)
def test_the_wheel_has_all_that_ships_and_only_its_own(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    shipped = {f"ina/_files/{path}" for path in files.shipped()}
    assert {name for name in names if name.startswith("ina/_files/")} == shipped
    assert any(name.startswith("ina/_native.") for name in names)
    assert any(name.endswith("licenses/LICENSE") for name in names)
    own = f"cp3{sys.version_info.minor}"
    assert ("cp312-abi3" if sys.version_info >= (3, 12) else f"{own}-{own}") in wheel.name
    tops = {name.partition("/")[0] for name in names}
    assert tops == {"ina", "ina_torch_autoload", f"ina-{ina.__version__}.dist-info"}


@pytest.mark.long
@pytest.mark.timeout(BUILD_S + TRY_S)
def test_an_environment_with_only_the_wheel_does_it_all(installed: Path, tmp_path: Path) -> None:
    """Embedded job, switch and controller apart, conformance, doctor, ina files, a PyTorch job."""
    script = ROOT / "tools" / "try_install.py"
    said = done(sys.executable, script, installed, "--torch", cwd=tmp_path).splitlines()
    assert [line for line in said if not line.startswith("ok: ")] == []
    assert len(said) == 7
    assert f"ok: ina {ina.__version__}, {installed.parent.parent}" in said[0]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--python", "no-such-python"], "error: no-such-python does not run\n"),
        (["--demo", "3.9"], "error: no Python 3.9 to run the demo: have "),
        (["--python", "is-3.9"], "error: {folder}/is-3.9 is Python 3.9, not supported\n"),
        (["--python", "is-3.13", "--demo", "3.13"], "error: no wheel for Python 3.13, which runs"),
    ],
)
def test_a_release_says_what_it_lacks(options: list[str], said: str, tmp_path: Path) -> None:
    for fake in ("3.9", "3.13"):
        (tmp_path / f"is-{fake}").write_text(f"#!/bin/sh\necho {fake}\n")
        (tmp_path / f"is-{fake}").chmod(0o755)
    command = [sys.executable, "tools/release.py", "--dist", str(tmp_path / "dist"), *options]
    environ = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environ)
    assert (ran.returncode, ran.stdout) == (1, "")
    said = said.format(folder=tmp_path)
    assert ran.stderr.startswith(said)


def test_a_release_leaves_files_of_another_alone(tmp_path: Path) -> None:
    (tmp_path / "ina-0.0.1.tar.gz").write_text("")
    command = [sys.executable, "tools/release.py", "--dist", str(tmp_path)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (
        1, f"error: {tmp_path} is not empty: a release is built anew\n"
    )  # fmt: skip


CONTAINERFILE = ROOT / "deploy" / "container" / "Containerfile"


def below(names: list[str]) -> set[str]:
    """The files that these are, or that are in these folders."""
    paths = [path for name in names for path in [ROOT / name, *(ROOT / name).rglob("*")]]
    return {str(path.relative_to(ROOT)) for path in paths if path.is_file()}


def test_the_container_is_built_from_all_that_the_wheel_needs() -> None:
    build, _ = stages(CONTAINERFILE)
    assert [name for name in copied(build) if not (ROOT / name).exists()] == []
    listing = done("git", "ls-files", "-z", "native", "ina", "ina_torch_autoload")
    wanted = {name for name in listing.split("\0") if name and (ROOT / name).exists()}
    wanted |= {str(path) for path in files.shipped()}
    wanted |= {"pyproject.toml", "CMakeLists.txt", "README.md", "LICENSE"}
    assert wanted - below(copied(build)) == set()
    ignored = Path(f"{CONTAINERFILE}.dockerignore").read_text().splitlines()
    assert {line[1:] for line in ignored if line.startswith("!")} == set(copied(build))
    assert value(build, "RUN").split()[-3:] == ["--wheel-dir", "/wheels", "."]


@pytest.mark.long
@pytest.mark.timeout(BUILD_S + TRY_S)
def test_the_container_runs(wheel: Path, tmp_path: Path) -> None:
    """Its RUN steps, then what it starts, as its user: the controller and the soft switch."""
    _, stage = stages(CONTAINERFILE)
    environment, scratch = tmp_path / "environment", tmp_path / "scratch"
    scratch.mkdir()
    python = bare(environment)
    done(python, "-m", "ensurepip")
    (environment / "bin" / "pip").write_text(f'#!/bin/sh\nexec {python} -m pip "$@"\n')
    (environment / "bin" / "pip").chmod(0o755)
    words = [*json.loads(value(stage, "ENTRYPOINT")), *json.loads(value(stage, "CMD"))]
    text = script(stage, wheel, environment, scratch, " ".join(words))
    with machine(tmp_path) as host:
        process = host.start("sh", "-c", text, PIP_NO_INDEX="1")
        try:
            ready = ready_line(process)
        except AssertionError:
            if process.wait() == 77:
                pytest.skip("needs overlayfs")
            raise
        finally:
            stop(process)
    assert ready.startswith("ready: controller 127.0.0.1:17700")


FROM_AN_INDEX = re.compile(
    r"pip install (?:-\S+ )*['\"]?ina(?:\[[\w,]+\])?['\"]?(?=$|[\s`'\"),.;:])(?! @)", re.MULTILINE
)


def test_nobody_is_told_to_install_ina_from_an_index() -> None:
    """It is on none: advice names a package that is, or docs/install.md's ways."""
    assert FROM_AN_INDEX.search("needs PyTorch: pip install 'ina[torch]'")
    listing = done("git", "ls-files", "-z", "*.md", "ina/*.py", "*.toml", "Makefile")
    texts = {name: (ROOT / name).read_text() for name in listing.split("\0") if name}
    found = {name: FROM_AN_INDEX.findall(text) for name, text in texts.items()}
    assert {name: lines for name, lines in found.items() if lines} == {}
