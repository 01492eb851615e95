"""Small programs compiled without optimisation, as one: what they do is the same, and takes least.

The compiler's part of what ships is proven on the programs of tests/switch/programs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from fuzz.programs.batch import Pipelines, compiled, emitted
from ina.switch.c_target.pipeline import CPipeline
from ina.switch.native_abi import PipelineStruct
from ina.switch.pipeline import Pipeline


@dataclass(frozen=True)
class Both:
    """A program twice, with memory of its own each."""

    main: Pipeline
    general: Pipeline
    """All packets take the general path."""


@contextmanager
def quick(texts: Sequence[str]) -> Iterator[list[Both]]:
    """Of programs in BMv2 JSON, for as long as the ``with`` lasts.

    Raises InvalidProgramError, UnsupportedProgramError; BatchError: the C does not compile.
    """
    with compiled([emitted(text) for text in texts]) as built, ExitStack() as opened:
        yield [
            Both(
                opened.enter_context(_power_on(of.main, of)),
                opened.enter_context(_power_on(of.general, of)),
            )
            for of in built
        ]


def _power_on(calls: PipelineStruct, of: Pipelines) -> Pipeline:
    library: Any = SimpleNamespace(ina_pipeline_get=_Get(calls))
    return CPipeline(of.program, library, Path("batch.c"))


class _Get:
    """``ina_pipeline_get`` of a library that has many programs."""

    restype: Any = None

    def __init__(self, calls: PipelineStruct) -> None:
        self._calls = calls

    def __call__(self) -> Any:
        return SimpleNamespace(contents=self._calls)
