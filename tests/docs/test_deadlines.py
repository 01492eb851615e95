"""tests/docs/deadlines.md has each deadline of the sources, with its value and a test, no other."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs import timed, timeouts
from tests.docs.timed import Value
from tests.lines import ROOT

PAGE = timeouts.ROWS
NO_WAITS = {
    "ina/controller/routing/network.py::USUAL_BITS_PER_S": "a rate",
    "ina/controller/routing/policies/grid.py::LIMIT_S": "of computing, which nobody waits for",
    "ina/controller/routing/policies/grid.py::Grid.limit_s": "the same",
    "ina/controller/placing/rerouter.py::PERIOD_S": "between two looks, which nobody waits for",
    "ina/controller/placing/rerouter.py::PAUSE_S": "how long a job is left alone",
    "ina/controller/routing/policies/exact.py::Exact.limit_s": "the same",
    "ina/controller/routing/lp.py::DEFAULT_LIMIT_S": "the same",
    "ina/cli/pcap/view.py::_NS_PER_S": "a unit",
    "ina/pcap/pcapng.py::_NS_PER_S": "a unit",
    "ina/pcap/places.py::_ONE_WAY_NS": "between two sights of a packet in captures",
    "ina/pcap/reader.py::_NS_PER_S": "a unit",
    "ina/emulate/capture.py::_PCAP_MAGIC_NS": "a file format's number",
    "ina/testing/case_file.py::_MAGIC_NS": "a file format's number",
    "ina/controller/jobs/numbers.py::CLOCK_START_UNIX_S": "a date",
    "ina/p4/origin.py::_ONE_CHECKOUT_NS": "how far apart dates of files may be",
    "ina/controller/watch/stalls.py::MAX_WAIT_S": "what a worker may say",
    "ina/controller/slots/needs.py::LEAST_WINDOW_S": "between two reports that tell something",
    "ina/controller/slots/needs.py::KNOWN_WINDOW_S": "the same, of a job that is known",
    "ina/controller/slots/needs.py::REMEMBERED_S": "how long what was seen counts",
    "ina/controller/slots/needs.py::UNKNOWN_STEP_S": "what a job that nobody knows is taken for",
    "ina/controller/slots/needs.py::UNKNOWN_LEFT_S": "the same",
    "ina/controller/memory/resizes.py::REFILL_S": "how long resizes count",
    "ina/controller/windows/seen.py::APART_S": "between two reports that are compared",
    "ina/cli/job/command.py::PlanOptions.round_trip_s": "what a job is planned with",
    "ina/congestion/own.py::_MOST_GAP_NS": "what a window may say",
    "ina/host/options.py::MAX_OP_TIMEOUT_S": "what a caller may ask for",
    "ina/cli/sim/command.py::fuzz_command(budget_s)": "how long a search may take",
    "native/testing/worker_core_door.cpp::kTickNs": "time as a fuzzer passes it in",
    "native/testing/worker_core_door.cpp::stall_timeout_ns": "time as a fuzzer passes it in",
    "ina/emulate/wiring.py::_TBF_BURST_S": "bytes of a token bucket, by its rate",
}
"""Names that look like a deadline's and are none, each with what it is."""

_KEY = re.compile(r"`([\w./-]+::[\w.]+(?:\(\w+\))?)`")


def rows(page: str) -> Iterator[tuple[str, list[str], list[str]]]:
    """Of each row: how long, what of the sources it names, which tests."""
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and cells[1] not in ("---", "how long", "ended by"):
            keys = _KEY.findall(line)
            tests = [key for key in keys if key.startswith("tests/")]
            yield cells[1], [key for key in keys if key not in tests], tests


def faults(page: str, constants: dict[str, Value], unbounded: set[str]) -> list[str]:
    """What is wrong with the page, a line each."""
    found: list[str] = []
    named: set[str] = set()
    for how_long, keys, tests in rows(page):
        named.update(keys)
        if set(keys) & unbounded:
            continue
        for key in keys:
            value = constants.get(key) or _of_others(key)
            if value is None:
                found.append(f"{key}: not in the sources")
            elif timed.shown(value) != how_long:
                found.append(f"{key}: {timed.shown(value)}, the page says {how_long}")
        found += [f"{test}: no such test" for test in tests if not _is_test(test)]
    found += [f"{key}: on no row" for key in constants.keys() - named - NO_WAITS.keys()]
    found += [f"{key}: waits without an end, on no row" for key in unbounded - named]
    return found


def _of_others(key: str) -> Value | None:
    """A constant of a library."""
    path, _, name = key.partition("::")
    package, _, file = path.partition("/")
    spec = importlib.util.find_spec(package) if package not in ("ina", "native") else None
    if spec is None or spec.origin is None:
        return None
    return dict(timed.of_python(Path(spec.origin).parent / file)).get(name)


def _is_test(node: str) -> bool:
    path, _, name = node.partition("::")
    file = ROOT / path
    said = file.read_text() if file.exists() else ""
    return re.search(rf"^(async )?def {name}\(", said, re.MULTILINE) is not None


