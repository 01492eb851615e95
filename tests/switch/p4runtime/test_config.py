"""SetForwardingPipelineConfig and GetForwardingPipelineConfig."""

from __future__ import annotations

import json

import pytest
from finsy.proto import p4r, rpc_code

from tests.switch.p4runtime.conftest import Connect, refused
from tests.worlds.fakes.p4runtime import Client, entry, exact, features_config

Set = p4r.SetForwardingPipelineConfigRequest
Get = p4r.GetForwardingPipelineConfigRequest
ROW = entry("bridge", "forward", (b"\x01",), match=[exact(b"\x05")])


def test_capabilities(connect: Connect) -> None:
    reply = connect().stub.Capabilities(p4r.CapabilitiesRequest(), timeout=5)
    assert reply.p4runtime_api_version.startswith("1.4")


def test_before_a_config(connect: Connect) -> None:
    client = connect().become_primary()
    assert not client.get_config().HasField("config")
    refused(lambda: client.tables(), rpc_code.FAILED_PRECONDITION)
    refused(lambda: client.write("INSERT", table_entry=ROW), rpc_code.FAILED_PRECONDITION)


def test_every_response_type(connect: Connect) -> None:
    client = connect().become_primary()
    config = features_config(cookie=77)
    client.set_config(config)
    assert client.get_config(Get.ALL).config == config
    just_cookie = client.get_config(Get.COOKIE_ONLY).config
    assert just_cookie == p4r.ForwardingPipelineConfig(cookie=config.cookie)
    info = client.get_config(Get.P4INFO_AND_COOKIE).config
    assert (info.p4info, info.p4_device_config) == (config.p4info, b"")
    device = client.get_config(Get.DEVICE_CONFIG_AND_COOKIE).config
    assert device.p4_device_config == config.p4_device_config
    assert not device.HasField("p4info")


def test_an_unknown_action_does_nothing(connect: Connect) -> None:
    client = connect().become_primary()
    refused(lambda: client.set_config(features_config(), 99), rpc_code.INVALID_ARGUMENT, "99")
    assert not client.get_config().HasField("config")


def test_verify_changes_nothing(connect: Connect) -> None:
    client = connect().become_primary()
    client.set_config(features_config(), Set.VERIFY)
    assert not client.get_config().HasField("config")


def test_save_then_commit(client: Client) -> None:
    """What is written in between is for the saved program, and there once it is committed."""
    other = entry("bridge", "forward", (b"\x02",), match=[exact(b"\x06")])
    client.write("INSERT", table_entry=ROW)
    client.set_config(features_config(cookie=5), Set.VERIFY_AND_SAVE)
    assert not client.get_config().config.HasField("cookie")
    assert client.tables(table_id=ROW.table_id) == []
    client.write("INSERT", table_entry=other)
    client.set_config(None, Set.COMMIT)
    assert client.get_config().config.cookie.cookie == 5
    assert client.tables(table_id=ROW.table_id) == [other]
    refused(lambda: client.set_config(None, Set.COMMIT), rpc_code.NOT_FOUND)


def test_commit_takes_no_config(client: Client) -> None:
    refused(lambda: client.set_config(features_config(), Set.COMMIT), rpc_code.INVALID_ARGUMENT)


def test_commit_clears_the_forwarding_state(client: Client) -> None:
    client.write("INSERT", table_entry=ROW)
    client.set_config(features_config())
    assert client.tables(table_id=ROW.table_id) == []


def test_reconcile(client: Client) -> None:
    """The same program keeps its entries; a different one is refused."""
    client.write("INSERT", table_entry=ROW)
    client.set_config(features_config(cookie=9), Set.RECONCILE_AND_COMMIT)
    assert client.get_config().config.cookie.cookie == 9
    assert len(client.tables(table_id=ROW.table_id)) == 1
    other = features_config()
    other.p4_device_config += b" "
    refused(lambda: client.set_config(other, Set.RECONCILE_AND_COMMIT), rpc_code.UNIMPLEMENTED)


def test_action_must_be_set(client: Client) -> None:
    refused(
        lambda: client.set_config(features_config(), Set.UNSPECIFIED), rpc_code.INVALID_ARGUMENT
    )


@pytest.mark.parametrize("action", [Set.VERIFY, Set.VERIFY_AND_SAVE, Set.VERIFY_AND_COMMIT])
@pytest.mark.parametrize("device_config", [b"", b"not JSON", b"{}", b"[1]", b'{"tables": 3}'])
def test_bad_device_configs(client: Client, action: int, device_config: bytes) -> None:
    """Refused, and the program that was there still is."""
    bad = features_config()
    bad.p4_device_config = device_config
    refused(lambda: client.set_config(bad, action), rpc_code.INVALID_ARGUMENT)
    client.write("INSERT", table_entry=ROW)


def test_p4info_of_another_program(client: Client) -> None:
    other = features_config()
    other.p4info.tables[0].preamble.name = "Other.table"
    refused(lambda: client.set_config(other), rpc_code.INVALID_ARGUMENT, "no table Other.table")
    narrow = features_config()
    narrow.p4info.tables[0].match_fields[0].bitwidth = 47
    refused(lambda: client.set_config(narrow), rpc_code.INVALID_ARGUMENT, "47 bits")


def test_an_unsupported_construct_is_named_with_its_line(client: Client) -> None:
    """A primitive that the soft switch lacks, at a line of the P4 source."""
    bad = features_config()
    program = json.loads(bad.p4_device_config)
    action = next(a for a in program["actions"] if a["name"] == "FeaturesIngress.forward")
    action["primitives"][0]["op"] = "execute_meter"
    line = action["primitives"][0]["source_info"]["line"]
    bad.p4_device_config = json.dumps(program).encode()
    for text in ("execute_meter", f"features.p4:{line}"):
        refused(lambda: client.set_config(bad), rpc_code.INVALID_ARGUMENT, text)
