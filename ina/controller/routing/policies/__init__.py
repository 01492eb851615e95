"""The policies by name, one file each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ina.controller.errors import RoutingError
from ina.controller.routing.policies.exact import Exact
from ina.controller.routing.policies.goat import Goat
from ina.controller.routing.policies.grid import Grid
from ina.controller.routing.policies.ina import Ina
from ina.controller.routing.policies.nearest import Nearest
from ina.controller.routing.policies.panama import Panama
from ina.controller.routing.policies.single import Single
from ina.controller.routing.policy import Policy

DEFAULT_POLICY = Ina.name


@dataclass(frozen=True)
class Known:
    """A policy that can be named."""

    make: Callable[[], Policy]
    needs_solver: bool = False
    """Whether it needs ``highspy`` (extra ``plan``)."""


POLICIES = {
    **{it.name: Known(it) for it in (Ina, Nearest, Single, Panama, Goat)},
    **{it.name: Known(it, needs_solver=True) for it in (Grid, Exact)},
}


def policy(name: str) -> Policy:
    """Raises :class:`RoutingError`: there is none of this name, or what it needs is missing."""
    if name not in POLICIES:
        raise RoutingError(f"no policy {name!r}: have {', '.join(map(repr, sorted(POLICIES)))}")
    return POLICIES[name].make()
