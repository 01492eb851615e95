"""Tables of Markdown, and where they stand in a page: between two marks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ina.errors import InvalidInputError

BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"


def markdown(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table."""
    cells = [titles, ["---"] * len(titles), *rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in cells)


def with_table(page: str, text: str, table: str) -> str:
    """The page with another table. Raises InvalidInputError: it has no place for one."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise InvalidInputError(f"docs/{page}: no {BEGIN} and {END}")
    return f"{before}{BEGIN}\n{table}\n{END}{after}"
