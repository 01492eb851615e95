"""What a soak does to processes, and which ends that explains."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from tests.soak.job import KILLED, End
from tests.soak.programs import LEASE_S, LOSS_S

SHORT_S = 0.8
"""A process that is stopped for less than this is only slow: no job ends for it."""


@dataclass(frozen=True)
class Fault:
    """One signal to one process, and how long until that is undone."""

    target: str
    """``rank``, ``switch`` or ``controller``."""
    how: str
    """``kill``, or ``stop``: SIGSTOP, then SIGCONT."""
    for_s: float
    """Until it is started again, or goes on. A rank that was killed comes with the next job."""

    @property
    def kind(self) -> str:
        if self.how == "kill":
            return f"kill -9 of the {self.target}" if self.target != "rank" else "kill -9 of a rank"
        whom = "a rank" if self.target == "rank" else f"the {self.target}"
        return f"SIGSTOP of {whom}, {'short' if self.for_s <= SHORT_S else 'long'}"


def deck(dice: random.Random) -> Iterator[Fault]:
    """Faults for ever: all kinds in some order, then all again in another."""
    kinds = [
        (target, how, is_long)
        for target in ("rank", "switch", "controller")
        for how, is_long in (("kill", False), ("stop", False), ("stop", True))
    ]
    while True:
        dice.shuffle(kinds)
        for target, how, is_long in kinds:
            if how == "kill":
                yield Fault(target, how, dice.uniform(0.1, 5.0))
            elif is_long:
                yield Fault(target, how, dice.uniform(1.2, 2.0) * max(LEASE_S, LOSS_S))
            else:
                yield Fault(target, how, dice.uniform(0.1, SHORT_S))


@dataclass
class Blame:
    """What was done since a job's start, or was not undone when it started."""

    ranks: set[int]
    """That were killed or stopped, or that have ended."""
    switch: bool = False
    controller: bool = False

    def objection(self, end: End) -> str:
        """Why what a rank says of its end cannot be; empty: it can."""
        if end.name in (KILLED, "done"):
            return ""
        if end.name == "crashed":
            return "it is no error of ina's"
        if not end.line or "\n" in end.line:
            return "it is not one line"
        anything = bool(self.ranks) or self.switch or self.controller
        services = self.switch or self.controller
        known = {
            # Somebody else's death, or one's own as others have seen it.
            "WorkerLostError": bool(self.ranks) and set(end.ranks) <= self.ranks,
            "SwitchLostError": self.switch,
            # Joining: a rank or a service is missing.
            "ControllerTimeoutError": anything,
            "ControllerUnavailableError": services,
            "ControllerError": anything,
            # The controller has forgotten a job that could not start, or said why and broke off.
            "JobEndedError": anything,
            # A switch that swallows packets while the controller is away.
            "OperationTimeoutError": self.switch and self.controller,
        }
        if end.name not in known:
            return "nothing that was done leads to such an error"
        return "" if known[end.name] else "nothing was done that it tells of"
