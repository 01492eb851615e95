"""What a number on a command line may be where its option does not say.

No option of ina means a negative number but those that say so, and none means NaN. Beyond the
largest ones a clock, a thread's wait or the C++ overflows, and the user sees a traceback.
"""

from __future__ import annotations

import math
from typing import Any

import typer

MAX_SEED = (1 << 63) - 1
"""Seeds are 64 bits wide; a run of several counts on from the first."""
MAX_COUNT = (1 << 31) - 1
MAX_SECONDS = 1e9
"""Some 30 years; also of other units, as no quantity in them is larger."""
MAX_PROCESSES = 1024


def bound(parameter: Any) -> None:
    """Refuses what is out of bounds, before the option's own callback sees it.

    To be called once for a parameter.
    """
    own = parameter.callback

    def check(ctx: Any, param: Any, value: Any) -> Any:
        for one in value if isinstance(value, list | tuple) else (value,):
            if isinstance(one, int | float) and not isinstance(one, bool):
                _check(ctx, param, one)
        return own(ctx, param, value) if own is not None else value

    parameter.callback = check


def _check(ctx: Any, param: Any, number: float) -> None:
    least, most = (_limit(param, name) for name in ("min", "max"))
    least = 0 if least is None else least
    if most is None:
        most = MAX_COUNT if isinstance(number, int) else MAX_SECONDS
    if math.isnan(number) or not least <= number <= most:
        message = f"{number} is not in the range {least:g} to {most:g}."
        raise typer.BadParameter(message, ctx=ctx, param=param)


def _limit(param: Any, name: str) -> float | None:
    own: float | None = getattr(param, name, None)
    # Older ones of typer keep it with click's type.
    return getattr(getattr(param, "type", None), name, None) if own is None else own
