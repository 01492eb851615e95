"""What benchmarks read from a command line: sizes, link rates, lists."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import TypeVar

from ina.errors import InvalidInputError
from ina.protocol.spec import MAX_WORKERS

_Item = TypeVar("_Item")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMG]?)(?:i?B)?", re.IGNORECASE)
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_RATE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmg]?)bit", re.IGNORECASE)
_RATE_UNITS = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9}
MAX_SIZE_BYTES = 4 << 30


def sizes(option: str, text: str) -> list[int]:
    """``64K,1M,16M`` to bytes; K, M and G are powers of 1024. Raises InvalidInputError."""
    return _each(option, text, "sizes as 64K or 16M", lambda item: _size(item))


def one_size(option: str, text: str) -> int:
    """``64K`` to bytes. Raises InvalidInputError: also for several."""
    found, *more = sizes(option, text)
    if more:
        raise InvalidInputError(f"{option} {text}: want one size")
    return found


def _size(text: str) -> int:
    match = _SIZE.fullmatch(text)
    if match is None:
        raise ValueError
    found = round(float(match[1]) * _UNITS[match[2].lower()])
    if not 4 <= found <= MAX_SIZE_BYTES:
        raise ValueError
    return found


def numbers(option: str, text: str, least: int = 1, most: int = 1 << 31) -> list[int]:
    """``64,256`` to integers from ``least`` to ``most``. Raises InvalidInputError."""

    def number(item: str) -> int:
        found = int(item)
        if not least <= found <= most:
            raise ValueError
        return found

    return _each(option, text, f"integers from {least} to {most}, comma separated", number)


def workers(option: str, text: str) -> list[int]:
    """Numbers of workers. Raises InvalidInputError that names the limit."""
    return numbers(option, text, 2, MAX_WORKERS)


def shares(option: str, text: str) -> list[float]:
    """``0,0.001`` to shares of one, below one. Raises InvalidInputError."""

    def share(item: str) -> float:
        found = float(item)
        if not 0 <= found < 1:
            raise ValueError
        return found

    return _each(option, text, "shares from 0 to 1, comma separated", share)


def rate_bit_s(option: str, text: str) -> float:
    """``1gbit`` or ``200mbit`` to bits a second. Raises InvalidInputError."""
    match = _RATE.fullmatch(text)
    rate = float(match[1]) * _RATE_UNITS[match[2].lower()] if match else 0.0
    if not 1e5 <= rate <= 1e12:
        raise InvalidInputError(f"{option} {text}: want a rate as 1gbit or 200mbit")
    return rate


def rates_bit_s(option: str, text: str) -> dict[str, float]:
    """``1gbit,200mbit``: each as it is written, and in bits a second. Raises InvalidInputError."""
    return {name: rate_bit_s(option, name) for name in map(str.strip, text.split(","))}


def names(option: str, text: str, known: Collection[str]) -> list[str]:
    """Some of ``known``, comma separated, each once. Raises InvalidInputError: another."""
    found = [name.strip() for name in text.split(",")]
    if unknown := [name for name in found if name not in known]:
        raise InvalidInputError(f"{option} {unknown[0]}: want some of {', '.join(known)}")
    return list(dict.fromkeys(found))


def _each(option: str, text: str, wanted: str, parse: Callable[[str], _Item]) -> list[_Item]:
    found = []
    for item in text.split(","):
        try:
            found.append(parse(item.strip()))
        except ValueError:
            shown = item.strip() or repr(text)
            raise InvalidInputError(f"{option} {shown}: want {wanted}") from None
    return found


def size_text(size_bytes: int) -> str:
    """``65536`` to ``64K``; what is no whole number of K, M or G stays bytes."""
    for unit in "GMK":
        whole, rest = divmod(size_bytes, _UNITS[unit.lower()])
        if whole and not rest:
            return f"{whole}{unit}"
    return str(size_bytes)
