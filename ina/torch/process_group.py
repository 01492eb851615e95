"""Backend ``ina``: a process group whose all_reduce is summed by the network."""

from __future__ import annotations

import dataclasses
import logging
import threading
import weakref
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import torch
from torch._C._distributed_c10d import Store
from torch.distributed import (
    AllreduceCoalescedOptions,
    AllreduceOptions,
    ReduceOp,
    Work,
)

from ina.host import Session
from ina.protocol.spec import MAX_WORKERS
from ina.torch import bootstrap, switch_stats
from ina.torch.env import Settings
from ina.torch.errors import GroupClosedError, GroupSizeError
from ina.torch.gloo import GlooForwarding
from ina.torch.paths import VALUE_TYPES, Paths, network_op, op_name, why_not_network
from ina.torch.stats import GroupStats
from ina.torch.work import NetworkWork, Piece

_log = logging.getLogger("ina.torch")

_JOIN_TIMEOUT_S = 120.0
"""Upper bound of the wait for the other workers; the group's own timeout may be shorter."""

LIVING: weakref.WeakSet[ProcessGroupIna] = weakref.WeakSet()
"""Groups that have not been destroyed; the exit hook closes them."""


class ProcessGroupIna(GlooForwarding):
    """One job at the controller, one session to the switch, and a Gloo group for the rest.

    all_reduce SUM and AVG of dense float32, float16, bfloat16 and int32 CPU tensors goes through
    the network, in place and without a copy if the tensor is contiguous. Everything else goes
    through Gloo, which is logged once for each kind and counted.
    """

    def __init__(
        self,
        store: Store,
        rank: int,
        size: int,
        timeout: timedelta,
        *,
        group_id: str = "0",
        sub_group: bool = False,
        settings: Settings | None = None,
    ) -> None:
        """Blocks until all ranks are there.

        Raises :class:`GroupSizeError` for more than 32 workers, :class:`RendezvousError` if there
        is no switch, and what :meth:`ina.host.Session.join` raises.
        """
        if size > MAX_WORKERS:
            raise GroupSizeError(
                f"group {group_id} has {size} workers: one switch sums at most {MAX_WORKERS},"
                " the width of the contributors bitmap"
            )
        self._settings = settings = settings or Settings.from_environ()
        paths = Paths(group_id, talks=rank == 0)
        super().__init__(store, rank, size, timeout, paths)
        self._group_id = group_id
        self._close_lock = threading.Lock()
        self._closed = False
        join_timeout_s = min(timeout.total_seconds(), _JOIN_TIMEOUT_S)
        self._meeting = bootstrap.meet(
            store, rank, group_id if sub_group else "", settings, join_timeout_s
        )
        try:
            self._session = Session.join(
                self._meeting.controller,
                self._meeting.job,
                rank,
                size,
                timeout_s=join_timeout_s,
                host=settings.host,
                op_timeout_s=timeout.total_seconds(),
            )
        except BaseException:
            bootstrap.part(self._meeting, 0.0)
            raise
        LIVING.add(self)
        if rank == 0:
            _log.info(
                "ina: group %s: all_reduce goes through the network (job %s, controller %s,"
                " %d workers), every other collective through Gloo",
                group_id,
                self._meeting.job,
                self._meeting.controller,
                size,
            )

    def getBackendName(self) -> str:  # noqa: N802 - torch's trampoline looks for this name
        """``ina``, as passed to ``init_process_group``."""
        return "ina"

    # -- all_reduce ------------------------------------------------------------------------------

    def allreduce(  # type: ignore[override]  # one method for three overloads
        self,
        tensors: Sequence[torch.Tensor] | torch.Tensor,
        opts: AllreduceOptions | ReduceOp | ReduceOp.RedOpType = ReduceOp.SUM,
        timeout: timedelta | None = None,
        **kwargs: Any,
    ) -> Work:
        """Sum or average one tensor over the ranks, in place.

        Takes torch's three spellings: (tensors, options), (tensors, op, timeout) and
        (tensor, op, timeout). Raises :class:`UnsupportedDeviceError` for a tensor that is not in
        CPU memory; what fails later is raised by the work.
        """
        op = kwargs.get("op", opts)
        if isinstance(op, AllreduceOptions):
            op = op.reduceOp
        return self._all_reduce([tensors] if isinstance(tensors, torch.Tensor) else tensors, op)

    def allreduce_coalesced(
        self,
        tensors: Sequence[torch.Tensor],
        opts: AllreduceCoalescedOptions | None = None,
    ) -> Work:
        """Like :meth:`allreduce` for several tensors, completed together."""
        return self._all_reduce(tensors, ReduceOp.SUM if opts is None else opts.reduceOp)

    def _all_reduce(
        self, tensors: Sequence[torch.Tensor], op: ReduceOp | ReduceOp.RedOpType
    ) -> Work:
        if self._closed:
            raise GroupClosedError(f"all_reduce on group {self._group_id}: it has been destroyed")
        for tensor in tensors:
            reason = why_not_network(tensor, op)
            if reason is not None:
                return self._all_reduce_gloo(tensors, op, tensor.dtype, reason)
        return self._all_reduce_network(tensors, op)

    def _all_reduce_gloo(
        self,
        tensors: Sequence[torch.Tensor],
        op: ReduceOp | ReduceOp.RedOpType,
        dtype: torch.dtype,
        reason: str,
    ) -> Work:
        name = f"all_reduce {op_name(op)} of {str(dtype).removeprefix('torch.')}"
        for _ in tensors:
            self._paths.fallback(name, reason)
        if len(tensors) == 1:
            opts = AllreduceOptions()
            opts.reduceOp = op  # type: ignore[assignment]  # torch converts the enumeration
            return self._gloo.allreduce(list(tensors), opts)
        coalesced = AllreduceCoalescedOptions()
        coalesced.reduceOp = op  # type: ignore[assignment]
        return self._gloo.allreduce_coalesced(list(tensors), coalesced)

    def _all_reduce_network(
        self, tensors: Sequence[torch.Tensor], op: ReduceOp | ReduceOp.RedOpType
    ) -> Work:
        session_op = network_op(op)
        assert session_op is not None
        # A non-contiguous tensor travels in a contiguous copy and is written back when summed.
        pieces = [Piece(t, t if t.is_contiguous() else t.detach().contiguous()) for t in tensors]
        shape = ", ".join(f"{t.numel()} x {str(t.dtype).removeprefix('torch.')}" for t in tensors)
        where = f"job {self._meeting.job}, rank {self.rank()} of {self.size()}"
        work = NetworkWork(f"all_reduce {op_name(op)} of {shape} in {where}", pieces)
        for index, piece in enumerate(pieces):
            pointer = piece.buffer.data_ptr()
            try:
                handle = self._session.all_reduce_raw(
                    pointer,
                    pointer,
                    piece.buffer.numel(),
                    VALUE_TYPES[piece.buffer.dtype],
                    session_op,
                    keep=piece.buffer,
                )
            except Exception as error:
                # What has started keeps its memory until it is done, then the work fails.
                work.fail(error, len(pieces) - index)
                break
            self._paths.network(piece.tensor)
            work.watch(handle)
        return work

    # -- end -------------------------------------------------------------------------------------

    def stats(self) -> GroupStats:
        """Counters so far; see :class:`GroupStats`."""
        paths = self._paths
        return GroupStats(
            job=self._meeting.job,
            rank=self.rank(),
            world_size=self.size(),
            controller=self._meeting.controller,
            network_all_reduces=paths.network_all_reduces,
            network_elems=paths.network_elems,
            network_bytes=paths.network_bytes,
            fallbacks=sum(paths.gloo_all_reduces.values()),
            fallback_reasons=dict(paths.gloo_all_reduces),
            other_collectives=dict(paths.gloo_others),
            session=dataclasses.asdict(self._session.stats()),
            switch=switch_stats.read() if self._meeting.embedded_here else None,
        )

    def shutdown(self) -> None:
        """Leave the job; called by ``destroy_process_group``. A second call does nothing.

        The process that runs the embedded switch waits for the other workers to leave, at most
        ``INA_LEAVE_TIMEOUT_S``.
        """
        self._close(self._settings.leave_timeout_s)

    def abort(self) -> None:
        """Leave the job at once, without waiting for anybody."""
        self._close(0.0)

    def _close(self, leave_timeout_s: float) -> None:
        with self._close_lock:
            if self._closed:
                return
            self._closed = True
        LIVING.discard(self)
        try:
            self._write_stats()
            self._session.close()
        finally:
            bootstrap.part(self._meeting, leave_timeout_s)

    def _write_stats(self) -> None:
        folder = self._settings.stats_dir
        if folder is None:
            return
        name = self._group_id.replace("/", "_")
        path = folder / f"group{name}.rank{self.rank()}.json"
        try:
            self.stats().write(path)
        except Exception as error:
            _log.error("ina: could not write %s: %s", path, error)
