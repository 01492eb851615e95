"""Backend ``ina``: a process group whose collectives the network does."""

from __future__ import annotations

import atexit
import dataclasses
import logging
import os
import threading
import weakref
from collections.abc import Callable, Sequence
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

from ina.host.errors import RanksDifferError
from ina.host.own_addresses import why_not_own
from ina.protocol.coding import Coding
from ina.protocol.collective import Reduction
from ina.protocol.spec import MAX_WORLD_SIZE
from ina.torch import embedded, pieces
from ina.torch.blocks import LAG_OF_BUCKETS, Blockwise, Pipeline
from ina.torch.coo import Compared, CooRows, told_apart
from ina.torch.cuda import staging
from ina.torch.deadlines import Deadlines
from ina.torch.dense import waited
from ina.torch.devices import device_type_of
from ina.torch.env import Settings, SparseSetting
from ina.torch.errors import GroupClosedError, GroupSizeError, SettingError
from ina.torch.fresh_store import fresh
from ina.torch.gather import AllGather
from ina.torch.metrics import GROUPS
from ina.torch.paths import Paths, kind, network_op, op_name, what_is, why_not_network
from ina.torch.rooted import Rooted
from ina.torch.scatter import ReduceScatter
from ina.torch.stats import GroupStats
from ina.torch.work import NetworkWork, Piece
from ina.torch.worker import Sum, Worker

_log = logging.getLogger("ina.torch")

LIVING: weakref.WeakSet[ProcessGroupIna] = weakref.WeakSet()
"""Groups that have not been destroyed; the exit hook closes them."""


