"""Options that several ``ina bench`` commands have, and their checks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from ina.bench.allreduce import AllReduceCase
from ina.cli.bench.output import ComparedOptions
from ina.errors import InvalidInputError
from ina.host.arrays import VALUE_TYPES

_DTYPE_BYTES = {str(dtype): dtype.itemsize for dtype in VALUE_TYPES}

SizesOption = Annotated[str, typer.Option(help="Tensor sizes, as 64K,1M.")]
DtypeOption = Annotated[str, typer.Option(help=f"One of {', '.join(_DTYPE_BYTES)}.")]
ValuesOption = Annotated[
    int,
    typer.Option(
        help="Values a packet: a build of the P4 program. 0: the largest that the testbed's MTU"
        " bears."
    ),
]
MAX_SHARED_SLOTS = 1024
SharedSlotsOption = Annotated[
    int, typer.Option(help="Of the switch, for all jobs: a power of two.")
]
UnicastOption = Annotated[
    bool,
    typer.Option(
        "--unicast",
        help="The switch sends each worker a copy of each result, not one to all (IP multicast).",
    ),
]
UnshapedOption = Annotated[
    bool, typer.Option("--unshaped", help="Without token buckets, too: what this machine does.")
]
SamplesOption = Annotated[int, typer.Option(min=3, help="Samples of each, at most.")]
SizeSecondsOption = Annotated[float, typer.Option(help="Upper bound of a size, in seconds.")]
SpoilOption = Annotated[
    int, typer.Option(min=0, help="Make so many sums wrong, to see that it is noticed.")
]


@dataclass(frozen=True, kw_only=True)
class LinkedOptions(ComparedOptions):
    """Of those that all-reduce over shaped links of several levels."""

    sizes: SizesOption = "16M,64M"
    dtype: DtypeOption = "int32"
    unshaped: UnshapedOption = False
    values: ValuesOption = 0
    unicast: UnicastOption = False
    repeats: SamplesOption = 15
    seconds: SizeSecondsOption = 10.0
    spoil: SpoilOption = 0

    def check(self) -> None:
        """Raises InvalidInputError."""
        dtype_bytes(self.dtype)
        check_seconds(self.seconds)

    def case(self, values: int, **more: Any) -> AllReduceCase:
        """What is measured, with so many values a packet."""
        return AllReduceCase(
            *(self.dtype, dtype_bytes(self.dtype), "sum", values, self.repeats, self.seconds),
            spoil=self.spoil,
            **more,
        )


def dtype_bytes(dtype: str) -> int:
    """Of an element. Raises InvalidInputError: the network does not sum such."""
    if dtype not in _DTYPE_BYTES:
        raise InvalidInputError(f"--dtype {dtype}: the network sums {', '.join(_DTYPE_BYTES)}")
    return _DTYPE_BYTES[dtype]


def check_shared_slots(slots: int, least: int) -> None:
    """Raises InvalidInputError."""
    if not least <= slots <= MAX_SHARED_SLOTS or slots & (slots - 1):
        raise InvalidInputError(
            f"--slots {slots}: want a power of two, {least} to {MAX_SHARED_SLOTS}"
        )


def check_seconds(seconds: float) -> None:
    """Raises InvalidInputError."""
    if seconds <= 0:
        raise InvalidInputError(f"--seconds {seconds:g}: want more than 0")


def check_samples(repeats: int, seconds: float) -> None:
    """Raises InvalidInputError."""
    if repeats < 3 or seconds <= 0:
        raise InvalidInputError(f"--repeats {repeats} --seconds {seconds:g}: want >= 3 and > 0")
