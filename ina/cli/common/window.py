"""``--window``: how many packets workers have in flight, for commands that run some."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from ina.congestion import ALGORITHMS, Congestion
from ina.errors import InvalidInputError

WindowOption = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help=f"Window algorithm of the workers: {', '.join(ALGORITHMS)}; or a class of your own,"
        " my_module:MyWindow, of a module in this folder.",
    ),
]
WindowValuesOption = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=VALUE", help="A number for --window; may be repeated."),
]


def window_of(window: str, values: Sequence[str] | None) -> Congestion | None:
    """What the two options ask for; None: nothing. Raises CongestionError, InvalidInputError."""
    if not window:
        if values:
            raise InvalidInputError(f"--window-option {values[0]}: want --window, too")
        return None
    congestion = Congestion.from_text(",".join((window, *(values or ()))))
    congestion.choice()  # there is such a class, and it takes these values
    return congestion