def test_the_page_is_what_the_sources_say() -> None:
    assert faults(PAGE.read_text(), timed.constants(), timed.unbounded()) == []


def test_each_deadline_has_a_test() -> None:
    """The first two tables' heads say so; those of pauses have no such column."""
    page = PAGE.read_text().partition("## Pauses")[0]
    assert [keys for _, keys, tests in rows(page) if len(tests) != 1] == []


def test_what_a_user_can_change_is_on_the_page_of_timeouts() -> None:
    """``python -m tests.docs.timeouts`` writes it."""
    table = timeouts.changeable(PAGE.read_text())
    assert table.count("\n| ") > 30
    assert f"{table}\n<!-- results: end -->" in timeouts.PAGE.read_text()


ROWS = """
## Joining

| who waits, for what | how long | changed by | then | in | test |
| --- | --- | --- | --- | --- | --- |
| a join | 3 s | — | an error | `a` | `b` |
| … of a group | 4 s | `X` | the same | `a` | `b` |
| a device under test | 5 s | its argument | the same | `ina/testing/a.py::f(a_s)` | `b` |

## Others

| who waits, for what | how long | changed by | then | in | test |
| --- | --- | --- | --- | --- | --- |
| a look | 3 s | — | an error | `a` | `b` |
"""


def test_of_a_row_that_goes_on_the_whole_is_shown() -> None:
    assert timeouts.changeable(ROWS).splitlines() == [
        "## Joining",
        "",
        "| who waits, for what | how long | changed by | then |",
        "| --- | --- | --- | --- |",
        "| a join: of a group | 4 s | `X` | the same |",
    ]


def test_no_deadline_is_a_number_without_a_name() -> None:
    assert timed.unnamed() == set()


def test_what_is_said_to_be_no_wait_is_there() -> None:
    assert NO_WAITS.keys() <= timed.constants().keys()


ROW = "| a | 5 s | — | it ends | `ina/a.py::A_S` | `tests/docs/test_deadlines.py::{}` |"
GOOD = ROW.format("test_a_fault_of_the_page_is_found")


@pytest.mark.parametrize(
    ("page", "constants", "unbounded", "fault"),
    [
        (GOOD, {"ina/a.py::A_S": 5.0}, set(), ""),
        (GOOD, {"ina/a.py::A_S": 6.0}, set(), "ina/a.py::A_S: 6 s, the page says 5 s"),
        (GOOD, {}, set(), "ina/a.py::A_S: not in the sources"),
        (GOOD, {"ina/a.py::A_S": 5.0, "ina/b.py::B_S": 1.0}, set(), "ina/b.py::B_S: on no row"),
        (ROW.format("test_none"), {"ina/a.py::A_S": 5.0}, set(), "test_none: no such test"),
        (GOOD, {"ina/a.py::A_S": 5.0}, {"ina/a.py::f"}, "f: waits without an end, on no row"),
    ],
)
def test_a_fault_of_the_page_is_found(
    page: str, constants: dict[str, Value], unbounded: set[str], fault: str
) -> None:
    found = faults(page, constants, unbounded)
    assert len(found) == bool(fault)
    assert all(one.endswith(fault) for one in found)


PYTHON = """
from datetime import timedelta
_FIRST_S, MAX_PAUSE_S = 0.5, 2
ALL_S = _FIRST_S + MAX_PAUSE_S
_POLL_NS = 200_000_000
_AGREE_TIMEOUT = timedelta(seconds=60)
AGAIN_S = (10.0, 30.0)
SLOTS = 5
class Settings:
    lease_s: float = 10.0
    created_unix_s: float = 5.0
def f(timeout_s: float = 3.0, *, grace_s: float = MAX_PAUSE_S, size: int = 4): ...
"""
NATIVE = """
constexpr uint64_t kSendPatienceNs = 5'000'000;
constexpr int kSendWaitMs = 5;  // for room
std::int64_t min_ns = 2'000'000;
std::int64_t sent_ns = 0;
constexpr int kSlots = 7;
"""


def test_what_names_a_time_is_found(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text(PYTHON)
    assert dict(timed.of_python(file)) == {
        "_FIRST_S": 0.5,
        "MAX_PAUSE_S": 2.0,
        "ALL_S": 2.5,
        "_POLL_NS": 0.2,
        "_AGREE_TIMEOUT": 60.0,
        "AGAIN_S": (10.0, 30.0),
        "Settings.lease_s": 10.0,
        "f(timeout_s)": 3.0,
    }
    file.write_text(NATIVE)
    found = {name: timed.shown(value) for name, value in timed.of_native(file)}
    assert found == {"kSendPatienceNs": "5 ms", "kSendWaitMs": "5 ms", "min_ns": "2 ms"}


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(30.0, "30 s"), (0.2, "200 ms"), (50e-6, "50 µs"), (1.0, "1 s"), ((1.0, 2.0), "1 s, 2 s")],
)
def test_times_as_the_page_says_them(seconds: Value, text: str) -> None:
    assert timed.shown(seconds) == text
