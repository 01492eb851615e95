"""Backends of a group by type of device: what ``"cpu:ina,cuda:nccl"`` asks for.

torch makes the backends of such a string one by one, and stops when one is a process group written
in Python: it takes that one as the whole group. So the others are made here, by torch itself, each
as a group of its own with the same ranks. That happens in the first collective on a tensor of that
device, which all ranks come to alike.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import ProcessGroup

from ina.torch.errors import UnsupportedDeviceError

_log = logging.getLogger("ina.torch")

OURS = "ina"
DEVICES = ["cpu", "cuda"]
"""Where ``init_process_group("ina")``, without a device, sums."""


class DeviceGroups:
    """Which backend a device's tensors go to, and the groups of the backends other than ina."""

    def __init__(self, owner: ProcessGroup, gloo: ProcessGroup) -> None:
        """``owner``: the ina group. ``gloo``: its inner group for CPU tensors."""
        self._owner = owner
        self._gloo = gloo
        self._groups: dict[str, ProcessGroup] = {}
        self._config: dict[str, str] | None = None

    def backend_of(self, device_type: str) -> str:
        """The backend's name, in small letters: ``ina`` where the network sums.

        Raises :class:`UnsupportedDeviceError` if the group was made without one for this device.
        """
        config = self._configuration()
        if device_type not in config:
            raise UnsupportedDeviceError(
                f"a tensor on {device_type}: the group was made with {self.made_with}; name a"
                f" backend for it: init_process_group('{self.made_with},{device_type}:<backend>')"
            )
        return config[device_type]

    @property
    def made_with(self) -> str:
        """As torch takes it: ``cpu:ina,cuda:nccl``."""
        return ",".join(f"{device}:{name}" for device, name in self._configuration().items())

    def group_for(self, device_type: str) -> ProcessGroup:
        """The group that does what the network does not; made at the first call for a device.

        Raises :class:`UnsupportedDeviceError`, and what the backend raises that cannot start.
        """
        if device_type == "cpu" and self.backend_of("cpu") in (OURS, "gloo"):
            return self._gloo
        if device_type not in self._groups:
            self._groups[device_type] = self._make(device_type)
        return self._groups[device_type]

    def _make(self, device_type: str) -> ProcessGroup:
        name = self.backend_of(device_type)
        if name == OURS:
            name = "nccl" if device_type == "cuda" and dist.is_nccl_available() else "gloo"
        ranks = dist.get_process_group_ranks(self._owner)
        _log.info("ina: group %s: backend %s for %s", self._owner.group_name, name, device_type)
        group = dist.new_group(
            ranks,
            backend=name,
            # Only this group's ranks come here, or two of them for send and recv: the new group's
            # name must not depend on how many others a process has made.
            use_local_synchronization=True,
            group_desc=f"{device_type} tensors of ina's group {self._owner.group_name}",
        )
        assert isinstance(group, ProcessGroup)  # this process is one of the ranks
        device = torch.device(device_type)
        # C++ code that does not ask a Python group looks here.
        kind = dist.Backend.backend_type_map.get(name, ProcessGroup.BackendType.CUSTOM)
        self._owner._register_backend(device, kind, group._get_backend(device))
        return group

    def _configuration(self) -> dict[str, str]:
        if self._config is None:
            try:
                pairs = dist.get_backend_config(self._owner).split(",")
            except (ValueError, RuntimeError, AssertionError, TypeError):  # made otherwise
                return dict.fromkeys(DEVICES, OURS)
            # CPU tensors are always ours unless somebody else's: barriers and objects need them.
            self._config = {"cpu": OURS, **dict(pair.split(":", 1) for pair in pairs)}
        return self._config

    def close(self) -> None:
        """Destroy the groups that were made, unless torch has."""
        groups, self._groups = self._groups, {}
        for group in groups.values():
            if group in dist.distributed_c10d._world.pg_map:
                dist.destroy_process_group(group)


class Unconnected:
    """What torch hears of a device's backend before it is made: nothing to split or to connect."""

    supports_splitting = False


def device_type_of(arguments: Iterable[Any]) -> str:
    """The device of the first tensor in the arguments of a collective; ``cpu`` without any."""
    for argument in arguments:
        if isinstance(argument, torch.Tensor):
            return argument.device.type
        if isinstance(argument, (list, tuple)) and argument:
            return device_type_of(argument)
    return "cpu"
