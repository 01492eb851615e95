"""Ranks in words, few or a thousand."""

from __future__ import annotations

from collections.abc import Iterable


def ranks_text(ranks: Iterable[int]) -> str:
    """``rank 2``, ``ranks 0, 1``, ``ranks 0-31, 64``: three or more in a row by first and last."""
    runs: list[list[int]] = []
    for rank in sorted(set(ranks)):
        if runs and rank == runs[-1][-1] + 1:
            runs[-1].append(rank)
        else:
            runs.append([rank])
    parts = [f"{run[0]}-{run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs]
    is_one = len(runs) == 1 and len(runs[0]) == 1
    return f"rank{'' if is_one else 's'} {', '.join(parts)}"
