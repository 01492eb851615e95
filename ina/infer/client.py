"""Who asks a plan."""

from __future__ import annotations

import secrets
import socket
import time
from collections.abc import Sequence
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from ina.extension import infer as native
from ina.infer.errors import (
    NodeLostError,
    PlansDifferError,
    RequestDeadlineError,
    RequestError,
    SumsLostError,
)
from ina.infer.placing import Placed, Surroundings, native_place, place
from ina.infer.plan import InferencePlan
from ina.infer.reference import checked_samples

Ints = NDArray[np.int32]
DEADLINE_S = 10.0
"""Of a request."""
SILENT_S = 1.0
"""Without a word of anybody, who was asked several times: the entry is not there."""
_SLICE_NS = 200_000_000  # a signal is seen in between


def client_config(
    plan: InferencePlan, placed: Sequence[Placed], around: Surroundings, nonce: int
) -> native.ClientConfig:
    """What the core of who asks is told."""
    last, first = placed[-1], placed[0]
    parts = [last.layout.parts.get(node, (0, 0)) for node in range(len(plan.spec.nodes))]
    return native.ClientConfig(
        key=around.key,
        plan=plan.digest,
        nonce=nonce,
        entry=native_place(around.peers[plan.entry]),
        packet_values=plan.spec.packet_values,
        window=plan.spec.window // 2,
        rows_in=plan.spec.block * first.shape.rows,
        columns_in=first.shape.width,
        rows_out=plan.spec.block * last.shape.rows,
        columns_out=last.shape.width,
        nodes=[native_place(peer) for peer in around.peers],
        answers=[native.Columns(*part) for part in parts],
    )


class Pending:
    """A request that is under way."""

    def __init__(
        self, client: InferenceClient, number: int, padded: Ints, out: Ints, samples: int
    ) -> None:
        """Of :meth:`InferenceClient.ask`."""
        self._client, self._number, self._samples = client, number, samples
        self._memory = padded, out  # stays until the request is over

    def wait(self) -> Ints:
        """The answers, of shape (samples, rows, columns); once.

        Raises RequestDeadlineError, NodeLostError, SumsLostError, PlansDifferError, RequestError.
        """
        self._client.wait_for(self._number)
        return self._memory[1][: self._samples]


class InferenceClient:
    """Asks the plan whose nodes are at these places. Use it as a context manager, or close() it."""

    def __init__(
        self, plan: InferencePlan, around: Surroundings, *, deadline_s: float = DEADLINE_S
    ) -> None:
        """Raises PlanError; OSError: no socket."""
        self._plan, self._deadline_s = plan, deadline_s
        placed = place(plan)
        last = placed[-1]
        self._shape = last.shape.rows, last.shape.width
        self._names = [one.name for one in placed]
        self._entry = around.peers[plan.entry]
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("", 0))
        config = client_config(plan, placed, around, secrets.randbits(32))
        self.native = native.Asker(self._socket.fileno(), config)
        self._socket.close()  # the core has its own duplicate
        self._begun_ns: dict[int, int] = {}

    def ask(self, samples: NDArray[np.generic]) -> Pending:
        """Begin a request; integers within the plan's range, or floats that it scales.

        `samples` of shape (samples, width), or (samples,) where the width is 1. Several may be
        under way. Raises RequestError.
        """
        given = checked_samples(self._plan, samples)
        block = self._plan.spec.block
        blocks = -(-len(given) // block)
        padded = np.full((blocks * block, given.shape[1]), self._plan.spec.input.low, np.int32)
        padded[: len(given)] = given
        out = np.empty((len(padded), *self._shape), np.int32)
        patience_ns = round(self._deadline_s * 1e9)
        number = self.native.ask(padded.ctypes.data, blocks, out.ctypes.data, patience_ns)
        self._begun_ns[number] = time.monotonic_ns()
        return Pending(self, number, padded, out, len(given))

    def infer(self, samples: NDArray[np.generic]) -> Ints:
        """Ask, and wait. Raises as both do."""
        return self.ask(samples).wait()

    def wait_for(self, number: int) -> None:
        """Until the request is over; it is forgotten then. For Pending."""
        try:
            while True:
                outcome = self.native.wait(number, _SLICE_NS)
                if outcome == native.Outcome.DONE:
                    return
                if outcome == native.Outcome.FAILED:
                    raise self._failed(self.native.failure)
                if outcome == native.Outcome.TOO_LATE:
                    raise self._too_late(number)
        finally:
            self.native.forget(number)
            self._begun_ns.pop(number, None)

    def _failed(self, failure: native.Failure) -> Exception:
        name, nodes = self._plan.spec.name, self._plan.spec.nodes
        match failure.fault:
            case native.Fault.NODE_LOST if failure.node < len(nodes):
                return NodeLostError(f"plan {name!r}: node {nodes[failure.node]!r} is lost")
            case native.Fault.SUMS_LOST if failure.stage < len(self._names):
                return SumsLostError(
                    f"plan {name!r}: the sums of stage {self._names[failure.stage]!r} do not come"
                    " any more; its nodes say why"
                )
            case native.Fault.OTHER_PLAN:
                return PlansDifferError(
                    f"plan {name!r}: the entry at {self._entry} has another plan, or other weights"
                )
            case native.Fault.OUT_OF_RANGE:
                return RequestError(f"plan {name!r}: the entry admits other values than are asked")
        return NodeLostError(f"plan {name!r}: a node says that the plan has failed")

    def _too_late(self, number: int) -> RequestDeadlineError:
        where = f"plan {self._plan.spec.name!r}: no answer in {self._deadline_s:g} s"
        now_ns, begun_ns = time.monotonic_ns(), self._begun_ns.get(number, 0)
        silent_s = (now_ns - max(self.native.heard_ns, begun_ns)) / 1e9
        names, status = self._plan.spec.nodes, self.native.status
        if silent_s > SILENT_S or self.native.heard_ns < begun_ns:
            entry = names[self._plan.entry]
            return RequestDeadlineError(
                f"{where}: nothing was heard of the entry, node {entry!r} at {self._entry}, for"
                f" {silent_s:.1f} s"
            )
        if status.at_ns >= begun_ns and status.node < len(names):
            return RequestDeadlineError(
                f"{where}: the entry has heard nothing of node {names[status.node]!r} for"
                f" {status.silent_ms / 1e3:g} s"
            )
        return RequestDeadlineError(f"{where}: all nodes were heard, and are too slow")

    def close(self) -> None:
        """What is under way is not waited for."""

    def __enter__(self) -> InferenceClient:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
