"""The model behind ``ina bench advise``, by hand; the build that suits an MTU; the command."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ina.bench import allreduce, ddp, report
from ina.bench.advise import Costs, KnownJob, advise, costs_of, loopback_bit_s
from ina.bench.gradients import Gradients, measured
from ina.bench.report import Report
from ina.controller.config import Config, SwitchConfig, make_config, path_mtu, with_build
from ina.controller.errors import ConfigError
from ina.errors import InvalidInputError
from ina.p4.builds import largest_build, packet_bytes
from tests.worlds.processes import command as process
from tests.worlds.processes.command import Outcome, inside
from tests.worlds.processes.stand_ins import python

# 100 MB of gradients in 4 buckets, 4 workers, 1 Gbit/s.
JOB = KnownJob(4, 0.1, 100_000_000, 4, 1e9, 1500)
FREE = Costs(0.0, 0.0, 0.0, 0.0)


def test_a_job_whose_links_take_the_time() -> None:
    found = advise(JOB, FREE)
    assert found.bound == "network"
    # 25,000,000 values: 69,445 packets with 74 bytes of headers; all but the last quarter of
    # two thirds of the computing hides behind backward.
    assert found.wire_s == pytest.approx((100_000_000 + 69_445 * 74) * 8e-9)
    assert found.ina_exposed_s == pytest.approx(found.wire_s - 0.05)
    assert found.gloo_exposed_s == pytest.approx(1.5 * 0.8 * 1514 / 1448 - 0.05)
    assert found.gain_at_most == 1.5
    assert 1.3 < found.gain < 1.5
    assert "1.50 = 2 (n - 1) / n" in found.text
    for wire, share in (("16", 2), ("8", 4)):
        step_s = 0.1 + found.wire_s / share - 0.05
        assert found.narrow_gains[wire] == pytest.approx(found.gloo_step_s / step_s, rel=1e-4)
    assert f"{found.narrow_gains['16']:.2f} with INA_WIRE=16" in found.text
    many = advise(replace(JOB, workers=40), FREE)
    assert list(many.narrow_gains) == ["16"]
    assert advise(replace(JOB, workers=65), FREE).text.endswith("for what is on the wire")


def test_a_small_type_gains_by_as_small_a_wire() -> None:
    """A ring sends 2 bytes a value of bfloat16, ina a word, but for ``wire=16``."""
    wide = advise(JOB, FREE)
    small = advise(replace(JOB, dtype="bfloat16", gradient_bytes=50_000_000), FREE)
    assert small.wire_s == wide.wire_s
    assert small.gain_at_most == 0.75
    assert small.gain < 1 < small.narrow_gains["16"]
    assert "as good as a ring's sums of bfloat16" in small.text
    assert "0.75 = (n - 1) / n" in small.text
    assert "as good as" not in advise(replace(JOB, workers=9, dtype="bfloat16"), FREE).text
    with pytest.raises(InvalidInputError):
        advise(replace(JOB, dtype="int8"), FREE)


def test_blocks_that_no_rank_has_values_in_need_not_go() -> None:
    assert advise(JOB, FREE).sparse_gain is None
    few = advise(replace(JOB, union=0.1, compute_s=0.0), FREE)
    # A tenth of the blocks, and 3 bits for each of them: 10 counters a word.
    words = 25_000_000 * 0.1 + 25_000_000 / 360 / 10
    sparse_s = words * 4 * (1 + 74 / 1440) * 8e-9
    assert few.sparse_gain == pytest.approx(few.gloo_step_s / sparse_s, rel=1e-3)
    assert f"10.0 % of the blocks: {few.sparse_gain:.2f} with INA_SPARSE=auto" in few.text
    full = advise(replace(JOB, union=1.0), FREE)
    assert full.sparse_gain is not None
    assert full.sparse_gain < full.gain
    assert full.text.endswith("100.0 % of the blocks: sparse sums gain nothing")


def test_saved_gradients_say_what_is_zero(tmp_path: Path) -> None:
    first = np.zeros(1000, np.float32)
    first[[3, 150, 999]] = -1, np.nan, 2  # of ten blocks, the first, the second and the last
    second = np.zeros(1000, np.float32)
    second[500], second[[0, 700]] = 1, -0.0
    files = [tmp_path / "0.npy", tmp_path / "1.npy"]
    for path, values in zip(files, (first, second), strict=True):
        np.save(path, values)
    found = measured(files, 100)
    assert found == Gradients("float32", 1000, 0.2, 0.4, 2)
    assert found.union_of(2) == pytest.approx(0.4)
    assert found.union_of(4) == pytest.approx(1 - 0.6**2)
    np.save(files[1], second[:-1])
    with pytest.raises(InvalidInputError, match=r"1\.npy: 999 values of float32, but .*0\.npy has"):
        measured(files, 100)
    np.save(files[1], second.astype(np.float64))
    with pytest.raises(InvalidInputError, match=r"1\.npy: float64: want one of float32"):
        measured(files, 100)


def test_saved_tensors_say_what_is_zero(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    path = tmp_path / "gradients.pt"
    row = torch.sparse_coo_tensor(
        [[1]], torch.ones(1, 100, dtype=torch.bfloat16), (4, 100), check_invariants=True
    )
    torch.save({"a": row, "b": [torch.zeros(2, 300, dtype=torch.bfloat16)]}, path)
    assert measured([path], 100) == Gradients("bfloat16", 1000, 0.1, 0.1, 1)
    path.write_bytes(b"not of torch")
    with pytest.raises(InvalidInputError, match=r"gradients\.pt: no gradients of numpy\.save"):
        measured([path], 100)
    with pytest.raises(InvalidInputError, match=r"none\.npy: no gradients of numpy\.save"):
        measured([tmp_path / "none.npy"], 100)


def test_a_job_that_computes_cannot_be_helped() -> None:
    found = advise(replace(JOB, compute_s=60.0), FREE)
    assert found.bound == "compute"
    assert found.gain == pytest.approx(1.0, abs=0.01)
    assert "cannot help" in found.text


def test_a_job_of_small_all_reduces_waits_for_round_trips() -> None:
    small = replace(JOB, gradient_bytes=100_000, buckets=20, compute_s=0.001)
    found = advise(small, Costs(0.001, 0.003, 1.0, 1.0))
    assert found.bound == "latency"
    assert found.latency_s == pytest.approx(0.02)
    assert found.gain > 2


def test_a_job_on_fast_links_waits_for_its_cpus() -> None:
    found = advise(replace(JOB, link_bit_s=1e11), Costs(0.0, 0.0, 2.0, 3.0))
    assert found.bound == "cpu"
    assert found.cpu_s == pytest.approx(0.2)
    assert "faster network changes nothing" in found.text
    assert found.gain_at_most is None  # 1.5 is of the wire


@pytest.mark.parametrize("wrong", [{"workers": 1}, {"buckets": 0}, {"gradient_bytes": 0}])
def test_no_such_job(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        advise(replace(JOB, **wrong), FREE)


def costs_report(
    link: str = "loopback", wrong: int = 0, multicast: bool = False, limit_ns_per_byte: float = 8.0
) -> Report:
    rows = [
        {
            **{"backend": backend, "workers": 2, "size_bytes": size, "time_s": size * 1e-9},
            **{"cpu_s_per_gb": 2.0 if backend == "ina" else 3.0},
            "limit_s": size * limit_ns_per_byte * 1e-9 if backend == "ina" else None,
            "multicast": multicast and backend == "ina",
        }
        for size in (1_000_000, 2_000_000)
        for backend in ("ina", "gloo")
    ]
    return Report(bench="allreduce", settings={"link": link}, rows=rows, ratios=[], wrong=wrong)


def test_costs_come_from_a_report() -> None:
    assert costs_of(costs_report()) == Costs(0.001, 0.001, 2.0, 3.0)
    assert loopback_bit_s(costs_report(), 4) == pytest.approx(0.5e9)
    # The same loopback, where two workers' results go to both at once: 3 crossings, not 4.
    shared = costs_report(multicast=True, limit_ns_per_byte=6.0)
    assert loopback_bit_s(shared, 4) == pytest.approx(0.5e9)
    with pytest.raises(InvalidInputError, match="costs over 1gbit, not loopback"):
        loopback_bit_s(costs_report("1gbit"), 4)
    with pytest.raises(InvalidInputError, match="want one of bench allreduce"):
        costs_of(Report(bench="ddp", settings={}, rows=[], ratios=[], wrong=0))


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def advise(*arguments: str) -> Outcome:
        return inside(capsys, "bench", "advise", *arguments)

    path = tmp_path / "costs.json"
    report.save(costs_report(), path)
    job = ("--compute-ms=100", "--gradient-mb=100", "--workers=4", "--link=1gbit")
    ran = advise(*job, f"--costs={path}", "--json")
    assert ran.code == 0, ran.err
    document = json.loads(ran.out)
    (row,) = document["rows"]
    assert (row["bound"], row["values"]) == ("network", 360)
    assert document["settings"]["buckets"] == 4
    assert row["text"] == document["notes"][0]
    report.save(costs_report(wrong=3), path)
    spoilt = advise(*job, f"--costs={path}", "--json")
    assert (spoilt.code, json.loads(spoilt.out)["wrong"]) == (1, 3)
    report.save(costs_report("1gbit"), path)  # its CPU time counts, its link's rate does not
    assert advise(*job, f"--costs={path}").code == 0
    refused = advise(*job[:-1], f"--costs={path}")
    assert refused.err.splitlines()[-1].startswith("error: costs over 1gbit, not loopback")
    saved = tmp_path / "gradients.npy"
    np.save(saved, np.eye(1, 1_000_000, dtype=np.float32))
    sparse = advise(
        "--compute-ms=1", f"--gradients={saved}", "--link=1gbit", f"--costs={path}", "--json"
    )
    document = json.loads(sparse.out)
    assert document["settings"]["gradient_bytes"] == 4_000_000
    assert document["rows"][0]["sparse_gain"] > document["rows"][0]["gain"]
    assert document["notes"][1].startswith("1000000 gradients of float32: 0.0 % of a rank's")
    narrow = advise(*job, f"--costs={path}", "--mtu=600", "--json")
    assert json.loads(narrow.out)["rows"][0]["values"] == 64


def test_the_command_measures_what_it_is_not_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """For a user's seconds, of megabytes; here of less."""
    measure, measure_model = allreduce.measure, ddp.measure

    def shorter(where: Any, sizes: Any, case: allreduce.AllReduceCase, found: Any) -> Any:
        return measure(where, [size // 64 for size in sizes], replace(case, seconds=0.2), found)

    def shorter_model(where: Any, order: ddp.StepOrder, values: int) -> Any:
        return measure_model(where, replace(order, seconds=0.2), values)

    monkeypatch.setattr(allreduce, "measure", shorter)
    monkeypatch.setattr(ddp, "measure", shorter_model)
    monkeypatch.setattr(sys, "executable", python())
    monkeypatch.setenv("ADVISE_TEST", str(os.getpid()))
    ran = inside(capsys, "bench", "advise", "--model=digits", "--workers=2", "--json")
    assert ran.code == 0, ran.err
    (row,) = json.loads(ran.out)["rows"]
    assert row["costs"]["ina_latency_s"] > 0
    assert row["bound"] in ("compute", "network", "latency", "cpu")
    assert process.left(f"ADVISE_TEST={os.getpid()}") == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "error: want --compute-ms and --gradient-mb or --gradients, or --model"),
        (("--compute-ms=1", "--gradient-mb=1", "--dtype=int8"), "error: --dtype int8: want one"),
        (("--model=x",), "error: --model x: want one of"),
        (("--model=gpt2",), "error: --model gpt2: it has the model's gradients but computes"),
        (("--model=gpt2", "--workers=1"), "error: --workers 1: want integers from 2 to 32"),
        (("--model=gpt2", "--link=x"), "error: --link x: want a rate"),
    ],
)
def test_wrong_input_is_one_line(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = inside(capsys, "bench", "advise", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(message)


def test_the_largest_build_that_fits() -> None:
    assert packet_bytes(256) == 20 + 8 + 32 + 1024
    assert packet_bytes(360) <= 1500 < packet_bytes(368)  # the most that a multiple of 8 fits
    assert largest_build(1500) == largest_build(packet_bytes(360)) == 360
    assert largest_build(packet_bytes(360) - 1) == largest_build(packet_bytes(256)) == 256
    assert largest_build(packet_bytes(256) - 1) == 64
    with pytest.raises(InvalidInputError, match="MTU 300"):
        largest_build(300)


def test_a_controller_that_may_choose_takes_the_largest_build() -> None:
    config = make_config({"switch": {"values": 0}}, "test")
    assert with_build(config).switch.values == 1024  # loopback has an MTU of 65536
    assert with_build(config, 9000).switch.values == 1024
    assert with_build(config, 1500).switch.values == 360
    assert with_build(config, 1400).switch.values == 256
    assert with_build(config, 1000).switch.values == 64
    assert with_build(Config(switches=(SwitchConfig(values=64),)), 9000).switch.values == 64
    bmv2 = Config(switches=(SwitchConfig(target="bmv2", values=0),))
    assert with_build(bmv2, 1500).switch.values == 360
    tofino = Config(switches=(SwitchConfig(target="tofino2", values=0),))
    assert with_build(tofino, 1500).switch.values == 64  # 360 would fit the path, not the chip
    with pytest.raises(ConfigError, match=r"switch\.values: MTU 100"):
        with_build(config, 100)
    assert path_mtu("127.0.0.1", 9) >= 1500
