"""What is around the doors: promises that break, mutations, what libFuzzer says, the page."""

from __future__ import annotations

import json
from pathlib import Path

import grpc
import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from fuzz import mutations, registry, target
from fuzz.__main__ import main
from fuzz.doors import bmv2_json, controller, p4runtime
from fuzz.doors.promise import BrokenPromise, refusals
from fuzz.records import MAX_RECORDS, read_records, write_records
from fuzz.registry import DOORS
from ina.errors import InvalidInputError
from ina.testing import doors as native

PAGE = Path(__file__).parents[2] / "docs" / "fuzzing.md"


def test_another_error_than_the_door_s_own_comes_through() -> None:
    with pytest.raises(KeyError), refusals(InvalidInputError):
        raise KeyError("x")
    with refusals(InvalidInputError):
        raise InvalidInputError("one line")
    with pytest.raises(BrokenPromise), refusals(InvalidInputError):
        raise InvalidInputError("two\nlines")


@pytest.mark.parametrize("code", [grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN])
def test_a_bug_is_no_answer(code: grpc.StatusCode) -> None:
    with pytest.raises(BrokenPromise):
        p4runtime.Context().abort(code, "it broke")
    with pytest.raises(p4runtime.Aborted):
        p4runtime.Context().abort(grpc.StatusCode.NOT_FOUND, "there is none")


def test_c_that_does_not_compile_breaks_a_promise() -> None:
    bmv2_json.compile_c("int one;")
    with pytest.raises(BrokenPromise, match="compiles"):
        bmv2_json.compile_c("int 1;")


def test_promises_of_the_c_plus_plus_reach_python() -> None:
    pipeline, _ = registry._program()
    with pytest.raises(native.BrokenPromise, match="entries and groups"):
        native.enter_pipeline(pipeline.native[0], b"\x02\0\0\0", b"")


def test_a_door_that_is_not_there_is_refused() -> None:
    with pytest.raises(ValueError, match="nowhere"):
        native.enter("nowhere", b"")


@given(st.lists(st.tuples(st.integers(0, 255), st.binary(max_size=40)), max_size=MAX_RECORDS))
def test_records_come_back(records: list[tuple[int, bytes]]) -> None:
    assert read_records(write_records(records)) == records


def test_most_mutations_of_a_message_are_messages() -> None:
    (path, *_) = [path for path in DOORS["controller"].inputs() if path.name == "seed-life"]
    mutate = mutations.of_records(controller.REQUESTS, ["j"])
    good = cut = 0
    for seed in range(100):
        for number, data in read_records(mutate(path.read_bytes(), 1 << 20, seed)):
            try:
                controller.REQUESTS[number].FromString(data)
                good += 1
            except DecodeError:  # longer than a record can be
                cut += 1
    assert good > 500 > 10 * cut


def test_a_mutated_json_is_json_and_another_one() -> None:
    text = b'{"a": [1, 2, {"b": "c"}], "d": null}'
    made = {mutations.json_tree(text, 1000, seed) for seed in range(50)}
    assert all(json.loads(one) is not None for one in made)
    assert len(made) > 20
    assert mutations.json_tree(b"{", 1000, 1) == b"{"


def test_what_libfuzzer_says_is_read() -> None:
    outcome = target.Outcome(DOORS["frame"])
    for line in (
        "#2048\tpulse  cov: 107 ft: 300 corp: 24/1Kb exec/s: 512 rss: 70Mb\n",
        "error: broken promise: a payload lies in its frame\n",
        "==1== ERROR: libFuzzer: deadly signal\n",
        "stat::number_of_executed_units: 2050\n",
    ):
        target._read(outcome, line)
    assert (outcome.executions, outcome.coverage) == (2050, 107)
    assert outcome.reason == "broken promise: a payload lies in its frame"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("a.cpp:8:5: runtime error: signed integer overflow: x\n", "runtime error: signed"),
        ("==7==ERROR: AddressSanitizer: heap-buffer-overflow on\n", "AddressSanitizer: heap"),
        ("fuzz.doors.promise.BrokenPromise: no slot is two jobs'\n", "fuzz.doors.promise"),
        ("KeyError: 'x'\n", "KeyError: 'x'"),
    ],
)
def test_a_reason_is_found(line: str, reason: str) -> None:
    outcome = target.Outcome(DOORS["frame"])
    target._read(outcome, line)
    assert outcome.reason.startswith(reason)


def test_one_input_is_entered_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = DOORS["frame"].inputs()[0]
    monkeypatch.setattr("sys.argv", ["fuzz", "--replay", str(path), "frame"])
    assert main() == 0
    assert "frame keeps its promises" in capsys.readouterr().out


def test_the_page_has_each_door() -> None:
    text = PAGE.read_text()
    table = text[text.index("<!-- doors -->") : text.index("<!-- end of doors -->")]
    rows = [line.split("|")[1].strip() for line in table.splitlines() if line.startswith("| `")]
    assert rows == [f"`{name}`" for name in DOORS]
