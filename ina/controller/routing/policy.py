"""What every routing policy is: in goes a situation, out comes a plan. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

from ina.controller.routing.demand import Demand
from ina.controller.routing.loads import Loads, no_loads
from ina.controller.routing.network import Network, NetworkWays
from ina.controller.routing.plan import Plan


@dataclass(frozen=True, eq=False)
class Situation:
    """What a policy decides from."""

    network: Network
    """With what is up, and the slots that are free for ``demands``."""
    demands: tuple[Demand, ...]
    """Of jobs that are to have trees, in the order in which they came."""
    others: Loads | None = None
    """Of jobs whose trees stay as they are; None: there are none."""
    current: Plan = field(default_factory=Plan)
    """The trees that some of the jobs have now, all of which can still be used."""
    seed: int = 0
    """Of whatever is drawn: the same situation has the same plan."""

    @classmethod
    def of(cls, network: Network, demands: Sequence[Demand], *, seed: int = 0) -> Situation:
        """Of jobs that come together, and no others."""
        return cls(network, tuple(demands), seed=seed)

    @cached_property
    def ways(self) -> NetworkWays:
        """Of its network."""
        return NetworkWays(self.network, seed=self.seed)

    @cached_property
    def base(self) -> Loads:
        """Of others."""
        return no_loads(self.network) if self.others is None else self.others


class Policy(Protocol):
    """Its docstring states what it guarantees."""

    name: str

    def plan(self, situation: Situation) -> Plan:
        """Trees for each of the jobs, feasible by :func:`ina.controller.routing.judge.problems`.

        Raises :class:`RoutingError`: a job cannot have any, and why.
        """
        ...
