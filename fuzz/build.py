"""Builds libFuzzer's program of the C++ doors, in build/fuzz."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

from fuzz.pipeline_setup import pipeline_setup, program_json
from ina.errors import MissingToolError
from ina.switch.emit_c.emit import emit_c
from ina.switch.ir import load_program
from ina.switch.passes.plan import make_plan

ROOT = Path(__file__).parent.parent
BUILD = ROOT / "build" / "fuzz"
PROGRAM = BUILD / "doors"
_TIMEOUT_S = 1800.0


def find_clang() -> tuple[str, str]:
    """Paths of a clang and its clang++ with libFuzzer, the newest; raises MissingToolError."""
    found = []
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        for path in Path(folder).glob("clang++*") if folder else ():
            version = re.fullmatch(r"clang\+\+(?:-(\d+))?", path.name)
            clang = path.with_name(path.name.replace("++", ""))
            if version and shutil.which(clang) and _has_libfuzzer(path):
                found.append((int(version[1] or 0), str(clang), str(path)))
    if not found:
        raise MissingToolError(
            "no clang++ with libFuzzer: apt install clang-14 libclang-rt-14-dev, or newer ones"
        )
    _, clang_path, cxx = max(found)
    return clang_path, cxx


def _has_libfuzzer(cxx: Path) -> bool:
    """Debian has it in a package of its own. A name without folders: it was not found."""
    libraries = (f"libclang_rt.fuzzer-{platform.machine()}.a", "libclang_rt.fuzzer.a")
    asked = [[str(cxx), f"-print-file-name={library}"] for library in libraries]
    return any(
        "/" in subprocess.run(one, capture_output=True, text=True, timeout=60, check=False).stdout
        for one in asked
    )


def build() -> Path:
    """The program's path; only what has changed is compiled. Raises MissingToolError."""
    clang, cxx = find_clang()
    BUILD.mkdir(parents=True, exist_ok=True)
    source, setup = BUILD / "pipeline.c", BUILD / "pipeline.setup"
    _write(source, emit_c(make_plan(load_program(program_json())), "fuzz").encode())
    _write(setup, pipeline_setup())
    tools = Path(sys.executable).parent  # cmake and ninja are in the environment
    environment = {**os.environ, "PATH": f"{tools}{os.pathsep}{os.environ.get('PATH', '')}"}
    for command in (
        [
            *("cmake", "-S", str(ROOT / "fuzz"), "-B", str(BUILD), "-G", "Ninja"),
            *(f"-DCMAKE_C_COMPILER={clang}", f"-DCMAKE_CXX_COMPILER={cxx}"),
            *(f"-DINA_PIPELINE_C={source}", f"-DINA_SETUP={setup}"),
        ],
        ["cmake", "--build", str(BUILD)],
    ):
        done = subprocess.run(
            command,
            env=environment,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
        if done.returncode:
            last = "\n".join((done.stdout + done.stderr).splitlines()[-30:])
            raise MissingToolError(f"{' '.join(command[:2])} failed:\n{last}")
    return PROGRAM


def _write(path: Path, content: bytes) -> None:
    """Touches the file only where it changes: what is made of it is made again then."""
    if not path.exists() or path.read_bytes() != content:
        path.write_bytes(content)


if __name__ == "__main__":
    print(build())
