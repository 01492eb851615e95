from collections.abc import Sequence
from enum import Enum

from ina._native.host import VerifyMode

class Claim(Enum):
    NONE = ...
    SCALE = ...
    TOO_LARGE = ...
    NON_FINITE = ...

def siphash(key: bytes, a: int, b: int, c: int, /) -> int: ...
def weigh_kernel_names() -> list[str]: ...
def weigh(kernels: str, wire: bytes, low: Sequence[int], high: Sequence[int]) -> int: ...

class SumCheck:
    def __init__(
        self, mode: VerifyMode, key: bytes, epoch: int, rank: int, workers: int, values: int
    ) -> None: ...
    def contribute(
        self, number: int, digest: int, value_type: int, exponent: int, claim: Claim, wire: bytes
    ) -> tuple[int, int]: ...
    def verify(
        self,
        number: int,
        digest: int,
        value_type: int,
        exponent: int,
        expected: int,
        wire: bytes,
        check: int,
        scale: tuple[int, int],
        too_large: tuple[int, int],
        non_finite: tuple[int, int],
    ) -> bool: ...
