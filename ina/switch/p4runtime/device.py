"""One P4Runtime device: its clients, its pipeline, and the lock over both."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from finsy.proto import p4r, rpc_code

from ina.errors import InaError
from ina.switch.p4runtime.arbitration import Arbitration, Client
from ina.switch.p4runtime.device_config import program_of
from ina.switch.p4runtime.forwarding import Forwarding
from ina.switch.p4runtime.keeping import change_of, entities_of, restore
from ina.switch.p4runtime.packet_io import message_from_packet, packet_from_message
from ina.switch.p4runtime.schema import Schema, build_schema
from ina.switch.p4runtime.status import (
    StatusError,
    denied,
    from_error,
    invalid,
    not_found,
    precondition,
    unimplemented,
)
from ina.switch.pipeline import Pipeline
from ina.switch.target import Image, Target
from ina.tables import port_drops
from ina.tables.values import PortDrop

_SetRequest = p4r.SetForwardingPipelineConfigRequest
_LOADING = (_SetRequest.VERIFY, _SetRequest.VERIFY_AND_SAVE, _SetRequest.VERIFY_AND_COMMIT)


@dataclass
class _Loaded:
    """A configuration that was verified."""

    config: p4r.ForwardingPipelineConfig
    image: Image
    forwarding: Forwarding

    @classmethod
    def power_on(
        cls, config: p4r.ForwardingPipelineConfig, image: Image, schema: Schema
    ) -> _Loaded:
        """As at power-on."""
        return cls(config, image, Forwarding(schema, image.power_on()))

    def again(self, config: p4r.ForwardingPipelineConfig) -> _Loaded:
        """The same program as at power-on: nothing is read, planned or compiled."""
        return self.power_on(config, self.image, self.forwarding.schema)

    def is_of(self, config: p4r.ForwardingPipelineConfig) -> bool:
        """Whether the program is the same; its cookie and the form it is sent in may differ."""
        return config.p4info == self.config.p4info and (
            config.p4_device_config == self.config.p4_device_config
            or program_of(config.p4_device_config) == program_of(self.config.p4_device_config)
        )


class Device:
    """Thread-safe; every public method takes the lock, so writes are seen whole or not at all."""

    def __init__(
        self,
        device_id: int,
        target: Target,
        *,
        install: Callable[[Pipeline], None],
        inject: Callable[[bytes], bool],
        drops: Callable[[], Iterable[PortDrop]] = tuple,
    ) -> None:
        """``target`` runs the programs; ``install`` puts a pipeline to work and, when it returns,
        uses no other; ``inject`` sends a packet in by the CPU port and is False when its queue is
        full; ``drops``: of its ports."""
        self.device_id = device_id
        self._install = install
        self._inject = inject
        self._drops = drops
        self._target = target
        self._keeper = target.keeper
        self._lock = threading.RLock()
        self._arbitration = Arbitration(device_id)
        self._saved: _Loaded | None = None
        self._active: _Loaded | None = None
        self.was_taken_over = False
        """Whether the first pipeline was there before this process."""

    def check_id(self, device_id: int) -> None:
        """NOT_FOUND for another device's id."""
        if device_id != self.device_id:
            raise not_found(f"no device {device_id}; this is {self.device_id}")

    # Clients

    def arbitrate(self, client: Client, message: p4r.MasterArbitrationUpdate) -> None:
        """See :meth:`Arbitration.update`."""
        with self._lock:
            self._arbitration.update(client, message)

    def leave(self, client: Client) -> None:
        """See :meth:`Arbitration.leave`."""
        with self._lock:
            self._arbitration.leave(client)

    def packet_out(self, client: Client, message: p4r.PacketOut) -> None:
        """Send a packet into the pipeline by the CPU port."""
        with self._lock:
            if not self._arbitration.is_primary(client):
                raise denied("only the primary client may send packets")
            if self._active is None:
                raise precondition("no forwarding pipeline is set")
            packet = packet_from_message(self._active.forwarding.schema.packet_out, message)
        if not self._inject(packet):
            raise StatusError(rpc_code.RESOURCE_EXHAUSTED, "the packet-out queue is full")

    def packet_in(self, packet: bytes) -> None:
        """Hand a packet that left by the CPU port to the primary clients."""
        with self._lock:
            if self._active is None:
                return
            message = message_from_packet(self._active.forwarding.schema.packet_in, packet)
            if message is None:
                return
            for client in self._arbitration.primaries():
                client.send(p4r.StreamMessageResponse(packet=message))

    def tell_digests(self, now_ns: int, wall_ns: int) -> None:
        """Send the primary clients the digests that are due, by a steady clock and the time."""
        with self._lock:
            if self._active is None:
                return
            for digests in self._active.forwarding.digests.due(now_ns, wall_ns):
                for client in self._arbitration.primaries():
                    client.send(p4r.StreamMessageResponse(digest=digests))

    def acknowledge(self, client: Client, ack: p4r.DigestListAck) -> None:
        """The client has a list of digests."""
        with self._lock:
            if not self._arbitration.is_primary(client):
                raise denied("only the primary client may acknowledge digests")
            if self._active is None:
                raise precondition("no forwarding pipeline is set")
            self._active.forwarding.digests.acknowledge(ack)

    # The pipeline

    def set_config(self, request: _SetRequest) -> None:
        """SetForwardingPipelineConfig. Compiling happens outside of the lock."""
        self._require_primary(request.role, request.election_id)
        action = request.action
        if action == _SetRequest.COMMIT:
            if request.HasField("config"):
                raise invalid("COMMIT takes no config")
            self._commit_saved(request)
            return
        if action == _SetRequest.RECONCILE_AND_COMMIT:
            self._reconcile(request)
            return
        if action == _SetRequest.UNSPECIFIED:
            raise invalid("action is not set")
        if action not in _LOADING:  # clients may send any number
            raise invalid(f"action {action}: not one of P4Runtime's")
        loaded = self.load(request.config)
        if action == _SetRequest.VERIFY:
            loaded.forwarding.pipeline.close()
            return
        with self._lock:
            try:
                self._require_primary(request.role, request.election_id)
            except StatusError:  # another client became primary while this one's was compiled
                loaded.forwarding.pipeline.close()
                raise
            if action == _SetRequest.VERIFY_AND_SAVE:
                self._discard_saved()
                self._saved = loaded
            else:
                self._commit(loaded)

    def preload(self, config: p4r.ForwardingPipelineConfig) -> None:
        """Set a pipeline without a client. One that was taken over goes on; UnavailableError: it is
        of another program."""
        if self._keeper is not None and self.was_taken_over and self._active is not None:
            if not self._active.is_of(config):
                raise self._keeper.foreign("has another program")
            return
        loaded = self.load(config)
        with self._lock:
            self._commit(loaded)

    def take_over(self) -> None:
        """Goes on with what a former process has left to the target's keeper, if it has.

        Raises InaError: it cannot.
        """
        kept = None if self._keeper is None else self._keeper.kept()
        if kept is None:
            return
        config = p4r.ForwardingPipelineConfig.FromString(kept.config)
        image = self._target.read_and_build(program_of(config.p4_device_config))
        pipeline = image.take_over()
        try:
            forwarding = Forwarding(build_schema(config.p4info, image.program), pipeline)
            restore(forwarding, kept.entities)
            pipeline.settle()
            with self._lock:
                self._install(pipeline)
                self._active = _Loaded(config, image, forwarding)
                self.was_taken_over = True
        except BaseException:
            pipeline.close()
            raise

    def power_on(self) -> None:
        """The active program with nothing in its tables and registers, as if it were set again."""
        with self._lock:
            if self._active is None:
                raise precondition("no forwarding pipeline is set")
            self._commit(self._active.again(self._active.config))

    def load(self, config: p4r.ForwardingPipelineConfig) -> _Loaded:
        """Verify and compile; a StatusError says what cannot be.

        The program that is active already was verified and compiled: it gets a fresh state only.
        """
        if not config.p4_device_config or not config.HasField("p4info"):
            raise invalid("the config needs p4info and p4_device_config")
        kept = p4r.ForwardingPipelineConfig()
        kept.CopyFrom(config)
        program = program_of(config.p4_device_config)
        active = self._active
        if active is not None and active.is_of(config):
            return active.again(kept)
        try:
            image = self._target.read_and_build(program)
        except InaError as error:
            raise from_error(error) from error
        return _Loaded.power_on(kept, image, build_schema(config.p4info, image.program))

    def get_config(
        self, request: p4r.GetForwardingPipelineConfigRequest
    ) -> p4r.GetForwardingPipelineConfigResponse:
        """The committed configuration, the parts that were asked for; unset when there is none."""
        response = p4r.GetForwardingPipelineConfigResponse()
        with self._lock:
            if self._active is None:
                return response
            config = self._active.config
        wanted = request.response_type
        kinds = p4r.GetForwardingPipelineConfigRequest
        response.config.SetInParent()
        if config.HasField("cookie"):
            response.config.cookie.CopyFrom(config.cookie)
        if wanted in (kinds.ALL, kinds.P4INFO_AND_COOKIE):
            response.config.p4info.CopyFrom(config.p4info)
        if wanted in (kinds.ALL, kinds.DEVICE_CONFIG_AND_COOKIE):
            response.config.p4_device_config = config.p4_device_config
        return response

    # Entities

    def write(self, request: p4r.WriteRequest) -> list[StatusError | None]:
        """Apply each update; the result says for each what was wrong, or None."""
        with self._lock:
            self._require_primary(request.role, request.election_id)
            forwarding = self._forwarding()
            if request.atomicity != p4r.WriteRequest.CONTINUE_ON_ERROR:
                known = {value: name for name, value in p4r.WriteRequest.Atomicity.items()}
                name = known.get(request.atomicity, request.atomicity)
                raise unimplemented(f"batch atomicity {name}")
            results = [_attempt(partial(forwarding.write, it)) for it in request.updates]
            done = [it for it, error in zip(request.updates, results, strict=True) if error is None]
            self._record(forwarding, done)
            return results

    def insert(self, entities: Iterable[p4r.Entity]) -> None:
        """Insert them without a client; the first that cannot be ends it with a StatusError."""
        self._write_all(p4r.Update.INSERT, entities)

    def delete(self, entities: Iterable[p4r.Entity]) -> None:
        """Delete them, as insert() inserts them."""
        self._write_all(p4r.Update.DELETE, entities)

    def _write_all(self, what: p4r.Update.Type.ValueType, entities: Iterable[p4r.Entity]) -> None:
        with self._lock:
            forwarding = self._forwarding()
            for entity in entities:
                update = p4r.Update(type=what, entity=entity)
                forwarding.write(update)
                self._record(forwarding, [update])

    def read(
        self, requests: Sequence[p4r.Entity]
    ) -> tuple[list[p4r.Entity], list[StatusError | None]]:
        """What the requests select, all of one moment, and for each what was wrong with it."""
        entities: list[p4r.Entity] = []
        with self._lock:
            forwarding = self._forwarding()

            def collect(request: p4r.Entity) -> None:
                if port_drops.is_wanted(request):
                    entities.extend(port_drops.encode(self._drops()))
                else:
                    entities.extend(forwarding.read(request))

            results = [_attempt(partial(collect, request)) for request in requests]
        return entities, results

    def close(self) -> None:
        """Free the pipelines; the port loop must have stopped."""
        with self._lock:
            self._discard_saved()
            if self._active is not None:
                self._active.forwarding.pipeline.close()
                self._active = None

    def _require_primary(self, role: str, election_id: p4r.Uint128) -> None:
        with self._lock:
            self._arbitration.require_primary(role, election_id)

    def _forwarding(self) -> Forwarding:
        """What Write and Read are about: a saved config until it is committed (spec), else the
        active one. So tables can be filled before the first packet is forwarded."""
        loaded = self._saved or self._active
        if loaded is None:
            raise precondition("no forwarding pipeline is set")
        return loaded.forwarding

    def _commit(self, loaded: _Loaded) -> None:
        self._install(loaded.forwarding.pipeline)
        before, self._active = self._active, loaded
        if before is not None:
            before.forwarding.pipeline.close()
        if self._saved is not loaded:
            self._discard_saved()
        self._saved = None
        self._keep(loaded)

    def _keep(self, loaded: _Loaded) -> None:
        if self._keeper is not None:
            config = loaded.config.SerializeToString()
            self._keeper.begin(config, entities_of(loaded.forwarding))

    def _record(self, forwarding: Forwarding, updates: Iterable[p4r.Update]) -> None:
        """``updates`` were done; of a config that is saved, its commit tells all of them."""
        if self._keeper is not None and self._saved is None:
            changes = (change_of(forwarding, update) for update in updates)
            self._keeper.record([it for it in changes if it is not None])

    def _commit_saved(self, request: _SetRequest) -> None:
        with self._lock:
            self._require_primary(request.role, request.election_id)
            if self._saved is None:
                raise not_found("COMMIT: no config was saved by VERIFY_AND_SAVE")
            self._commit(self._saved)

    def _reconcile(self, request: _SetRequest) -> None:
        """The same program again keeps its state; for another one the state has no meaning."""
        with self._lock:
            if self._active is None or not self._active.is_of(request.config):
                raise unimplemented("RECONCILE_AND_COMMIT to a different program")
            self._active.config.CopyFrom(request.config)
            self._keep(self._active)

    def _discard_saved(self) -> None:
        if self._saved is not None:
            self._saved.forwarding.pipeline.close()
            self._saved = None


def _attempt(operation: Callable[[], None]) -> StatusError | None:
    try:
        operation()
    except InaError as error:
        return from_error(error)
    return None
