"""The files that ship with ina beside its code: where they are, and copies of them for users.

In a checkout they stand where they are edited. A wheel has the same tree in ``ina/_files``, put
there by CMakeLists.txt; paths here are relative to either, as ``dashboards/alerts.yaml``.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from ina.errors import InvalidInputError, MissingToolError

_PACKAGE = Path(__file__).parent
_IN_WHEEL = _PACKAGE / "_files"


class FilesError(InvalidInputError):
    """Files cannot be put out there; the message names the path."""


@dataclass(frozen=True)
class Group:
    """Folders that are wanted together."""

    folders: tuple[str, ...]
    used_for: str


GROUPS = {
    "dashboards": Group(("dashboards",), "Grafana dashboard, Prometheus alerts"),
    "deploy": Group(("deploy",), "systemd units, container file, Slurm, Kubernetes"),
    "examples": Group(("examples",), "training scripts, emulated topologies, PTF tests"),
    # Tofino's program includes what it shares with v1model's by relative path.
    "p4": Group(
        ("tofino", "ina/p4/shared", "ina/p4/v1model"), "the P4 program, for v1model and Tofino"
    ),
    "wireshark": Group(("tools/wireshark",), "dissector for Wireshark and tshark"),
}


def root() -> Path:
    """The folder that paths are relative to.

    Raises:
        MissingToolError: this ina was neither installed from a wheel nor is it a checkout.
    """
    for folder in (_IN_WHEEL, _PACKAGE.parent):
        if (folder / "dashboards").is_dir() and (folder / "tofino").is_dir():
            return folder
    raise MissingToolError(f"no files in {_IN_WHEEL}: reinstall ina")


def shipped(groups: Iterable[str] = ()) -> list[PurePosixPath]:
    """All files of these groups (none named: of all), sorted.

    Raises:
        FilesError: there is no such group.
        MissingToolError: as :func:`root`.
    """
    wanted = list(groups) or list(GROUPS)
    if unknown := [name for name in wanted if name not in GROUPS]:
        raise FilesError(f"no group {unknown[0]!r} of files: there are {', '.join(GROUPS)}")
    top = root()
    folders = {folder for name in wanted for folder in GROUPS[name].folders}
    files = [path for folder in folders for path in (top / folder).rglob("*") if path.is_file()]
    return sorted(filter(_ships, (PurePosixPath(path.relative_to(top)) for path in files)))


def put_out(directory: Path, groups: Iterable[str] = (), *, force: bool = False) -> list[Path]:
    """Copy the groups' files into `directory`, which is made if need be; returns what was written.

    Nothing is written where one of them is there already, unless with `force`.

    Raises:
        FilesError: no such group; one is there already; a path cannot be written.
        MissingToolError: as :func:`root`.
    """
    names = shipped(groups)
    targets = [directory / name for name in names]
    there = [target for target in targets if target.exists()]
    if there and not force:
        more = f" (and {len(there) - 1} more)" if len(there) > 1 else ""
        raise FilesError(f"{there[0]} exists{more}: --force overwrites")
    top = root()
    for name, target in zip(names, targets, strict=True):
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(top / name, target)
            shutil.copymode(top / name, target)
        except OSError as error:
            raise FilesError(f"{error.filename or target}: {error.strerror}") from error
    return targets


def _ships(path: PurePosixPath) -> bool:
    """Whether it is a source, not what a program left beside one."""
    return not any(part == "__pycache__" or part.startswith(".") for part in path.parts)
