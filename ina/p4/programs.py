"""The compiled programs that ship with ina, and the manifest that ties them to their sources.

Users of ina need no P4 compiler: ``compiled/`` holds p4c's BMv2 JSON and P4Info for each build of
each mode's program, packed (:mod:`ina.p4.packed`), and ``manifest.json`` the hash of the sources
that they were made from. A test fails when they differ.
"""

from __future__ import annotations

import functools
import hashlib
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ina.p4 import names
from ina.p4.builds import all_builds, builds_of, listed
from ina.p4.errors import UnknownBuildError
from ina.p4.packed import SUFFIX, unpacked, write_packed

_log = logging.getLogger(__name__)

P4_DIR = Path(__file__).resolve().parent
COMPILED_DIR = P4_DIR / "compiled"
MANIFEST = COMPILED_DIR / "manifest.json"


@dataclass(frozen=True)
class CompiledProgram:
    """A program as a P4Runtime client sets it: two plain files, and the hash of their sources."""

    p4info: Path  # text protobuf
    bmv2_json: Path
    source_sha256: str  # of every source file and the build's defines, in hex


def program_source(mode: str) -> Path:
    """Return the top file of a mode's program."""
    return P4_DIR / "v1model" / f"{mode}.p4"


def build_name(values: int, mode: str = names.DEFAULT_MODE) -> str:
    """Return the file stem of the build of a mode's program with `values` values a packet."""
    return f"{mode}_v1model_{values}"


def build_defines(values: int) -> dict[str, str]:
    """Return the preprocessor definitions of the build with `values` values a packet."""
    return {"VALUES_PER_PACKET": str(values)}


def source_files() -> list[Path]:
    """Return the P4 files that the programs are made of, in a fixed order."""
    return sorted([*P4_DIR.glob("shared/*.p4"), *P4_DIR.glob("v1model/*.p4")])


def source_sha256(defines: Mapping[str, str]) -> str:
    """Return the hash, in hex, of all P4 sources (names and contents) and a build's defines."""
    digest = hashlib.sha256()
    for name, value in sorted(defines.items()):
        digest.update(f"{name}={value}\0".encode())
    for path in source_files():
        content = path.read_bytes()
        relative = path.relative_to(P4_DIR).as_posix()
        digest.update(f"{relative}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


def tree_sha256(directory: Path) -> str:
    """Return the hash, in hex, of the P4 files in `directory` and in ``shared/``."""
    digest = hashlib.sha256()
    for path in sorted([*directory.glob("*.p4"), *P4_DIR.glob("shared/*.p4")]):
        content = path.read_bytes()
        digest.update(f"{path.parent.name}/{path.name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


def compiled(values: int, mode: str = names.DEFAULT_MODE) -> CompiledProgram:
    """Return the checked-in build of a mode's program with `values` int32 values a packet.

    Its files lie unpacked in the cache, beside each other.

    Raises:
        UnknownBuildError: there is no such build.
    """
    if mode not in names.MODES:
        raise UnknownBuildError(f"no program of mode {mode!r}: have {' and '.join(names.MODES)}")
    if values not in builds_of(mode):
        raise UnknownBuildError(
            f"no compiled program with {values} values a packet:"
            f" have {listed('and', builds_of(mode))}"
        )
    name = build_name(values, mode)
    manifest = json.loads(MANIFEST.read_text())
    _warn_if_changed(name, manifest["builds"][name]["source_sha256"], values)
    bmv2_json, p4info = unpacked(packed_files(name))
    return CompiledProgram(p4info, bmv2_json, manifest["builds"][name]["source_sha256"])


def packed_files(name: str) -> tuple[Path, Path]:
    """Return the BMv2 JSON and the P4Info of a build, as they ship."""
    ends = (".json", ".p4info.txtpb")
    return tuple(COMPILED_DIR / f"{name}{end}{SUFFIX}" for end in ends)  # type: ignore[return-value]


@functools.cache
def _warn_if_changed(name: str, source_sha256_then: str, values: int) -> None:
    """Once a process, for who edits a program and runs what it was before."""
    if source_sha256(build_defines(values)) != source_sha256_then:
        _log.warning(
            "%s was compiled from other P4 sources than those in %s; what runs is the old program;"
            " ina p4 compile renews it",
            *(name, P4_DIR),
        )


def write_compiled(folder: Path, p4c_version: str) -> None:
    """Pack every build that `p4c_version` made in `folder` of the sources as they are.

    The manifest has the hashes of the files before they are packed.

    Raises:
        OSError: ``compiled/`` cannot be written.
    """
    builds = {}
    for mode, values in all_builds():
        name = build_name(values, mode)
        packed = packed_files(name)
        contents = [(folder / path.name.removesuffix(SUFFIX)).read_bytes() for path in packed]
        for path, content in zip(packed, contents, strict=True):
            write_packed(path, content)
        json_sha256, p4info_sha256 = (hashlib.sha256(content).hexdigest() for content in contents)
        builds[name] = {
            "source_sha256": source_sha256(build_defines(values)),
            "json_sha256": json_sha256,
            "p4info_sha256": p4info_sha256,
        }
    MANIFEST.write_text(json.dumps({"p4c_version": p4c_version, "builds": builds}, indent=2) + "\n")
