"""``ina job``: what operators see, from a controller whose answers are known."""

from __future__ import annotations

import io
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest
from rich.console import Console, RenderableType

from ina.cli import main
from ina.cli.common import rpc_client
from ina.cli.job import view as job_view
from ina.rpc import controller_pb2 as pb2
from tests.worlds.fakes.operator import STALL, TRAIN, FakeController, serving

Capture = pytest.CaptureFixture[str]


def stalled() -> pb2.Job:
    job = pb2.Job()
    job.CopyFrom(TRAIN)
    job.stall.CopyFrom(STALL)
    return job


def test_list_shows_tenant_slots_and_who_is_missing(
    fake: FakeController, address: str, capsys: Capture
) -> None:
    fake.jobs = [stalled()]
    assert main.run(["job", "list", "--controller", address]) == 0
    shown = capsys.readouterr().out
    for part in ("train", "vision", "512..1023", "3/3", "rank 2 has not sent it: slot 723"):
        assert part in shown
    assert main.run(["job", "list", "--controller", address, "--json"]) == 0
    (job,) = json.loads(capsys.readouterr().out)
    assert job["stall"]["missing"] == [2]
    assert job["epoch"] == 70_001


LONG = "resnet50-imagenet-nightly-2026-11-23"


def lines_at(view: RenderableType, width: int) -> list[str]:
    out = Console(file=io.StringIO(), width=width)
    out.print(view)
    assert isinstance(out.file, io.StringIO)
    return [line.rstrip() for line in out.file.getvalue().splitlines()]


def test_in_80_columns_names_are_whole_and_the_reason_has_lines_of_its_own() -> None:
    long, joining = stalled(), pb2.Job(name="new", state="joining", world_size=4, joined=[1])
    long.name = LONG
    shown = lines_at(job_view.jobs_table([long, joining, TRAIN], now_s=1e9 + 7), 80)
    assert [line.split() for line in shown if line.startswith((f"{LONG} ", "train "))] == [
        [LONG, "vision", "running", "3/3", "512..1023"],
        ["train", "vision", "running", "3/3", "512..1023"],
    ]
    assert "(too narrow for: spurious, probes, epoch, window, job, lost, priority; --json" in shown
    reasons = " ".join(shown[shown.index("") + 1 :])
    assert reasons == (
        f"{LONG}: rank 2 has not sent it: slot 723, sequence number 1234, for 7 s"
        " (ranks 0, 1 waiting) new: waits for ranks 0, 2, 3 of 4 to join"
    )
    assert max(map(len, shown)) <= 80


def test_a_wide_terminal_has_all_columns_and_a_tiny_one_whole_names() -> None:
    assert lines_at(job_view.jobs_table([TRAIN]), 200)[0].split() == [
        it.title for it in job_view.JOB_COLUMNS
    ]
    job = pb2.Job(name=LONG, state="running", world_size=2)
    tiny = lines_at(job_view.jobs_table([job]), 40)
    assert "…" not in "".join(tiny)


def test_losses_and_other_resends_are_told_apart() -> None:
    lossy, new = stalled(), pb2.Job(name="new", state="joining", world_size=4)
    traffic = {"packets_sent": 4000, "losses": 100, "spurious_resends": 7, "probes": 55}
    lossy.traffic.CopyFrom(pb2.Traffic(**traffic))
    wide = lines_at(job_view.jobs_table([lossy, new]), 200)
    assert wide[0].split()[-3:] == ["lost", "spurious", "probes"]
    assert wide[2].split()[-4:] == ["100", "(2.5%)", "7", "55"]
    assert wide[3].endswith("0")  # the window: nobody has sent yet
    narrow = lines_at(job_view.jobs_table([lossy]), 80)
    assert "(2.5%)" in narrow[2]
    lossy.traffic.losses = 0
    assert lines_at(job_view.jobs_table([lossy]), 200)[2].split()[-3:] == ["0", "7", "55"]


def test_members_behind_shared_memory_are_named_by_process() -> None:
    member = pb2.Member(rank=0, host="127.64.0.1", udp_port=1, process="node7 pid 11",
                        lease_left_s=7.5123)  # fmt: skip
    job = stalled()
    job.stall.missing[:] = [0]
    shown = "\n".join(lines_at(job_view.job_view(pb2.ShowJobReply(job=job, members=[member])), 200))
    assert "stalled: rank 0 (node7 pid 11) has not sent it" in shown
    assert "shared memory   node7 pid 11   7.51 s" in shown
    assert "127.64" not in shown


def test_a_joining_job_names_the_ranks_that_have_not_joined(
    fake: FakeController, address: str, capsys: Capture
) -> None:
    fake.jobs = [pb2.Job(name="new", state="joining", world_size=4, joined=[1])]
    assert main.run(["job", "list", "--controller", address]) == 0
    assert "ranks 0, 2, 3" in capsys.readouterr().out


