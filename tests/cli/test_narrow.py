"""What commands print at 80 columns: nothing is cut off, and no word is broken."""

from __future__ import annotations

import io

import pytest
from rich.console import Console, RenderableType

from ina.cli import main
from ina.cli.common.output import LineOrParts, TableOrLines, lines_or_parts, table
from ina.cli.common.rpc_client import plain
from ina.cli.controller.command import _status_view
from ina.cli.switch.show import _view
from ina.controller.service.show import _fields
from ina.protocol.spec import ALL_WORKERS, PARENT, Kind
from ina.rpc import controller_pb2 as pb2
from tests.worlds.fakes.operator import SWITCH, TRAIN, FakeController

MATCH = "ingress_port=1 src_addr=127.0.0.1 src_port=36523 job=1 epoch=1 worker=0 kind=contribution"
ACTION = "address(dst_mac=02:00:7f:00:00:01, dst_addr=127.0.0.1, dst_port=36523)"


def printed(view: RenderableType, width: int) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=width, color_system=None).print(view)
    return out.getvalue().splitlines()


def shown() -> pb2.ShowSwitchReply:
    found = pb2.ShowSwitchReply()
    found.CopyFrom(SWITCH)
    found.entries.add(table="members", match=MATCH, action=ACTION, job="train")
    return found


def test_a_switch_s_entries_at_80_and_200_columns() -> None:
    narrow = printed(_view(shown(), [TRAIN], ""), 80)
    assert max(map(len, narrow)) <= 80
    text = " ".join(" ".join(narrow).split())
    assert f"members {MATCH} {ACTION}" in text
    assert "…" not in text
    at = next(n for n, line in enumerate(narrow) if line.startswith("members"))
    assert narrow[at + 2].startswith("    address(dst_mac=02:00:7f:00:00:01,")
    wide = printed(_view(shown(), [TRAIN], ""), 200)
    assert any(MATCH in line and ACTION in line for line in wide)


def test_numbers_that_stand_for_something_have_names() -> None:
    fields = {"worker": ALL_WORKERS, "kind": int(Kind.CONTRIBUTION)}
    assert _fields(fields) == "worker=all kind=contribution"
    assert _fields({"worker": PARENT, "kind": int(Kind.RESULT)}) == "worker=parent kind=result"
    assert _fields({"worker": 3, "kind": 200}) == "worker=3 kind=200"


def status(switches: int) -> LineOrParts:
    each = [
        pb2.SwitchStatus(name=f"leaf{n}", address=f"10.0.{n}.1:9559", state="connected")
        for n in range(switches)
    ]
    reply = pb2.ShowControllerReply(
        role="standby", standby_reason="another controller is primary (election id 2)",
        election_id=1, switch_addr="10.0.0.1:9559", switch_state="connected", store="c.db",
        switches=each, started_unix_s=1e9,
    )  # fmt: skip
    return _status_view({"controller": "10.0.0.9:17700", **plain(reply)})


def test_a_controller_is_a_line_or_on_a_narrow_terminal_a_part_a_line() -> None:
    narrow = printed(status(3), 80)
    assert max(map(len, narrow)) <= 80
    assert "  switch leaf1 10.0.1.1:9559 connected" in narrow
    assert "  store c.db" in narrow
    (wide,) = printed(status(3), 400)
    piped = lines_or_parts([status(3), status(1)])
    assert isinstance(piped, str)  # printed as it is, for grep
    for line in (wide, piped.splitlines()[0]):
        assert "; switch leaf1 10.0.1.1:9559 connected; switch leaf2" in line
        assert line.endswith("in use, last epoch 0")


@pytest.mark.parametrize("width", [20, 40, 80])
def test_no_table_cuts_a_cell(width: int) -> None:
    cell = "02:00:7f:00:00:01,02:00:7f:00:00:02"
    for view in (table(["a", "b"], [[cell, cell]]), TableOrLines(["a", "b"], [[cell, cell]])):
        text = "".join(printed(view, width))
        assert "…" not in text
        assert sum(text.count(part) for part in "0123456789abcdef") >= 2 * sum(
            cell.count(part) for part in "0123456789abcdef"
        )


def test_all_switches_are_shown(
    fake: FakeController, address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(["switch", "show", "--name", "all", "--controller", address]) == 0
    assert capsys.readouterr().out.count("device 1; slots 512 of 8192 in use") == 1
