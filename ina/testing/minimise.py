"""Delta debugging: the shortest case on which two devices still differ."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from ina import modes
from ina.errors import InaError
from ina.tables.values import AnyItem
from ina.testing.case import Arrival, Case, Step
from ina.testing.device import Device
from ina.testing.differential import Finding, still_differs
from ina.testing.wrapping import WRAPPINGS

T = TypeVar("T")


def minimise(
    finding: Finding,
    reference: Device,
    device: Device,
    *,
    budget_s: float = 120.0,
    told: Callable[[int, int], None] = lambda _steps, _items: None,
) -> Finding:
    """Returns the finding with as few steps, then as little state, as still make a difference.

    Packets in which no value matters get zeros. After ``budget_s`` the best so far is returned. A
    difference that does not come again (the device is not deterministic) is returned as it was.
    """
    search = _Search(finding, reference, device, time.monotonic() + budget_s, told)
    if not search.keeps(finding.case):
        return finding
    search.shrink_steps()
    search.shrink_state()
    search.shrink_steps()
    search.clear_values()
    return search.best


class _Search:
    def __init__(
        self,
        finding: Finding,
        reference: Device,
        device: Device,
        until: float,
        told: Callable[[int, int], None],
    ) -> None:
        self.best = finding
        self._devices = reference, device
        self._until = until
        self._told = told

    def keeps(self, case: Case) -> bool:
        """Whether the case still makes a difference; then it is the best so far."""
        try:
            found = still_differs(case, *self._devices)
        except (InaError, KeyError):  # it takes off what it has not written: not a case any more
            return False
        if found is None:
            return False
        self.best = found
        self._told(len(found.case.steps), len(found.case.state))
        return True

    def shrink_steps(self) -> None:
        def with_steps(steps: Sequence[Step]) -> Case:
            return replace(self.best.case, steps=tuple(steps))

        self._ddmin(self.best.case.steps, with_steps)

    def shrink_state(self) -> None:
        def with_state(state: Sequence[AnyItem]) -> Case:
            return replace(self.best.case, state=tuple(state))

        self._ddmin(self.best.case.state, with_state)

    def clear_values(self) -> None:
        """Zeros in the place of values that do not matter, packet by packet."""
        wrapping = WRAPPINGS[modes.of(self.best.case.mode).framing]
        for index, step in enumerate(self.best.case.steps):
            if not isinstance(step, Arrival) or self._out_of_time():
                continue
            frame = wrapping.without_values(step.frame)
            if frame != step.frame:
                steps = list(self.best.case.steps)
                steps[index] = Arrival(step.port, frame)
                self.keeps(replace(self.best.case, steps=tuple(steps)))

    def _ddmin(self, items: Sequence[T], with_items: Callable[[Sequence[T]], Case]) -> None:
        """Leaves parts out, ever smaller ones, as long as the difference stays (Zeller's ddmin)."""
        parts = 2
        while len(items) > 1 and not self._out_of_time():
            size = -(-len(items) // parts)
            for start in range(0, len(items), size):
                fewer = [*items[:start], *items[start + size :]]
                if self._out_of_time():
                    return
                if self.keeps(with_items(fewer)):
                    items, parts = fewer, max(parts - 1, 2)
                    break
            else:
                if parts >= len(items):
                    return
                parts = min(2 * parts, len(items))

    def _out_of_time(self) -> bool:
        return time.monotonic() > self._until
