"""The options of a command as one value: fields of a dataclass in place of parameters."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import TypeVar, get_type_hints

Options = TypeVar("Options")


def command(options: type[Options]) -> Callable[[Callable[[Options], None]], Callable[..., None]]:
    """Makes a function of a value of ``options`` a command that has its fields as options.

    They stand in the fields' order, those of a base class behind the others; a field without a
    default must be given.
    """
    hints = get_type_hints(options, include_extras=True)
    own = [name for of in options.__mro__ for name in inspect.get_annotations(of)]
    fields = dataclasses.fields(options)  # type: ignore[arg-type]
    parameters = [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=_default(field),
            annotation=hints[field.name],
        )
        for field in sorted(fields, key=lambda it: own.index(it.name))
    ]

    def made_of(run: Callable[[Options], None]) -> Callable[..., None]:
        def call(**given: object) -> None:
            run(options(**given))

        call.__name__, call.__doc__ = run.__name__, run.__doc__
        call.__module__, call.__qualname__ = run.__module__, run.__qualname__
        call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        call.__annotations__ = {it.name: it.annotation for it in parameters}
        return call

    return made_of


def _default(field: dataclasses.Field[object]) -> object:
    is_given = field.default is not dataclasses.MISSING
    return field.default if is_given else inspect.Parameter.empty
