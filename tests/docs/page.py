"""Reads a Markdown page: its fenced blocks with their annotations, its headings and links.

A ``console`` block holds commands on lines that begin with ``$ ``; a command continues after a
backslash; the other lines show what is printed. A ``python`` block is a program. A block in an item
of a list is as far to the right as the item's text. An HTML comment on the line above a fence
annotates the block; several annotations are parted by ``;``:

``skip: REASON``     not executed, and why
``needs: A, B``      skipped unless each is there: ``root``, a path in the checkout, a tool on PATH,
                     ``pip NAME``, a package of Python
``file: NAME``       the block is written to NAME, for the commands after it
``background``       runs until the page ends; the next block starts when it has printed a line
``exact``            what it prints is compared with what the page shows
``fails: CODE``      exits with this code
``timeout: SECONDS`` more than the default
``long: TEST``       takes long: ``make test-long`` runs it, and in ``make test`` the file TEST of
                     the tests runs the same on less
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_FENCE = re.compile(r"^( *)(`{3,})(\w*)\s*$")
_ANNOTATION = re.compile(r"^<!--\s*(.*?)\s*-->$")
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")
ANNOTATIONS = {"skip", "needs", "file", "background", "exact", "fails", "timeout", "long"}


@dataclass(frozen=True)
class Block:
    """One fenced block of a page."""

    page: Path
    line: int  # of the opening fence, from 1
    language: str
    text: str
    notes: dict[str, str]

    @property
    def script(self) -> str:
        """The commands of a console block, as one shell script."""
        lines = self.text.splitlines()
        commands = []
        continued = False
        for line in lines:
            if line.startswith("$ ") or continued:
                commands.append(line.removeprefix("$ ").removeprefix("> "))
                continued = line.endswith("\\")
        return "\n".join(commands) + "\n"

    @property
    def shown(self) -> str:
        """What a console block says is printed."""
        lines = []
        continued = False
        for line in self.text.splitlines():
            if line.startswith("$ ") or continued:
                continued = line.endswith("\\")
            else:
                lines.append(line)
        return "\n".join(lines)

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}"


def blocks(page: Path) -> list[Block]:
    """All fenced blocks, in order."""
    found = []
    lines = page.read_text().splitlines()
    index = 0
    while index < len(lines):
        opening = _FENCE.match(lines[index])
        if not opening:
            index += 1
            continue
        indent, fence, language = opening.groups()
        end = next(i for i in range(index + 1, len(lines)) if lines[i].rstrip() == indent + fence)
        notes = _notes(lines[index - 1]) if index else {}
        text = "\n".join(line.removeprefix(indent) for line in lines[index + 1 : end])
        found.append(Block(page, index + 1, language, text, notes))
        index = end + 1
    return found


def _notes(line: str) -> dict[str, str]:
    match = _ANNOTATION.match(line.strip())
    if not match:
        return {}
    pairs = (part.partition(":") for part in match.group(1).split(";"))
    notes = {name.strip(): value.strip() for name, _, value in pairs}
    if set(notes) <= ANNOTATIONS:
        return notes
    # With one unknown name the others would be lost, and what is to be skipped would run.
    assert not set(notes) & ANNOTATIONS, f"{line}: unknown: {set(notes) - ANNOTATIONS}"
    return {}


def prose(page: Path) -> str:
    """The page without its fenced blocks."""
    lines = page.read_text().splitlines()
    for block in blocks(page):
        end = block.line + len(block.text.splitlines())
        lines[block.line : end] = [""] * (end - block.line)
    return "\n".join(lines)


def links(page: Path) -> list[str]:
    """Targets of the page's links and images."""
    return [a or b for a, b in _LINK.findall(prose(page))]


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub makes of the page's headings."""
    headings = re.findall(r"^#+\s+(.*)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", text.lower()).strip().replace(" ", "-") for text in headings}
