"""Files that a command is told to write: what is wrong with the name is said before the work."""

from __future__ import annotations

from pathlib import Path

from ina.errors import InvalidInputError


def check_output(option: str, path: Path, suffixes: tuple[str, ...]) -> None:
    """``suffixes``: of what the command writes; "" among them: a name without any is taken, too.

    Raises :class:`InvalidInputError` that names ``option`` and the file.
    """
    if path.suffix.lower() not in suffixes:
        wanted = ", ".join(suffix for suffix in suffixes if suffix)
        raise InvalidInputError(f"{option} {path}: want a name that ends in {wanted}")
    if path.is_dir():
        raise InvalidInputError(f"{option} {path}: it is a folder")
    if not path.parent.is_dir():
        raise InvalidInputError(f"{option} {path}: there is no folder {path.parent}")
