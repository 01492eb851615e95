"""finsy, the client that ina's controller uses, on the pool program."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import finsy as fy
import pytest

from ina.p4 import compiled, names
from ina.switch.ports import UdpPort
from ina.switch.server import SoftSwitch

DEADLINE_S = 60


def with_finsy(switch: SoftSwitch, use: Callable[[fy.Switch], Awaitable[None]]) -> None:
    program = compiled(64)
    options = fy.SwitchOptions(
        p4info=program.p4info, p4blob=program.bmv2_json, device_id=1, initial_election_id=10
    )

    async def session() -> None:
        async with fy.Switch("soft", switch.grpc_addr, options) as client:
            await use(client)

    asyncio.run(asyncio.wait_for(session(), DEADLINE_S))


async def read(client: fy.Switch, entity: object) -> list[Any]:
    found: Any = client.read(entity)
    return [e async for e in found]


def test_a_session(switch: SoftSwitch) -> None:
    route = fy.P4TableEntry(
        names.IPV4_LPM,
        match=fy.Match(dst_addr="10.1.0.0/16"),
        action=fy.Action(names.ROUTE, port=2, src_mac=1, dst_mac=2),
    )
    group = fy.P4MulticastGroupEntry(5, replicas=[(1, 1), (2, 2)])

    async def use(client: fy.Switch) -> None:
        await client.insert([route, group])
        (found,) = await read(client, fy.P4TableEntry(names.IPV4_LPM))
        assert found.match == {"dst_addr": (0x0A010000, 16)}
        assert found.action.args == {"port": 2, "src_mac": 1, "dst_mac": 2}
        with pytest.raises(fy.P4ClientError) as info:
            await client.insert([route])
        assert info.value.details[0].canonical_code.name == "ALREADY_EXISTS"
        await client.modify(
            [fy.P4CounterEntry(names.DROPS, index=1, data=fy.P4CounterData(packet_count=3))]
        )
        drops = await read(client, fy.P4CounterEntry(names.DROPS))
        assert [c.data.packet_count for c in drops if c.data][:3] == [0, 3, 0]
        await client.delete_all()
        assert await read(client, fy.P4TableEntry()) == []
        assert await read(client, fy.P4MulticastGroupEntry()) == []

    with_finsy(switch, use)


def test_the_program_is_set_only_once(switch: SoftSwitch) -> None:
    """finsy sees by the cookie that its program runs, and leaves the entries alone."""

    async def write(client: fy.Switch) -> None:
        await client.insert([fy.P4MulticastGroupEntry(5, replicas=[(1, 1)])])

    async def look(client: fy.Switch) -> None:
        assert len(await read(client, fy.P4MulticastGroupEntry())) == 1

    with_finsy(switch, write)
    with_finsy(switch, look)


def test_two_clients(switch: SoftSwitch) -> None:
    """The second finds the first's election id taken, and is a backup."""

    async def use(client: fy.Switch) -> None:
        assert client.is_primary

        async def second() -> None:
            options = fy.SwitchOptions(
                p4info=compiled(64).p4info, device_id=1, initial_election_id=10
            )
            async with fy.Switch("second", switch.grpc_addr, options) as other:
                assert not other.is_primary
                with pytest.raises(fy.P4ClientError):
                    await other.insert([fy.P4MulticastGroupEntry(6, replicas=[(1, 1)])])

        await second()

    with_finsy(switch, use)


def test_a_restarted_switch(switch: SoftSwitch) -> None:
    """The same object can be stopped, and another takes its address at once."""

    async def nothing(client: fy.Switch) -> None:
        assert client.is_primary

    with_finsy(switch, nothing)
    address = switch.grpc_addr
    switch.stop()
    with SoftSwitch([UdpPort(1)], grpc_addr=address) as again:
        with_finsy(again, nothing)
