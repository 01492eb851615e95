"""Sessions that verify their sums: what they are told, count, and raise."""

from __future__ import annotations

import pickle
from concurrent import futures
from dataclasses import replace

import numpy as np
import pytest

from ina.errors import InvalidInputError
from ina.host import (
    CorruptedSumError,
    InvalidTicketError,
    JobFailedError,
    Session,
    WorkerOptions,
)
from ina.protocol.verify import Verify
from tests.worlds.fakes.controller import FakeController
from tests.worlds.fakes.forgetful import KEY, Switch
from tests.worlds.fakes.tickets import direct_ticket
from tests.worlds.fakes.udp_model import UdpModel, closing


@pytest.mark.parametrize("verify", ["off", "accidents", "keyed"])
@pytest.mark.parametrize("threads", [1, 4])
def test_sums_are_the_same_however_they_are_verified(verify: Verify, threads: int) -> None:
    parts = [np.linspace(-3, rank, 3000, dtype=np.float32) for rank in range(3)]
    with Switch(loss=0.02) as switch:
        switch.verify = verify
        with closing(switch.sessions(3, threads=[threads, 1, 2])) as sessions:
            for _ in range(2):
                handles = [
                    session.all_reduce(part, async_op=True)
                    for session, part in zip(sessions, parts, strict=True)
                ]
                for handle in handles:
                    assert np.allclose(handle.wait(60), sum(parts), atol=1e-5)
            for session in sessions:
                assert session.stats().corrupted_sums == 0


@pytest.mark.parametrize("verify", ["accidents", "keyed"])
def test_a_switch_that_adds_wrongly_ends_the_job_by_name(verify: Verify) -> None:
    with Switch() as switch:
        switch.verify = verify
        with closing(switch.sessions(2)) as sessions:
            for handle in [s.all_reduce(np.ones(64, np.int32), async_op=True) for s in sessions]:
                assert (handle.wait(30) == 2).all()
            switch.forgetful.damages = True
            outs = [np.full(64, -7, np.int32) for _ in sessions]
            handles = [
                session.all_reduce(np.ones(64, np.int32), out=out, async_op=True)
                for session, out in zip(sessions, outs, strict=True)
            ]
            for rank, handle in enumerate(handles):
                with pytest.raises(CorruptedSumError) as told:
                    handle.wait(60)
                assert str(told.value).startswith(
                    f"job 'test' rank {rank} of 2: 8 results of all-reduce 2, sequence number 1,"
                    " are not the sum of what the workers sent"
                )
                assert "each time the same, so the slot holds it" in str(told.value)
                assert isinstance(told.value, JobFailedError)
                assert sessions[rank].stats().corrupted_sums == 8
                with pytest.raises(CorruptedSumError):
                    sessions[rank].all_reduce(np.ones(3, np.int32))
            assert all((out == -7).all() for out in outs)


def test_alone_it_is_known_which_value_is_wrong() -> None:
    wrong = pytest.raises(CorruptedSumError, match=r"value 3 of the slot is not what")
    with Switch() as switch, closing(switch.sessions(1)) as (session,):
        switch.forgetful.damages = True
        with wrong:
            session.all_reduce(np.ones(64, np.float32))


@pytest.mark.parametrize("asked", ["keyed", "accidents", None])
def test_the_controller_tells_all_alike(asked: Verify | None) -> None:
    with UdpModel() as switch, FakeController(switch) as fake:
        fake.verify, fake.check_key = asked or "keyed", KEY
        with futures.ThreadPoolExecutor(2) as pool:
            joining = [
                pool.submit(
                    Session.join, fake.address, "digits", rank, 2, WorkerOptions(verify=asked)
                )
                for rank in range(2)
            ]
            with closing([future.result(60) for future in joining]) as sessions:
                handles = [s.all_reduce(np.ones(9, np.float32), async_op=True) for s in sessions]
                assert all((handle.wait(30) == 2).all() for handle in handles)
                assert {session.ticket.verify for session in sessions} == {fake.verify}
        assert {request.verify for request in fake.created} == {asked or ""}


def test_tickets() -> None:
    ticket = direct_ticket("test", 1, 1, 0, 1, 4, 64, "127.0.0.1", 9)
    assert ticket.verify == "off"
    keyed = replace(ticket, verify="keyed", check_key=KEY)
    assert pickle.loads(pickle.dumps(keyed)) == keyed
    assert repr(KEY)[2:-1] not in repr(keyed)
    with pytest.raises(InvalidTicketError, match="check_key has 3 bytes, verify 'keyed' needs 16"):
        replace(keyed, check_key=b"abc")
    with pytest.raises(InvalidInputError, match="verify=often: want off or accidents or keyed"):
        replace(ticket, verify="often")  # type: ignore[arg-type]
