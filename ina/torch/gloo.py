"""The inner groups: every collective that the network does not do, forwarded and counted.

CPU tensors go through Gloo, tensors of other devices through what :mod:`ina.torch.devices` finds.

torch calls a Python process group in two ways. ``torch.distributed`` calls the methods below.
C++ code (DDP, functional collectives) calls only those that torch's trampoline knows, which reach
the methods below too; for any other it goes straight to the backend registered for the device,
which is the same object, so the result is the same but the call is not counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import Store
from torch.distributed import ProcessGroup, ProcessGroupGloo, Work

from ina.torch.dense import Loan
from ina.torch.devices import OURS, DeviceGroups, Unconnected, device_type_of
from ina.torch.paths import Paths


class GlooForwarding(ProcessGroup):
    """A process group whose collectives all go through inner groups."""

    def __init__(
        self, store: Store, rank: int, size: int, timeout: timedelta, paths: Paths
    ) -> None:
        """Connects the Gloo group; blocks until all ranks are there or ``timeout`` has passed."""
        super().__init__(rank, size)  # type: ignore[call-arg]  # the stub lacks this one
        self._store = store
        self._paths = paths
        backend = ProcessGroupGloo(store, rank, size, timeout)
        cpu, gloo = torch.device("cpu"), ProcessGroup.BackendType.GLOO
        for group in (self, inner := ProcessGroup(store, rank, size)):
            group._set_default_backend(gloo)
            group._register_backend(cpu, gloo, backend)
        self._gloo: ProcessGroup = inner
        self._devices = DeviceGroups(self, inner)

    def get_group_store(self) -> Store:
        """The store that this group met in."""
        return self._store

    def _get_backend(self, device: torch.device) -> Any:
        """The backend registered for ``device``; raises RuntimeError if there is none (yet)."""
        try:
            return super()._get_backend(device)
        except RuntimeError:
            if self in dist.distributed_c10d._world.pg_map:
                raise
            return Unconnected()  # torch asks at once where init_process_group got a device_id

    def _sums_on(self, tensors: Iterable[torch.Tensor]) -> bool:
        """Whether the network sums tensors of their device; raises UnsupportedDeviceError."""
        return self._devices.backend_of(device_type_of(tensors)) == OURS

    def _count_other(self, collective: str, device_type: str, reason: str | None = None) -> None:
        backend = self._devices.backend_of(device_type)
        if backend == OURS:
            self._paths.other(collective, device_type, reason=reason)
        else:
            self._paths.other(collective, device_type, backend, self._devices.made_with)

    def _forward(
        self,
        name: str,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        *,
        counted: bool = False,
        reason: str | None = None,
    ) -> Work:
        """Ask the inner group, with contiguous tensors; ``counted``: the caller has.

        ``reason``: why the network does not do what it does of others.
        """
        device_type = device_type_of((*args, *kwargs.values()))
        inner = self._devices.group_for(device_type)
        if not counted:
            self._count_other(name, device_type, reason)
        loan = Loan()
        first = loan.read if name == "send" else loan.written
        given = [(loan.read if place else first)(one) for place, one in enumerate(args)]
        named = {
            key: (loan.read if key.startswith("input") else first)(one)
            for key, one in kwargs.items()
        }
        return loan.give_back(getattr(inner, name)(*given, **named))

    def recv_anysource(self, tensors: list[torch.Tensor], tag: int) -> Work:
        """Receive from whoever sends first."""
        # Gloo refuses to receive nothing from anyone, and hands what came to whoever receives next.
        some = [one if one.numel() else one.new_empty(1) for one in tensors]
        return self._forward("recv_anysource", (some, tag), {})


# Names that a torch version lacks are skipped; some come in an old and a new spelling.
_COLLECTIVES = (
    "broadcast",
    "reduce",
    "allgather",
    "allgather_coalesced",
    "_allgather_base",
    "all_gather_single",
    "all_gather_single_coalesced",
    "allgather_into_tensor_coalesced",
    "gather",
    "scatter",
    "reduce_scatter",
    "_reduce_scatter_base",
    "reduce_scatter_single",
    "reduce_scatter_single_coalesced",
    "reduce_scatter_tensor_coalesced",
    "alltoall",
    "alltoall_base",
    "all_to_all_single",
    "send",
    "recv",
    "barrier",
    "monitored_barrier",
)


def _forwarding(name: str) -> Callable[..., Work]:
    def call(self: GlooForwarding, *args: Any, **kwargs: Any) -> Work:
        return self._forward(name, args, kwargs)

    call.__name__ = name
    return call


for _name in _COLLECTIVES:
    if hasattr(ProcessGroup, _name):
        setattr(GlooForwarding, _name, _forwarding(_name))
