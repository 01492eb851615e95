"""A page of the documentation that has results between two marks."""

from __future__ import annotations

from pathlib import Path

from ina.errors import InvalidInputError

BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"


def check_page(page: Path) -> None:
    """Raises :class:`InvalidInputError`: there is no such page, or it lacks a mark."""
    try:
        text = page.read_text("utf-8")
    except OSError as error:
        raise InvalidInputError(f"--page {page}: {error.strerror}") from None
    if not 0 <= text.find(BEGIN) < text.find(END):
        raise InvalidInputError(f"--page {page}: want a line {BEGIN}, and one {END} below it")


def write_between(page: Path, found: str) -> None:
    """Replaces what is between the marks. Raises OSError, :class:`InvalidInputError`."""
    check_page(page)
    text = page.read_text("utf-8")
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    page.write_text(f"{before}{BEGIN}\n{found}\n{END}{after}", "utf-8")


def row(cells: list[str] | tuple[str, ...]) -> str:
    """Of a table, Markdown."""
    return f"| {' | '.join(cells)} |"
