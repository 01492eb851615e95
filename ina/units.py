"""Sizes and times as people write them: three digits and a unit."""

from __future__ import annotations

import math

_SIZES = ("B", "KiB", "MiB", "GiB", "TiB")


def size_text(size_bytes: float) -> str:
    """``4228`` to ``4.13 KiB``; powers of 1024. Below 1 KiB: whole bytes."""
    power = 0
    while abs(size_bytes) >= 999.5 and power < len(_SIZES) - 1:
        size_bytes /= 1024
        power += 1
    return f"{size_bytes:.0f} B" if power == 0 else f"{_three(size_bytes)} {_SIZES[power]}"


def time_text(time_s: float) -> str:
    """``0.000150322`` to ``150 µs``; above a minute: ``2 min 05 s``, ``3 h 07 min``."""
    if not math.isfinite(time_s):
        return f"{time_s} s"
    if abs(time_s) >= 3599.5:
        hours, minutes = divmod(round(time_s / 60), 60)
        return f"{hours} h {minutes:02} min"
    if abs(time_s) >= 59.95:
        minutes, seconds = divmod(round(time_s), 60)
        return f"{minutes} min {seconds:02} s"
    for scale, unit in ((1, "s"), (1e3, "ms"), (1e6, "µs")):
        if abs(time_s) * scale >= 0.9995:
            return f"{_three(time_s * scale)} {unit}"
    return f"{time_s * 1e9:.0f} ns" if time_s else "0 s"


def _three(value: float) -> str:
    """Three digits, without zeros that say nothing: ``4.13``, ``64``, ``150``."""
    digits = 0 if abs(value) >= 99.95 else 1 if abs(value) >= 9.995 else 2
    text = f"{value:.{digits}f}"
    return text.rstrip("0").rstrip(".") if digits else text
