"""The compiled P4 program does what the reference model says, on packets that are chosen.

Likely ones, and many more of them, are in tests/conformance/test_differential.py. Every frame goes
to `ina.protocol.switch_model` and to the compiled program in the soft switch. They must send the
same bytes to the same ports, and count alike.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from ina.p4 import names
from ina.protocol import serial
from ina.protocol.codec import Header, encode
from ina.protocol.spec import DropReason, Flag, ValueType
from ina.protocol.switch_model import EPOCH_BITS, Attachment, ModelJob, Sharing
from ina.tables.values import Counter
from ina.testing.frames import PAYLOAD_OFFSET, Frame, PortFrame
from ina.testing.mutations import MUTATIONS
from ina.testing.soft_device import SoftDevice
from ina.testing.state import job_state, own_address
from tests.selection import LONG
from tests.worlds.virtual.pair import Pair


class Agreement(RuleBasedStateMachine):
    """Chosen packets instead of likely ones; Hypothesis shrinks what it finds."""

    VALUES = 64
    soft: SoftDevice
    """One for all examples; each begins at power-on."""
    workers = st.integers(0, 31)
    steps = st.sampled_from([0, 0, 0, 1, 2, 4, -1, -4, 2**31 - 1, 2**31, -(2**31) + 1])

    def __init__(self) -> None:
        super().__init__()
        self.pair = Pair(self.VALUES, self.soft)
        self.jobs: dict[int, ModelJob] = {}
        self.epoch = 0
        self.seq = 0
        self.history: list[PortFrame] = []

    @initialize(
        sizes=st.lists(st.sampled_from([1, 2, 3, 32]), min_size=1, max_size=2),
        seq=st.sampled_from([0, 2**31 - 2, 2**32 - 2]),
    )
    def start(self, sizes: list[int], seq: int) -> None:
        self.seq = seq
        for number, size in enumerate(sizes):
            self.admit(number, size, ahead=1, listening=0)

    @rule(
        number=st.integers(0, 1),
        size=st.integers(1, 4),
        ahead=st.sampled_from([1, 1 << 16, 1 << 30]),
        listening=st.integers(0, 15),
    )
    def admit(self, number: int, size: int, ahead: int, listening: int) -> None:
        if self.epoch + ahead >= 2**31:
            return
        self.epoch += ahead
        workers = tuple(Attachment(1 + w % 2, 0x0A000001 + number, 3000 + w) for w in range(size))
        listeners = frozenset(w for w in range(size) if listening >> w & 1)
        sharing = Sharing(listeners, 0xEF000001 + number) if listeners else None
        self.jobs[number] = ModelJob(number, self.epoch, 2 * number, 4, workers, sharing)
        self.pair.install(self.jobs[number])

    @precondition(lambda self: self.jobs)
    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(sorted(self.jobs)))
        del self.jobs[number]
        self.pair.remove(number)

    @precondition(lambda self: self.jobs)
    @rule(
        data=st.data(),
        step=steps,
        flags=st.integers(0, 255),
        tos=st.integers(0, 3),
        exponent=st.integers(0, 255),
        slot=st.none() | st.integers(0, 5),
        value=st.sampled_from([0, 1, -1, 2**31 - 1, -(2**31)]),
        with_values=st.sampled_from([True, True, True, False]),
    )
    def contribute(
        self,
        data: st.DataObject,
        step: int,
        flags: int,
        tos: int,
        exponent: int,
        slot: int | None,
        value: int,
        with_values: bool,
    ) -> None:
        job = self.jobs[data.draw(st.sampled_from(sorted(self.jobs)))]
        worker = data.draw(st.integers(0, len(job.workers) - 1))
        seq = serial.add(self.seq, step)
        header = Header(
            flags=Flag(flags),
            job=job.number,
            epoch=job.epoch % (1 << EPOCH_BITS),
            worker=worker,
            slot=seq % job.slots if slot is None else slot,
            value_type=ValueType.FLOAT32,
            value_count=self.VALUES if with_values else 0,
            seq=seq,
            contributors=1 << worker,
            next_exponent=exponent,
        )
        at = job.workers[worker]
        payload = encode(header, [value] * header.value_count)
        self.send(at.port, Frame(payload, at.ipv4, at.udp_port, tos=tos).build())

    @precondition(lambda self: self.jobs)
    @rule(data=st.data())
    def whole_round(self, data: st.DataObject) -> None:
        job = self.jobs[data.draw(st.sampled_from(sorted(self.jobs)))]
        for worker, at in enumerate(job.workers):
            header = Header(
                job=job.number,
                epoch=job.epoch % (1 << EPOCH_BITS),
                worker=worker,
                slot=self.seq % job.slots,
                value_count=self.VALUES,
                seq=self.seq,
            )
            payload = encode(header, range(worker, worker + self.VALUES))
            self.send(at.port, Frame(payload, at.ipv4, at.udp_port).build())

    @rule(step=st.sampled_from([1, 2, 4]))
    def advance(self, step: int) -> None:
        self.seq = serial.add(self.seq, step)

    @precondition(lambda self: self.history)
    @rule(data=st.data())
    def again(self, data: st.DataObject) -> None:
        self.pair.process(*data.draw(st.sampled_from(self.history)))

    @precondition(lambda self: self.history)
    @rule(data=st.data(), mutation=st.sampled_from(MUTATIONS), seed=st.integers(0, 2**16))
    def mutated(self, data: st.DataObject, mutation: object, seed: int) -> None:
        assert callable(mutation)
        arrival = data.draw(st.sampled_from(self.history))
        self.pair.process(*mutation(random.Random(seed), *arrival))

    def send(self, port: int, data: bytes) -> None:
        self.history.append((port, data))
        self.pair.process(port, data)

    def teardown(self) -> None:
        self.pair.check_counters()


Agreement.TestCase.settings = settings(
    max_examples=60,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
TestAgreement = Agreement.TestCase


@pytest.fixture(scope="module", autouse=True)
def soft() -> Iterator[None]:
    with SoftDevice() as Agreement.soft:
        yield


def test_no_datagram_of_a_stranger_changes_a_sum() -> None:
    """Random and mutated datagrams from other ports, between the packets of honest rounds: 20,000,
    in ``make test-long`` 100,000.

    The sums are checked by NumPy, without the reference model.
    """
    values, workers, per_packet, rounds = 64, 4, 50, 500 if LONG else 100
    rng = random.Random(3)
    at = tuple(Attachment(port + 1, 0x0A000001 + port, 4000) for port in range(workers))
    job = ModelJob(0, epoch=9, first_slot=0, slots=4, workers=at)
    with SoftDevice() as switch:
        switch.reset(values)
        switch.insert((own_address(), *job_state(job)))
        strangers = 0
        for seq in range(rounds):
            header = Header(job=0, epoch=9, slot=seq % 4, seq=seq, value_count=values)
            total = np.zeros(values, np.int32)
            for worker in range(workers):
                numbers = np.frombuffer(rng.randbytes(4 * values), np.int32)
                total += numbers  # wraps around
                payload = encode(replace(header, worker=worker), numbers)
                honest = Frame(payload, at[worker].ipv4, at[worker].udp_port).build()
                for _ in range(per_packet):
                    _, attack = rng.choice(MUTATIONS)(rng, 0, honest)
                    assert switch.process([(rng.choice((0, 5, 99, 509)), attack)]) == []
                    strangers += 1
                sent = switch.process([(at[worker].port, honest)])
            assert len(sent) == workers
            for _, result in sent:
                assert result[PAYLOAD_OFFSET + 24 :] == encode(header, total)[24:]
        assert strangers == rounds * workers * per_packet
        refs = (
            *(Counter(names.JOB_CONTRIBUTIONS, 0), Counter(names.JOB_RESULTS, 0)),
            *(Counter(names.DROPS, reason) for reason in (DropReason.MEMBER, DropReason.MALFORMED)),
        )
        contributions, results, not_members, malformed = (n for n, _ in switch.counts(refs))
        assert (contributions, results) == (rounds * workers, rounds)
        assert not_members > strangers // 5
        assert malformed > strangers // 10
