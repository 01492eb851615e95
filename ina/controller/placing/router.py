"""Which policy finds a job's trees, from what the fabric has free and up. Pure.

The trees of jobs that run stay as they are when another comes;
:mod:`~ina.controller.placing.rerouter` moves them afterwards.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from ipaddress import IPv4Address

from ina import modes
from ina.controller.config import Config
from ina.controller.config.rules import DEFAULT_PLACEMENT
from ina.controller.errors import RoutingError, UnknownJobError
from ina.controller.job import Job, who_sends_to_switches
from ina.controller.jobs.registry import Registry
from ina.controller.memory.demand import StepModel
from ina.controller.routing.demand import Demand
from ina.controller.routing.forwarded import forwarded_trees
from ina.controller.routing.loads import Loads, loads_of_job, no_loads
from ina.controller.routing.network import Network, NetworkWays, Rooms, hosts_of, network_of
from ina.controller.routing.plan import Stripe
from ina.controller.routing.policies import policy
from ina.controller.routing.policies.nearest import Nearest as NearestPolicy
from ina.controller.routing.policy import Situation
from ina.controller.routing.realise import Realiser, stripes_of
from ina.fabric.graph import Fabric
from ina.fabric.outages import NOTHING, Down
from ina.fabric.ports import PortNumber
from ina.p4.builds import packet_bytes
from ina.protocol.spec import VALUE_BYTES
from ina.trees.endpoint import Endpoint
from ina.trees.errors import JobRequestError
from ina.trees.forest import Forest
from ina.trees.nearest import Nearest

_log = logging.getLogger(__name__)

USUAL_STEP_BYTES = 100e6
"""Of values, of a job of which nothing is known: the gradients of 25 million parameters."""


class Router:
    """Places jobs over a fabric; a :class:`~ina.controller.jobs.placement.Placement`."""

    is_known_early = False

    def __init__(
        self,
        fabric: Fabric,
        number: PortNumber,
        config: Config,
        registry: Registry,
        down: Callable[[], Down] = lambda: NOTHING,
    ) -> None:
        """``number`` of a switch's port; it may raise. ``registry``: whose jobs, and whose
        switches' slots, count. ``down``: what was said to be down, which no tree goes over; beside
        it are switches that cannot be reached."""
        self.fabric = fabric
        self._nearest = Nearest(fabric, number, is_reached=self._is_reached)
        self._number = number
        self._registry = registry
        self._config = config
        self._down = down

    @property
    def down(self) -> Down:
        """What was said to be down."""
        return self._down()

    def _is_reached(self, switch: str) -> bool:
        return self._registry.switches[switch].is_reached()

    def reconfigure(self, config: Config) -> None:
        """From now on policies are as ``config`` has them."""
        self._config = config

    def switch_of(self, addresses: Sequence[IPv4Address]) -> str:
        """As :meth:`Nearest.switch_of`."""
        return self._nearest.switch_of(addresses)

    def port_to(self, switch: str, address: IPv4Address) -> int:
        """As :meth:`Nearest.port_to`."""
        return self._nearest.port_to(switch, address)

    def policy_of(self, job: str) -> str:
        """By its name: that of its rule, or that of all."""
        rules = (it for it in self._config.job_rules if fnmatchcase(job, it.name))
        rule = next(rules, None)
        of_all = self._config.placement or DEFAULT_PLACEMENT
        return of_all if rule is None or rule.placement is None else rule.placement

    @property
    def stripes(self) -> int:
        """Parts that a job's lanes are dealt in, at most."""
        return self._config.routing.stripes

    @property
    def moves(self) -> int:
        """Trees of running jobs that may be moved at a time."""
        return self._config.routing.moves

    def forest(self, job: str, endpoints: Mapping[int, Endpoint]) -> Forest:
        """The trees of a job whose workers, by rank, are all of these.

        Raises :class:`JobRequestError`: there are none.
        """
        nearest = self._nearest.forest(job, endpoints)  # raises what is wrong with the workers
        name, avoided = self.policy_of(job), self.avoided()
        if len(self.fabric.switches) == 1 or (name == NearestPolicy.name and not avoided):
            return nearest
        try:
            return self._planned(job, endpoints, name, avoided)
        except (RoutingError, JobRequestError) as error:
            # Whether there is room there is said when slots are taken.
            _log.warning("job %r: placement %s: %s; placed as nearest", job, name, error)
        except Exception:  # a bug; that no job could begin any more would be worse
            _log.exception("job %r: placement %s failed; placed as nearest", job, name)
        return nearest

    def _planned(
        self, job: str, endpoints: Mapping[int, Endpoint], name: str, avoided: Down
    ) -> Forest:
        view = self.view(avoided, {job: endpoints})
        return self.realised(view, job, self.planned(view, job, name))

    def planned(self, view: View, job: str, placement: str) -> tuple[Stripe, ...]:
        """For one job of a view, beside all others, which stay. Raises :class:`RoutingError`."""
        situation = Situation(view.network, (view.demands[job],), view.loads(but={job}))
        return policy(placement).plan(situation).stripes[job]

    def realised(
        self, view: View, job: str, stripes: Sequence[Stripe], network: Network | None = None
    ) -> Forest:
        """Those trees, or where ways around what is down would take more levels or more nodes than
        there are, one tree by frames' own ways.

        ``network``: with what is down now; None: the view's. Raises :class:`RoutingError`,
        :class:`JobRequestError`: no switches can have them, nor is there such a tree.
        """
        network, demand = network or view.network, view.demands[job]
        endpoints = view.endpoints[job]
        ports = {rank: at.switch_port for rank, at in endpoints.items()}
        racks = demand.places(network).tolist()
        realiser = Realiser(
            *(self.fabric, network, ports, self._number), most_levels=demand.most_levels(network)
        )
        try:
            return realiser.forest(racks, stripes)
        except (RoutingError, JobRequestError) as error:
            sums = network.sums & (network.slots >= demand.slots)
            trees = forwarded_trees(NetworkWays(network), demand, sums)
            if not trees:
                raise
            _log.warning("job %r: %s; one tree by the fabric's own ways instead", job, error)
            return realiser.forest(racks, [Stripe(1.0, tree) for tree in trees])

    def avoided(self) -> Down:
        """What is down, and switches that cannot be reached while others can."""
        lost = {
            name
            for name, it in self._registry.switches.items()
            if name in self.fabric and not it.is_reached()
        }
        if len(lost) == len(self.fabric.switches):
            lost = set()  # none has been reached yet: whoever joins hears why
        return Down(self.down.switches | lost, self.down.links)

    def broken(self, job: Job) -> str:
        """What of its trees' ways was said to be down; empty: nothing."""
        if not self.down:
            return ""
        if gone := self.down.switches.intersection(job.memory):
            return f"{min(gone)} is down"
        view = self.view(self.down)
        try:
            for mapping in job.mappings:
                view.stripes(job.name, mapping.forest)
        except RoutingError as error:
            return str(error)
        return ""

    def view(
        self,
        avoided: Down,
        joining: Mapping[str, Mapping[int, Endpoint]] | None = None,
        steps: Mapping[str, StepModel | None] | None = None,
    ) -> View:
        """Of all jobs that have trees, and of those that are about to have some.

        ``steps``: of jobs that do not exist yet.
        """
        members = {
            job.name: who_sends_to_switches(job.members)
            for job in self._registry
            if job.placed is not None and not job.missing()
        }
        endpoints = {
            name: dict(sorted(of.items())) for name, of in {**members, **(joining or {})}.items()
        }
        racks = {
            name: [self._nearest.rack(name, rank, at) for rank, at in of.items()]
            for name, of in endpoints.items()
        }
        unlisted = {
            (str(at.peer.address), rack)
            for name, of in endpoints.items()
            for at, rack in zip(of.values(), racks[name], strict=True)
            if at.peer.address not in self.fabric.hosts
        }
        network = network_of(self.fabric, self._rooms(), avoided, sorted(unlisted))
        numbers = hosts_of(network)
        demands = {
            name: self._demand(
                *(
                    name,
                    [numbers[str(at.peer.address)] for at in of.values()],
                    (steps or {}).get(name),
                ),
                has_host_nodes=any(at.node is not None for at in of.values()),
            )
            for name, of in endpoints.items()
        }
        return View(self.fabric, network, endpoints, demands, self._registry)

    def _rooms(self) -> Rooms:
        switches = self._registry.switches
        rates = {
            it.name: it.sums_mpps * 1e6 * packet_bytes(it.values)
            for it in self._config.switches
            if it.sums_mpps
        }
        free = {name: it.memory.total - it.memory.used() for name, it in switches.items()}
        return Rooms(free, rates)

    def _demand(
        self, name: str, hosts: Sequence[int], steps: StepModel | None, *, has_host_nodes: bool
    ) -> Demand:
        job: Job | None = None
        values = next(iter(self._registry.switches.values())).values or 1
        slots = self._usual_slots(name)
        with contextlib.suppress(UnknownJobError):
            job = self._registry.get(name)
            steps = self._registry.room.known_steps(job)
            slots = job.slots or job.spec.slots or self._usual_slots(name)
        value_bytes = USUAL_STEP_BYTES if steps is None else steps.bytes
        wire_bytes = value_bytes * packet_bytes(values) / (values * VALUE_BYTES)
        stripes = min(self.stripes, 1 << max(0, (slots // 2).bit_length() - 1))
        roots, levels_beside = None, int(has_host_nodes)
        if job is not None and not modes.of(job.mode).is_striped:
            # Over the first of its trees alone, and sums need no slots of its own below the root.
            slots, stripes = 0, 1
            tops = self._registry.site.tops(job, self.port_to)
            order = {name: number for number, name in enumerate(self.fabric.switches)}
            roots = tuple(order[name] for name in tops if name in order)
            levels_beside += self._registry.site.levels_above(job, tops)
        return Demand(
            name,
            tuple(hosts),
            step_bytes=wire_bytes,
            compute_s=0.0 if steps is None else steps.compute_s,
            overlap_s=0.0 if steps is None else steps.overlap_s,
            slots=slots,
            stripes=stripes,
            roots=roots,
            levels_beside=levels_beside,
        )

    def _usual_slots(self, name: str) -> int:
        return next(iter(self._registry.switches.values())).memory.cost(name, 0)


@dataclass(frozen=True)
class View:
    """What there is at one moment."""

    fabric: Fabric
    network: Network
    endpoints: Mapping[str, Mapping[int, Endpoint]]
    """By job, then by rank: who sends to switches."""
    demands: Mapping[str, Demand]
    registry: Registry

    def stripes(self, job: str, forest: Forest | None = None) -> tuple[Stripe, ...]:
        """That a running job has. Raises :class:`RoutingError`: over something that is down.

        ``forest``: not the one that it has or changes to, but this one of its mappings'.
        """
        forest = forest or self.registry.get(job).newest_mapping.forest
        ranks = list(self.endpoints[job])
        racks = self.demands[job].places(self.network).tolist()
        return stripes_of(self.fabric, self.network, ranks, racks, forest)

    def loads_of(self, job: str, stripes: Sequence[Stripe]) -> Loads:
        """Of one job with these trees."""
        return loads_of_job(self.network, self.demands[job], stripes)

    def by_job(self) -> dict[str, Loads]:
        """Of each job that has trees, none of which goes over what is down."""
        found = {}
        for name in self.demands:
            with contextlib.suppress(RoutingError, UnknownJobError):
                if self.registry.get(name).placed is not None:  # else it is about to have one
                    found[name] = self.loads_of(name, self.stripes(name))
        return found

    def loads(self, *, but: set[str]) -> Loads:
        """Of all jobs that have trees but these; what is down loads nothing."""
        those = (it for name, it in self.by_job().items() if name not in but)
        return sum(those, no_loads(self.network))
