"""Rows that this host has a replica of, as the cores keep them."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np

from ina.embed.bags import Bags
from ina.embed.hot import Rows
from ina.embed.service import Floats, LookUp, Service


class Replicas:
    """Of a service's hot rows. What is done here, all hosts do between the same two steps."""

    def __init__(self, service: Service, first_change: int) -> None:
        """None is hot until the step `first_change`."""
        self._service = service
        self._native = service.native
        service.open_before(first_change)

    def gradients(self) -> Floats:
        """This host's of the step, of all tables, flat."""
        gradients = np.empty(self._native.hot_values(), np.float32)
        self._native.read_hot_gradients(gradients.ctypes.data)
        return gradients

    def apply(self, sums: Floats, rate: float) -> None:
        """Update the replicas by the sums of all hosts' gradients."""
        self._native.apply_hot(sums.ctypes.data, rate)

    def digest(self) -> int:
        """Of rows, values and what the optimiser keeps: the same on all hosts."""
        crc = 0
        for table in range(len(self._service.dims)):
            rows, both = self._read(table)
            crc = zlib.crc32(both.tobytes(), zlib.crc32(rows.tobytes(), crc))
        return crc

    def settle(self) -> None:
        """Write replicas of rows that this host owns to where :meth:`Service.read` finds them."""
        self._native.settle_hot()
        for table in range(len(self._service.dims)):
            self._service.settle(table, *self._read(table))

    def change(self, step: int, wanted: Sequence[Rows], next_change: int) -> None:
        """From `step` on these rows of each table are hot. Raises HostLostError.

        Values of rows that have not been come from their owners, with what the optimiser keeps.
        """
        self.settle()
        asked = []
        for table, rows in enumerate(wanted):
            fresh = np.setdiff1d(rows, np.array(self._native.hot_rows(table), np.uint32))
            bags = Bags.of(fresh, limit=2**32)
            asked.append((fresh, self._service.look_up(step, table, bags, with_state=True)))
        for table, (fresh, pending) in enumerate(asked):
            self._set(table, wanted[table], fresh, pending)
        self._service.open_before(next_change)
        self._service.refreshes += 1

    def _set(self, table: int, wanted: Rows, fresh: Rows, pending: LookUp) -> None:
        had, before = self._read(table)
        rows = np.concatenate([had, fresh])
        both = np.concatenate([before, pending.wait()])
        order = np.argsort(rows, kind="stable")
        both = both[order[np.searchsorted(rows[order], wanted)]]
        dim = self._service.dims[table]
        values = np.ascontiguousarray(both[:, :dim])
        state = np.ascontiguousarray(both[:, dim:])
        wanted = np.ascontiguousarray(wanted)
        self._native.set_hot(
            table, wanted.size, wanted.ctypes.data, values.ctypes.data, state.ctypes.data
        )

    def _read(self, table: int) -> tuple[Rows, Floats]:
        """Hot rows, and of each the values and what the optimiser keeps."""
        rows = np.array(self._native.hot_rows(table), np.uint32)
        dim, state_values = self._service.dims[table], self._service.state_values(table)
        values = np.empty((rows.size, dim), np.float32)
        state = np.empty((rows.size, state_values), np.float32)
        self._native.read_hot(table, values.ctypes.data, state.ctypes.data)
        return rows, np.concatenate([values, state], axis=1)
