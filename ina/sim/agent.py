"""What answers controllers on a switch of the virtual network, as its P4Runtime server would."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from finsy.proto import U128, p4r

from ina.errors import InaError
from ina.sim.fabric import SimSwitch
from ina.switch.errors import EntryNotFoundError
from ina.switch.p4runtime.arbitration import Arbitration, Client
from ina.switch.p4runtime.status import StatusError
from ina.switch.pipeline import Pipeline
from ina.tables.values import Count, Counter, Entry, Group, Item

DEVICE_ID = 1


class RefusedError(InaError):
    """The switch answered, and did not do what it was told."""


class SwitchAgent:
    """One switch's. Every method that a client calls raises :class:`RefusedError`."""

    def __init__(
        self,
        switch: SimSwitch,
        *,
        has_program: bool = False,
        on_program: Callable[[SimSwitch], None] = lambda switch: None,
        on_insert: Callable[[SimSwitch], None] = lambda switch: None,
    ) -> None:
        """The switch has power.

        Args:
            switch: what it speaks for.
            has_program: the switch runs the program without being told to, after each power-on.
            on_program: called when the program was set, to write what is not the controller's.
            on_insert: called after each write that inserts something.
        """
        self.switch = switch
        self._has_program = has_program
        self._on_program = on_program
        self._on_insert = on_insert
        self.has_power = False
        self.boots = 0
        """How often power came on; sessions of former times are void."""
        self._arbitration = Arbitration(DEVICE_ID)
        self._streams: dict[Client, Callable[[], None]] = {}
        self.power_on()

    def power_off(self, *, silently: bool = False) -> None:
        """Registers, entries and groups are lost.

        ``silently``: as a machine does; else clients hear that their streams have ended.
        """
        if not self.has_power:
            return
        self.has_power = False
        self.switch.power_off()
        streams, self._streams = self._streams, {}
        if not silently:
            for on_end in streams.values():
                on_end()

    def power_on(self) -> None:
        """The server is up; the program is to be set, unless it is there by itself."""
        if self.has_power:
            return
        self.has_power = True
        self.boots += 1
        self._arbitration = Arbitration(DEVICE_ID)
        self.switch.power_off()
        if self._has_program:
            self.set_program()

    def arbitrate(self, client: Client, election_id: int, on_end: Callable[[], None]) -> None:
        """A client's election id, 0: none. What follows from it is sent to all whom it concerns.

        ``on_end``: called when the server ends the client's stream.
        """
        update = p4r.MasterArbitrationUpdate(device_id=DEVICE_ID)
        if election_id:
            update.election_id.CopyFrom(U128.encode(election_id))
        try:
            self._arbitration.update(client, update)
        except StatusError as error:
            raise RefusedError(str(error)) from None
        self._streams[client] = on_end

    def leave(self, client: Client) -> None:
        """A client's stream has ended."""
        if self._streams.pop(client, None) is not None:
            self._arbitration.leave(client)

    def require_primary(self, election_id: int) -> None:
        """Only the primary writes."""
        try:
            self._arbitration.require_primary("", U128.encode(election_id))
        except StatusError as error:
            raise RefusedError(str(error)) from None

    @property
    def has_program(self) -> bool:
        """Whether the program runs."""
        return self.switch.pipeline is not None

    def set_program(self) -> None:
        """All is empty then, also where it runs already."""
        self.switch.power_on()
        self._on_program(self.switch)

    def write(self, kind: str, items: Sequence[Item]) -> None:
        """``insert``, ``modify`` or ``delete`` of all, though some fail; then tells of the first.

        To delete what is not there is no error.
        """
        self._need_program()
        write = getattr(self.switch, kind)
        errors: list[InaError] = []
        for item in items:
            try:
                write([item])
            except InaError as error:
                errors.append(error)
        if kind == "insert":
            self._on_insert(self.switch)
        if errors:
            raise RefusedError(str(errors[0]))

    def read_entries(self, table: str) -> list[Entry]:
        """Of one table, or all."""
        self._need_program()
        return self.switch.entries(table)

    def read_groups(self) -> list[Group]:
        """All."""
        self._need_program()
        return self.switch.groups()

    def read_counts(self, counters: Sequence[Counter]) -> list[Count]:
        """Cells of counters."""
        pipeline = self._need_program()
        try:
            return [Count(*pipeline.counter(it.name, it.index)) for it in counters]
        except EntryNotFoundError as error:
            raise RefusedError(str(error)) from None

    def clear_counts(self, counters: Sequence[Counter]) -> None:
        """Cells of counters are 0."""
        pipeline = self._need_program()
        for counter in counters:
            pipeline.set_counter(counter.name, counter.index, 0, 0)

    def read_row_counts(self, table: str) -> list[tuple[Entry, Count]]:
        """Of a table with a direct counter."""
        self._need_program()
        return self.switch.row_counts(table)

    def _need_program(self) -> Pipeline:
        pipeline = self.switch.pipeline
        if pipeline is None:
            raise RefusedError("no pipeline is set")
        return pipeline
