"""A pipeline at interfaces: which are its ports, and where copies of a frame go."""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping
from types import MappingProxyType

from ina.switch.errors import InvalidEntryError
from ina.switch.pipeline import MAX_PORTS, Replicas
from ina.switch.xdp.libbpf import LOOPBACK, Map, Programs, Ring, copies_map

NO_LOSSES: Mapping[int, float] = MappingProxyType({})
_ALL = 1 << 32
MOST_COPIES = 64
"""INA_MOST_COPIES of runtime/ina_bpf.h."""


class AttachedPorts:
    """What the maps say of interfaces."""

    def __init__(
        self,
        kernel: Programs,
        interfaces: Mapping[int, int],
        cpu_port: int,
        *,
        is_generic: bool = False,
        losses: Mapping[int, float] = NO_LOSSES,
    ) -> None:
        """``interfaces``: by port number, their indices; ``is_generic``: they run programs in
        generic mode; ``losses``: by port, the share of frames lost on purpose. Raises XdpError."""
        self._kernel, self._interfaces, self._cpu_port = kernel, dict(interfaces), cpu_port
        self._maps = kernel.maps
        self._rids: dict[int, set[bytes]] = {}
        self._find(set(interfaces.values()), set(interfaces))
        for port, index in interfaces.items():
            self._maps["ina_ports"].write(struct.pack("<I", index), struct.pack("<I", port))
            self._maps["ina_interfaces"].write(struct.pack("<I", port), self._leaving(index))
        self._maps["ina_ports"].write(struct.pack("<I", LOOPBACK), struct.pack("<I", cpu_port))
        program = struct.pack("<i", kernel.program("ina_packet_in"))
        self._maps["ina_to_controller"].write(bytes(4), program)
        self.ring = Ring(self._maps["ina_controller"])
        for port in interfaces:
            of_all = min(round(losses.get(port, 0.0) * _ALL), _ALL - 1)
            self._maps["ina_losses"].write(struct.pack("<I", port), struct.pack("<I", of_all))
        live = struct.pack("<IIII", 1, cpu_port, is_generic, any(losses.values()))
        self._maps[".data.live"].write(bytes(4), live)

    def _find(self, indices: set[int], ports: set[int]) -> None:
        """What a former process has left: of other interfaces it is removed."""
        for key in self._maps["ina_ports"].keys():  # noqa: SIM118
            if int.from_bytes(key, "little") not in indices:
                self._maps["ina_ports"].delete(key)
        for port in range(MAX_PORTS):
            name = struct.pack("<I", port)
            if port not in ports and self._maps["ina_interfaces"].read(name) is not None:
                self._maps["ina_interfaces"].delete(name)
        for key in self._maps["ina_groups"].keys():  # noqa: SIM118
            self._rids[int.from_bytes(key, "little")] = set()
        for key in self._maps["ina_rids"].keys():  # noqa: SIM118
            (group,) = struct.unpack_from("<H", key)
            self._rids.setdefault(group, set()).add(key)

    @property
    def groups(self) -> set[int]:
        """Those that are there."""
        return set(self._rids)

    def check(self, group: int, replicas: Replicas) -> None:
        """Raises InvalidEntryError: there are copies that the kernel cannot make."""
        if len(replicas) > MOST_COPIES:
            raise InvalidEntryError(
                f"multicast group {group}: {len(replicas)} copies, and device xdp makes at most"
                f" {MOST_COPIES}"
            )
        if any(port == self._cpu_port for port, _ in replicas):
            raise InvalidEntryError(
                f"multicast group {group}: a copy to the controller's port on device xdp"
            )

    def set_group(self, group: int, replicas: Replicas) -> None:
        """A frame is copied to all of the former interfaces, or to all of these; while it changes,
        a copy has the rid of either. A port without an interface gets none.

        Raises MemoryError: there is no room for so many groups.
        """
        rids: dict[bytes, bytes] = {}
        leaving: list[bytes] = []
        counts: dict[int, int] = {}
        for port, rid in replicas:
            index = self._interfaces.get(port)
            if index is None:
                continue
            number = counts.get(port, 0)
            counts[port] = number + 1
            rids[struct.pack("<HHI", group, port, number)] = struct.pack("<I", rid)
            leaving.append(self._leaving(index))
        for key, rid_bytes in rids.items():
            _check_room(group, self._maps["ina_rids"].write(key, rid_bytes))
        groups: Map = self._maps["ina_groups"]
        name = struct.pack("<I", group)
        if leaving:
            copies = copies_map(MOST_COPIES)
            for number, value in enumerate(leaving):
                copies.write(struct.pack("<I", number), value)
            try:
                _check_room(group, groups.write(name, struct.pack("<i", copies.descriptor)))
            finally:
                os.close(copies.descriptor)
        elif groups.read(name) is not None:
            groups.delete(name)
        for key in self._rids.get(group, set()) - rids.keys():
            self._maps["ina_rids"].delete(key)
        self._rids[group] = set(rids)
        if not leaving:
            del self._rids[group]

    def inject(self, packet: bytes) -> None:
        """A frame of the controller. Raises XdpError."""
        self._kernel.send("ina_ingress", packet)

    def close(self, *, goes_on: bool = False) -> None:
        """Nothing leaves any more, unless it ``goes_on``. Idempotent."""
        if not goes_on:
            self._maps[".data.live"].write(bytes(4), bytes(16))
        self.ring.close()

    def _leaving(self, index: int) -> bytes:
        return struct.pack("<Ii", index, self._kernel.program("ina_leave"))


def _check_room(group: int, code: int) -> None:
    if code:
        raise MemoryError(f"no memory for multicast group {group}")
