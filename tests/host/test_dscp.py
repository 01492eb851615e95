"""The DSCP of what workers send, and of the results that come of it."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager

import numpy as np
import pytest

from ina.controller.embedded import Embedded
from ina.errors import InvalidInputError
from ina.host import Session, Ticket, WorkerOptions
from tests.host.ip_headers import Seen
from tests.worlds.fakes.tickets import direct_ticket

ECT0 = 2
ARRAY = np.arange(3000, dtype=np.int32)


def ticket(port: int) -> Ticket:
    return direct_ticket("dscp", 1, 1, 0, 1, 64, 64, "127.0.0.1", port)


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("dscp", [0, 10, 63])
def test_packets_of_each_thread_carry_the_sockets_dscp(dscp: int, threads: int) -> None:
    """Beside the ECN bits, which are not the caller's: it tries to set them."""
    with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as switch:
        switch.bind(("127.0.0.1", 0))
        switch.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
        switch.settimeout(30)
        own = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        own.connect(switch.getsockname())
        own.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, dscp << 2 | 1)
        port = switch.getsockname()[1]
        with Session.direct(
            ticket(port), own, WorkerOptions(threads=threads, op_timeout_s=60)
        ) as session:
            session.all_reduce(ARRAY, async_op=True)
            seen = set()
            for _ in range(32):  # a window of trains
                _, control, _, _ = switch.recvmsg(1 << 16, 64)
                seen |= {data[0] for _, _, data in control}
    assert seen == {dscp << 2 | ECT0}


@contextmanager
def seen_of(dscp: int | None, tenant: str) -> Iterator[tuple[Seen, tuple[str, int], Session]]:
    """A worker's packets and results, with tenants that have a DSCP and that have none."""
    tenants = {"tenants": {"default": {}, "urgent": {"dscp": 34}}}
    with Embedded(64, config=tenants) as embedded:
        seen = Seen()
        with Session.join(
            embedded.controller_addr,
            "job",
            0,
            1,
            WorkerOptions(tenant=tenant, dscp=dscp, transport="udp"),
        ) as session:
            assert (session.all_reduce(ARRAY) == ARRAY).all()
            yield seen, session.ticket.switch.place, session


@pytest.mark.parametrize(
    ("dscp", "tenant", "wanted"),
    [(None, "", 0), (46, "", 46), (None, "urgent", 34), (46, "urgent", 46), (0, "urgent", 0)],
)
def test_contributions_and_results_carry_what_the_worker_or_its_tenant_says(
    dscp: int | None, tenant: str, wanted: int
) -> None:
    """The result is the contribution, changed: the switch leaves its DSCP alone."""
    with seen_of(dscp, tenant) as (seen, switch, session):
        own = session._link.own.place
        frames = seen.all()
    assert frames[own, switch] == {wanted << 2 | ECT0}
    assert frames[switch, own] == {wanted << 2 | ECT0}


@pytest.mark.parametrize("dscp", [-1, 64])
def test_what_is_no_dscp_is_refused_in_one_line(dscp: int) -> None:
    with pytest.raises(InvalidInputError, match=rf"^dscp={dscp}: want a DSCP, 0 to 63$"):
        Session.join("127.0.0.1:1", "job", 0, 1, WorkerOptions(dscp=dscp))
