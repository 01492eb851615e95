"""The devices that tests run on. Each is started once, and those that cannot run say why."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from ina.p4 import names
from ina.testing.bmv2_device import cannot_run_bmv2
from ina.testing.device import Device
from ina.testing.devices import open_device
from ina.testing.links import cannot_link
from ina.testing.soft_device import cannot_run_xdp


def why_not(name: str) -> str:
    """Why this machine cannot run a device; empty: it can."""
    asked = {
        "soft-veth": cannot_link,
        "xdp": cannot_run_xdp,
        "xdp-veth": lambda: cannot_run_xdp() or cannot_link(),
        "bmv2": cannot_run_bmv2,
    }
    return asked.get(name, lambda: "")()


def started(name: str, port_map: str = "", mode: str = names.POOL) -> Iterator[Device]:
    """The device, started; skips where it cannot run."""
    if why := why_not(name):
        pytest.skip(why)
    with open_device(name, [port_map] if port_map else [], mode) as device:
        yield device


@pytest.fixture(scope="session")
def model() -> Iterator[Device]:
    """The reference."""
    yield from started("model")


@pytest.fixture(scope="session")
def soft() -> Iterator[Device]:
    """The soft switch's P4Runtime server and pipeline."""
    yield from started("soft")


@pytest.fixture(scope="session")
def soft_veth() -> Iterator[Device]:
    """The whole soft switch, on virtual cables."""
    yield from started("soft-veth")


@pytest.fixture(scope="session")
def xdp() -> Iterator[Device]:
    """The kernel."""
    yield from started("xdp")


@pytest.fixture(scope="session")
def xdp_veth() -> Iterator[Device]:
    """The kernel, at virtual cables."""
    yield from started("xdp-veth")


@pytest.fixture(scope="session")
def xdp_stream() -> Iterator[Device]:
    """The kernel, with mode stream's program."""
    yield from started("xdp", mode=names.STREAM)


@pytest.fixture(scope="session")
def xdp_shared() -> Iterator[Device]:
    """The kernel, with mode shared's program."""
    yield from started("xdp", mode=names.SHARED)


@pytest.fixture(scope="session")
def bmv2() -> Iterator[Device]:
    """simple_switch_grpc, on virtual cables."""
    yield from started("bmv2")


@pytest.fixture(scope="session")
def model_shared() -> Iterator[Device]:
    """The reference, with what mode shared counts."""
    yield from started("model", mode=names.SHARED)


@pytest.fixture(scope="session")
def soft_shared() -> Iterator[Device]:
    """The soft switch's P4Runtime server and pipeline, with mode shared's program."""
    yield from started("soft", mode=names.SHARED)


@pytest.fixture(scope="session")
def bmv2_shared() -> Iterator[Device]:
    """simple_switch_grpc, with mode shared's program."""
    yield from started("bmv2", mode=names.SHARED)


@pytest.fixture(scope="session")
def model_stream() -> Iterator[Device]:
    """The reference, with what mode stream's program knows."""
    yield from started("model", mode=names.STREAM)


@pytest.fixture(scope="session")
def soft_stream() -> Iterator[Device]:
    """The soft switch's P4Runtime server and pipeline, with mode stream's program."""
    yield from started("soft", mode=names.STREAM)


@pytest.fixture(scope="session")
def bmv2_stream() -> Iterator[Device]:
    """simple_switch_grpc, with mode stream's program."""
    yield from started("bmv2", mode=names.STREAM)


@pytest.fixture(scope="session")
def model_roce() -> Iterator[Device]:
    """The reference, with RoCEv2 around its packets."""
    yield from started("model", mode=names.ROCE)


@pytest.fixture(scope="session")
def soft_roce() -> Iterator[Device]:
    """The soft switch's P4Runtime server and pipeline, with mode roce's program."""
    yield from started("soft", mode=names.ROCE)


@pytest.fixture(scope="session")
def bmv2_roce() -> Iterator[Device]:
    """simple_switch_grpc, with mode roce's program."""
    yield from started("bmv2", mode=names.ROCE)


@pytest.fixture(scope="session")
def model_transparent() -> Iterator[Device]:
    """The reference, with a ring's flows."""
    yield from started("model", mode=names.TRANSPARENT)


@pytest.fixture(scope="session")
def soft_transparent() -> Iterator[Device]:
    """The soft switch's P4Runtime server and pipeline, with mode transparent's program."""
    yield from started("soft", mode=names.TRANSPARENT)


@pytest.fixture(scope="session")
def bmv2_transparent() -> Iterator[Device]:
    """simple_switch_grpc, with mode transparent's program."""
    yield from started("bmv2", mode=names.TRANSPARENT)


@pytest.fixture(scope="session")
def named() -> Iterator[Device]:
    """What INA_DEVICE and INA_PORT_MAP name: any P4Runtime device."""
    name = os.environ.get("INA_DEVICE")
    if not name:
        pytest.skip("INA_DEVICE is not set: HOST:PORT,DEVICE_ID of a switch, and INA_PORT_MAP")
    yield from started(name, os.environ.get("INA_PORT_MAP", ""))