class ProcessGroupIna(ReduceScatter, AllGather, Rooted):
    """One job at the controller, one session to the switch, and a Gloo group for the rest.

    all_reduce, reduce_scatter and reduce, SUM and AVG, of dense float32, float16, bfloat16 and
    int32 tensors go through the network, all_gather and broadcast of CPU tensors of any type, and
    barrier; contiguous CPU tensors without a copy. Everything else goes through inner groups, which
    is logged once for each kind and counted.
    """

    def __init__(
        self,
        store: Store,
        rank: int,
        size: int,
        timeout: timedelta,
        *,
        group_id: str = "0",
        ranks: Sequence[int] | None = None,
        settings: Settings | None = None,
    ) -> None:
        """Blocks until all ranks are there.

        ``ranks``: the global ones, for another group than the default one.

        Raises :class:`GroupSizeError` for more than 1024 workers, or on rank 0 for more than 32
        without a controller; :class:`RendezvousError` if there is no switch; and what
        :meth:`ina.host.Session.join` raises.
        """
        self._settings = settings = settings or Settings.from_environ()
        if settings.host and (why := why_not_own(settings.host)):
            raise SettingError(f"INA_HOST={settings.host}: {why}")
        if size > MAX_WORLD_SIZE:
            raise GroupSizeError(
                f"group {group_id} has {size} workers: a job has at most {MAX_WORLD_SIZE}"
            )
        store = fresh(store, rank, size, timeout, group_id)
        paths = Paths(group_id, talks=rank == 0)
        super().__init__(store, rank, size, timeout, paths)
        self._group_id = group_id
        self._pid = os.getpid()
        self._close_lock = threading.Lock()
        self._closed = False
        self._worker = Worker(
            store,
            rank,
            list(range(size)) if ranks is None else ranks,
            timeout,
            name=group_id,
            sub_group=ranks is not None,
            settings=settings,
        )
        self._has_shapes = self._worker.has_shapes
        self._blockwise = Blockwise(self._worker, settings.sparse)
        self._rows_begun = 0
        self._gloo_backend = self._gloo._get_backend(torch.device("cpu"))
        self._session_timeout_s = timeout.total_seconds()
        self._deadlines = Deadlines(f"ina-deadlines-{group_id}")
        LIVING.add(self)
        GROUPS.add(self)
        self._say_where()

    def _say_where(self) -> None:
        """On rank 0, for all: which collectives go through the network."""
        if self.rank() != 0:
            return
        _log.info(
            "ina: group %s: %s go through the network (job %s, controller %s,"
            " %d workers; rank 0 over %s), other collectives through Gloo",
            self._group_id,
            "sums, all_gather, broadcast and barrier" if self._has_shapes else "sums",
            self._worker.rendezvous.job,
            self._worker.rendezvous.controller,
            self.size(),
            self._worker.path,
        )

    def getBackendName(self) -> str:  # noqa: N802 - torch's trampoline looks for this name
        """``ina``, as passed to ``init_process_group``."""
        return "ina"

    def __repr__(self) -> str:
        """Name the group, the job and the rank."""
        state = "destroyed" if self._closed else f"controller={self._worker.rendezvous.controller}"
        return (
            f"<ina.torch.ProcessGroupIna group={self._group_id} job={self._worker.rendezvous.job}"
            f" rank={self.rank()}/{self.size()} {state}>"
        )

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
        (tensor, op, timeout). Raises :class:`UnsupportedDeviceError` for a tensor on a device that
        the group was not made for; what fails later is raised by the work.
        """
        if isinstance(opts, AllreduceOptions):
            op, timeout = opts.reduceOp, opts.timeout
        else:
            op = kwargs.get("op", opts)
        tensors = [tensors] if isinstance(tensors, torch.Tensor) else tensors
        return self._all_reduce(tensors, op, timeout)

    def allreduce_coalesced(
        self,
        tensors: Sequence[torch.Tensor],
        opts: AllreduceCoalescedOptions | None = None,
    ) -> Work:
        """Like :meth:`allreduce` for several tensors, completed together."""
        if opts is None:
            return self._all_reduce(tensors, ReduceOp.SUM, None)
        return self._all_reduce(tensors, opts.reduceOp, opts.timeout)

    def by_blocks(self, setting: SparseSetting | None) -> Blockwise:
        """For a hook's sums by blocks; None: as the group's settings say. Raises SettingError."""
        setting = self._settings.sparse if setting is None else setting
        return Blockwise(self._worker, setting, LAG_OF_BUCKETS)

    def average_bucket(
        self, tensor: torch.Tensor, by: Blockwise, index: int, *, is_last: bool
    ) -> Work:
        """As :meth:`allreduce` AVG, of one of a step's buckets; all of these before one is waited
        for. Of those that go by blocks each agrees while the one before is summed."""
        try:
            return self._all_reduce([tensor], ReduceOp.AVG, None, by, index)
        finally:
            if is_last:
                by.pipeline.flush()

    def _all_reduce(
        self,
        tensors: Sequence[torch.Tensor],
        op: ReduceOp | ReduceOp.RedOpType,
        timeout: timedelta | None,
        by: Blockwise | None = None,
        bucket: int | None = None,
    ) -> Work:
        self._check_open("all_reduce")
        tensors = [waited(tensor) for tensor in tensors]
        if not self._sums_on(tensors):
            self._count_other("all_reduce", device_type_of(tensors))
            return self._all_reduce_inner(tensors, op, timeout)
        for tensor in tensors:
            reason = why_not_network(tensor, op, rows=True)
            if reason is not None:
                for _ in tensors:
                    self._paths.fallback(kind("all_reduce", op, tensor.dtype), reason)
                return self._all_reduce_inner(tensors, op, timeout)
        chosen = self._blockwise if by is None else by
        parts = [pieces.by_blocks(tensor, op, chosen.choice, bucket) for tensor in tensors]
        try:
            return self._sum("all_reduce", parts, op, timeout, pipeline=chosen.pipeline)
        finally:
            if by is None:
                chosen.pipeline.flush()

    def allreduce_coded(
        self, tensor: torch.Tensor, coding: Coding, op: ReduceOp.RedOpType = ReduceOp.SUM
    ) -> Work:
        """Sum or average a tensor in CPU memory over the ranks, in place, its values travelling so.

        Raises :class:`GroupClosedError`; what fails later is raised by the work.
        """
        return self._sum("all_reduce", [pieces.whole(tensor)], op, None, coding)

    def _all_reduce_inner(
        self,
        tensors: Sequence[torch.Tensor],
        op: ReduceOp | ReduceOp.RedOpType,
        timeout: timedelta | None,
    ) -> Work:
        single = len(tensors) == 1
        opts = AllreduceOptions() if single else AllreduceCoalescedOptions()
        opts.reduceOp = op  # type: ignore[assignment]  # torch converts the enumeration
        if timeout is not None:
            opts.timeout = timeout
        name = "allreduce" if single else "allreduce_coalesced"
        return self._forward(name, (tensors, opts), {}, counted=True)

    def _sum(
        self,
        name: str,
        pieces: Sequence[Piece],
        op: ReduceOp | ReduceOp.RedOpType,
        timeout: timedelta | None,
        coding: Coding | None = None,
        pipeline: Pipeline | None = None,
    ) -> Work:
        self._check_open(name)
        session_op = network_op(op)
        assert session_op is not None
        buffers = [piece.buffer for piece in pieces]  # those before they are staged
        if device_type_of(buffers) != "cpu":
            pieces, session_op = self._stage(pieces, session_op)

        def begin(piece: Piece) -> Sum:
            return self._begin(name, op, piece, session_op, coding, pipeline)

        def what() -> str:
            return f"{name} {op_name(op)} of {', '.join(map(what_is, buffers))}"

        return self._work(what, pieces, timeout, begin)

    def _move(self, name: str, pieces: Sequence[Piece], timeout: timedelta | None) -> Work:
        self._check_open(name)

        def begin(piece: Piece) -> Sum:
            assert piece.what is not None
            target = _target(piece)
            return self._worker.start(
                piece.what, piece.buffer, target, lambda sent: self._moved(name, piece, sent)
            )

        def what() -> str:
            moved = ", ".join(what_is(piece.tensor) for piece in pieces)
            return name if name == "barrier" else f"{name} of {moved}"

        return self._work(what, pieces, timeout, begin)

    def _moved(self, name: str, piece: Piece, over_network: bool) -> None:
        assert piece.what is not None
        what = name if name == "barrier" else kind(name, None, piece.tensor.dtype)
        if over_network:
            self._paths.moved(name, what, _target(piece).nbytes)
        else:
            self._paths.fallback(what, "the switch was lost")

    def _check_open(self, name: str) -> None:
        if self._closed:
            raise GroupClosedError(f"{name} on group {self._group_id}: it has been destroyed")

    def _work(
        self,
        what: Callable[[], str],
        pieces: Sequence[Piece],
        timeout: timedelta | None,
        begin: Callable[[Piece], Sum],
    ) -> Work:
        """``what()``: with tensors and all, for messages."""

        def what_where() -> str:
            where = f"job {self._worker.rendezvous.job}, rank {self.rank()} of {self.size()}"
            return f"{what()} in {where}"

        work = NetworkWork(what_where, pieces)
        self._bound(work, timeout)
        for index, piece in enumerate(pieces):
            try:
                one = begin(piece)
            except Exception as error:
                # What has started keeps its memory until it is done, then the work fails.
                work.fail(error, len(pieces) - index)
                break
            work.watch(one)
        return work

    def _begin(
        self,
        name: str,
        op: ReduceOp | ReduceOp.RedOpType,
        piece: Piece,
        session_op: Reduction,
        coding: Coding | None,
        pipeline: Pipeline | None,
    ) -> Sum:
        part, tensor = piece.part, piece.tensor

        def sent(over_network: bool) -> None:
            if over_network:
                elems = piece.buffer.numel() if part is None else part.elems
                self._paths.network(name, tensor, elems)
            else:
                self._paths.fallback(kind(name, op, tensor.dtype), "the switch was lost")
            if part is not None:
                self._paths.sparse(part.blocks, part.own, part.union)

        if part is None and piece.what is not None:
            what = self._worker.coding.of(piece.what)
            return self._worker.start(what, piece.buffer, _target(piece), sent)
        if part is None:
            one = self._worker.submit(piece.buffer, session_op, coding, sent)
            if pipeline is not None:
                pipeline.flush()
            return one
        assert pipeline is not None, "of all_reduce"
        sparse = pipeline.begin(part, session_op, coding, sent)
        return self._compared(part, sparse) if isinstance(part, CooRows) else sparse

    def _compared(self, part: CooRows, one: Sum) -> Sum:
        """Ranks that differ in a sparse tensor's kind are told what each has."""
        self._rows_begun += 1
        number = self._rows_begun
        where = f"job {self._worker.rendezvous.job}, sparse all_reduce {number}"

        def explain(error: RanksDifferError) -> RanksDifferError:
            try:
                kinds = told_apart(self._store, number, self.rank(), self.size(), part.kind)
            except RuntimeError:  # a rank of which the network knows more
                return RanksDifferError(f"{where}: rank {self.rank()} has {part.kind}: {error}")
            each = "; ".join(f"rank {rank} has {one}" for rank, one in enumerate(kinds))
            return RanksDifferError(f"{where}: ranks differ: {each}")

        return Compared(one, explain)

    def _stage(self, pieces: Sequence[Piece], op: Reduction) -> tuple[Sequence[Piece], Reduction]:
        """For tensors of another device: see :mod:`ina.torch.cuda.staging`."""
        if self._worker.coding.bits < 32:
            return staging.stage_as_they_are(pieces), op

        def agree(codes: torch.Tensor) -> None:
            self._gloo.allreduce([codes], ReduceOp.MAX).wait()

        staged = staging.stage(
            pieces,
            op=op,
            workers=self.size(),
            block_elems=self._worker.values_per_packet,
            agree=agree,
        )
        return staged, Reduction.SUM

    # -- end -------------------------------------------------------------------------------------

    def stats(self, *, with_switch: bool = True) -> GroupStats:
        """Counters so far; see :class:`GroupStats`. Asking the embedded switch takes a moment."""
        paths, loss = self._paths, self._worker.switch_loss
        reasons = dict(paths.gloo_all_reduces)  # other threads count on
        # A session's own sparse sums: the group's come before it, and are counted here.
        session = {
            name: value
            for name, value in dataclasses.asdict(self._worker.stats()).items()
            if not name.startswith("sparse_")
        }
        with_switch = with_switch and self._worker.rendezvous.embedded_here
        return GroupStats(
            job=self._worker.rendezvous.job,
            rank=self.rank(),
            world_size=self.size(),
            controller=self._worker.rendezvous.controller,
            network_all_reduces=paths.done["all_reduce"],
            network_reduce_scatters=paths.done["reduce_scatter"],
            network_elems=paths.network_elems,
            network_bytes=paths.network_bytes,
            fallbacks=sum(reasons.values()),
            fallback_reasons=reasons,
            other_collectives=dict(paths.others),
            session=session,
            switch=embedded.counters() if with_switch else None,
            switch_loss=None if loss is None else dataclasses.asdict(loss),
            switch_returns=self._worker.switch_returns,
            sparse_all_reduces=paths.sparse_all_reduces,
            sparse_blocks=paths.sparse_blocks,
            sparse_own_blocks=paths.sparse_own_blocks,
            sparse_union_blocks=paths.sparse_union_blocks,
            network_reduces=paths.done["reduce"],
            network_all_gathers=paths.done["all_gather"],
            network_broadcasts=paths.done["broadcast"],
            network_barriers=paths.done["barrier"],
            network_moved_bytes=paths.moved_bytes,
        )

    def shutdown(self) -> None:
        """Leave the job; called by ``destroy_process_group``. A second call does nothing.

        The process that runs the embedded switch waits for the other workers to leave, at most
        ``INA_LEAVE_TIMEOUT_S``.
        """
        self._close(self._settings.leave_timeout_s)

    def abort(self) -> None:
        """Leave the job at once; what is under way ends with :class:`GroupClosedError`.

        Other ranks are not told: theirs fail by their timeout, as with torch's own backends. Gloo
        cannot abort: collectives that are under way there end by their own timeout.
        """
        if self._start_to_close():
            self._deadlines.close()
            self._worker.abort(f"group {self._group_id}")

    def _close(self, leave_timeout_s: float) -> None:
        if self._start_to_close():
            self._write_stats()
            self._deadlines.close()
            self._devices.close()
            self._worker.close(leave_timeout_s)

    def _start_to_close(self) -> bool:
        """True the first time; never in a fork (a DataLoader's worker), which has not joined."""
        if os.getpid() != self._pid:
            return False
        with self._close_lock:
            if self._closed:
                return False
            self._closed = True
        LIVING.discard(self)
        GROUPS.remove(self)
        return True

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

    # -- timeouts --------------------------------------------------------------------------------

    def set_timeout(self, timeout: timedelta) -> None:
        """The timeout of every collective from now on, unless it has its own."""
        self._gloo.set_timeout(timeout)

    def _default_timeout_s(self) -> float:
        """As torch keeps it: ``dist.distributed_c10d._set_pg_timeout`` changes it in Gloo alone."""
        timeout: timedelta = self._gloo_backend.options._timeout
        return timeout.total_seconds()

    def _bound(self, work: NetworkWork, timeout: timedelta | None) -> None:
        """See to a timeout that the session does not know: the operation's own, or a new default.

        A group cannot go on without one operation of which its peers may have the result: as with
        torch's own backends, all that comes after fails too.
        """
        seconds = timeout.total_seconds() if timeout is not None else 0.0
        if seconds <= 0:  # torch's way to say that there is none
            seconds = self._default_timeout_s()
            if seconds == self._session_timeout_s:
                return
        self._deadlines.after(
            seconds, work.is_completed, lambda: self._worker.fail(work.timeout_error(seconds))
        )


def _target(piece: Piece) -> torch.Tensor:
    return piece.buffer if piece.target is None else piece.target


def close_living_groups() -> None:
    """Shut down every group that is still open; errors are logged, never raised.

    Ctrl-C ends a wait for other ranks, and the program goes on to its end.
    """
    for group in list(LIVING):
        try:
            group.shutdown()
        except KeyboardInterrupt:
            _log.warning("ina: interrupted while it left group %s", group.group_name)
        except Exception as error:
            _log.error("ina: could not close a process group at exit: %s", error)


def close_at_exit() -> None:
    """Run :func:`close_living_groups` at exit.

    ``atexit`` runs after the interpreter has stopped its thread pools, and the embedded
    controller's gRPC server needs one to answer the others' Leave. ``threading._register_atexit``
    runs before that (and in multiprocessing's children, where ``atexit`` does not run at all); it
    is private, so fall back to ``atexit`` where it is missing.
    """
    register = getattr(threading, "_register_atexit", atexit.register)
    register(close_living_groups)