def test_show_names_the_missing_rank_with_its_address(
    fake: FakeController, address: str, capsys: Capture
) -> None:
    fake.jobs = [stalled()]
    assert main.run(["job", "show", "train", "--controller", address]) == 0
    shown = capsys.readouterr().out
    assert "stalled: rank 2 (10.0.0.3:4433) has not sent it: slot 723, sequence number" in shown
    assert "(ranks 0, 1 waiting)" in shown
    assert "JOB_RUNNING" in shown
    assert "job_results" in shown


def test_show_json_has_every_field_of_the_contract(address: str, capsys: Capture) -> None:
    assert main.run(["job", "show", "train", "--controller", address, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert set(document) == {f.name for f in pb2.ShowJobReply.DESCRIPTOR.fields}
    assert set(document["members"][0]) == {f.name for f in pb2.Member.DESCRIPTOR.fields}
    assert document["members"][1]["progress"]["operations_submitted"] == 9
    assert document["job"]["stall"] is None
    assert document["history"][0]["kind"] == "JOB_RUNNING"


def test_evict_passes_the_reason_on(fake: FakeController, address: str, capsys: Capture) -> None:
    command = ["job", "evict", "train", "--reason", "maintenance", "--controller", address]
    assert main.run(command) == 0
    assert [(r.name, r.reason) for r in fake.evicted] == [("train", "maintenance")]
    said = capsys.readouterr().out
    assert said == "evicted train: slots 512..1023 are free\n"


@pytest.mark.parametrize("command", ["show", "evict", "dump"])
def test_a_job_that_is_not_there(command: str, address: str, capsys: Capture) -> None:
    assert main.run(["job", command, "nobody", "--controller", address]) == 2
    said = capsys.readouterr()
    assert (said.out, said.err) == (
        "",
        f"error: controller {address}: no job is called 'nobody'\n",
    )


def test_a_standby_is_passed_over(fake: FakeController, address: str, capsys: Capture) -> None:
    standby = FakeController()
    standby.refuse = (grpc.StatusCode.UNAVAILABLE, "standby: 10.0.0.1:17700 is primary")
    with serving(standby) as other:
        both = f"{other}, {address}"
        assert main.run(["job", "evict", "train", "--controller", both]) == 0
        assert (len(standby.evicted), len(fake.evicted)) == (0, 1)
        fake.refuse = (grpc.StatusCode.UNAVAILABLE, "standby: nobody is primary")
        capsys.readouterr()
        assert main.run(["job", "list", "--controller", both]) == 2
        said = capsys.readouterr().err
    assert f"controller {other}: standby: 10.0.0.1:17700" in said
    assert f"controller {address}: standby: nobody" in said
    assert said.count("\n") == 1


@pytest.mark.parametrize("command", ["list", "watch"])
def test_a_controller_that_hangs_is_passed_over(
    command: str, address: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr(rpc_client, "PATIENCE_S", 1.0)
    monkeypatch.setattr(rpc_client, "TIMEOUT_S", 3600.0)  # of an answer that needs the switch
    hanging = FakeController()
    hanging.released = threading.Event()
    with serving(hanging) as other, ThreadPoolExecutor(1) as pool:
        line = ["job", command, "--controller", f"{other},{address}", "--json"]
        line += ["--for", "1"] if command == "watch" else []
        try:
            assert pool.submit(main.run, line).result(60) == 0
        finally:
            hanging.released.set()
    assert "train" in capsys.readouterr().out


@pytest.mark.parametrize("address", ["nowhere", "host:", "host:0", "a:1,,b:2"])
def test_a_wrong_address_is_refused(address: str, capsys: Capture) -> None:
    assert main.run(["job", "list", "--controller", address]) == 2
    assert "expected HOST:PORT" in capsys.readouterr().err


def test_dump_is_one_document_with_everything(
    address: str, tmp_path: Path, capsys: Capture
) -> None:
    file = tmp_path / "train.json"
    assert main.run(["job", "dump", "train", "-o", str(file), "--controller", address]) == 0
    assert capsys.readouterr().out == f"wrote {file}\n"
    document = json.loads(file.read_text())
    assert document["job"]["name"] == "train"
    assert len(document["members"]) == 3
    assert document["history"]
    assert document["controller"]["role"] == "primary"
    assert [e["match"] for e in document["switch"]["entries"]] == ["job=4", "job=9"]
    assert {c["name"] for c in document["switch"]["counters"]} == {"job_results", "drops"}
    assert document["versions"]["ina"]
    assert document["errors"] == {}
    assert main.run(["job", "dump", "train", "--controller", address]) == 0
    assert json.loads(capsys.readouterr().out)["job"] == document["job"]


def test_dump_without_the_switch_says_what_is_missing(
    fake: FakeController, address: str, capsys: Capture
) -> None:
    fake.switch_away = True
    assert main.run(["job", "dump", "train", "--controller", address]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["switch"] is None
    assert "does not answer" in document["errors"]["switch"]
    assert document["members"]


def test_dump_to_a_place_that_cannot_be_written(address: str, capsys: Capture) -> None:
    assert main.run(["job", "dump", "train", "-o", "/nowhere/x", "--controller", address]) == 2
    assert capsys.readouterr().err == "error: --output /nowhere/x: there is no folder /nowhere\n"
