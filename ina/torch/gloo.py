"""The inner Gloo group: every collective that the network does not do, forwarded and counted.

torch calls a Python process group in two ways. ``torch.distributed`` calls the methods below.
C++ code (DDP, functional collectives) calls only those that torch's trampoline knows, which reach
the methods below too; for any other it goes straight to the backend registered for the device,
which is the same Gloo object, so the result is the same but the call is not counted.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
from torch._C._distributed_c10d import Store
from torch.distributed import ProcessGroup, ProcessGroupGloo, Work

from ina.torch.paths import Paths


class GlooForwarding(ProcessGroup):
    """A process group whose collectives all go through an inner Gloo group."""

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

    def get_group_store(self) -> Store:
        """The store that this group met in."""
        return self._store

    def _forward(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Work:
        self._paths.other(name)
        work: Work = getattr(self._gloo, name)(*args, **kwargs)
        return work


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
    "recv_anysource",
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
