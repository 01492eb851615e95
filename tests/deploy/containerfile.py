"""Reads a Containerfile, and runs its last stage on a copy-on-write view of this machine.

No container engine runs in the tests. The view has this machine's files where the image has
Debian's, so packages of apt-get are taken to be there; all other RUN commands run as they stand.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import NamedTuple


class Step(NamedTuple):
    """One instruction."""

    name: str  # RUN, COPY, ...
    text: str


def stages(file: Path) -> list[list[Step]]:
    """The instructions of each stage, its FROM first; what stands before the first is left out."""
    text = file.read_text().replace("\\\n", " ")
    found: list[list[Step]] = []
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        step = Step(*line.split(None, 1))
        if step.name == "FROM":
            found.append([])
        if found:
            found[-1].append(step)
    return found


def copied(stage: list[Step]) -> list[str]:
    """What COPY takes out of the build's context."""
    copies = [shlex.split(step.text) for step in stage if step.name == "COPY"]
    return [name for words in copies if not words[0].startswith("--") for name in words[:-1]]


def value(stage: list[Step], name: str) -> str:
    """The text of the last instruction of this name."""
    return [step.text for step in stage if step.name == name][-1]


def script(stage: list[Step], wheel: Path, environment: Path, scratch: Path, end: str) -> str:
    """A shell script for root, in a mount namespace of its own, that does `stage` and then `end`.

    `wheel` is what the build stage made, `environment` a virtual environment that stands for the
    image's Python. `end` runs as the image's user, with the image's variables, in its folder.
    """
    user, folder = value(stage, "USER"), value(stage, "WORKDIR")
    variables = [step.text for step in stage if step.name in ("ENV", "ARG")]
    inside = [f"export PATH=/stubs:{environment}/bin:/usr/sbin:/usr/bin:/sbin:/bin"]
    inside += [f"export {shlex.quote(shlex.split(text)[0])}" for text in variables]
    runs = [step.text for step in stage if step.name == "RUN"]
    root = scratch / "root"
    # On the way to the environment and to its interpreter, which may be the superuser's alone.
    private = {
        folder
        for path in (environment / "bin", (environment / "bin" / "python").resolve())
        for folder in path.parents
    }
    return "\n".join(
        [
            "set -e",
            f"mount -t tmpfs none {scratch}",
            f"mkdir {scratch}/upper {scratch}/work {root}",
            f"mount -t overlay none {root} "
            f"-o lowerdir=/,upperdir={scratch}/upper,workdir={scratch}/work || exit 77",
            f"mount --bind /proc {root}/proc; mount --bind /dev {root}/dev",
            f"mkdir -p {root}/stubs {root}/wheels; cp {wheel} {root}/wheels",
            f"printf '#!/bin/sh\\necho apt-get \"$@\"\\n' > {root}/stubs/apt-get",
            f"chmod +x {root}/stubs/apt-get",
            f"chmod a+x {' '.join(f'{root}{path}' for path in private)}",
            *(
                f"chroot {root} sh -c {shlex.quote(chr(10).join(['set -e', *inside, run]))}"
                for run in runs
            ),
            f"exec chroot --userspec={user} {root} sh -c "
            + shlex.quote("\n".join([*inside, f"cd {folder}", f"exec {end}"])),
        ]
    )
