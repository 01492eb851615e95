"""The store: what goes in comes out, whoever lost the claim writes nothing, files are checked."""

from __future__ import annotations

import os
import signal
import sqlite3
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ina.controller.change import Change, Stage
from ina.controller.errors import FencedError, OtherSwitchError, StoreError
from ina.controller.job import Departure, Job, JobSpec, JobState
from ina.controller.store import Store, open_store, rows
from ina.controller.store.schema import APPLICATION_ID, VERSION
from ina.protocol.peer import Peer
from ina.trees.endpoint import Endpoint
from ina.trees.forest import forest_of
from ina.trees.mapping import Mapping
from ina.trees.slots import SlotRange
from ina.trees.tree import Tree, single
from tests.selection import examples
from tests.worlds.fakes.placed import TREES, job, job_over, shown, stored_job
from tests.worlds.fakes.switches import NAME, placed_over
from tests.worlds.processes.forks import context

endpoints = st.builds(
    Endpoint,
    peer=st.builds(
        Peer,
        address=st.ip_addresses(v=4),
        udp_port=st.integers(1, 0xFFFF),
        mac=st.none() | st.integers(0, 2**48 - 1),
    ),
    switch_port=st.integers(1, 510),
    results_group=st.none() | st.ip_addresses(v=4, network="224.0.0.0/4"),
)


def started(
    spec: JobSpec, number: int, epoch: int, switch: str, memory: SlotRange, window: int, **more: Any
) -> Job:
    forest = forest_of(single(switch, spec.world_size))
    placed = placed_over(forest, {switch: memory}, number, epoch, window=window)
    return Job(spec, number, 7.0, placed, epoch, **more)


texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)
specs = st.builds(
    JobSpec,
    name=st.text(st.characters(categories=["L", "N", "P", "Zs"]), min_size=1, max_size=200),
    world_size=st.integers(1, 32),
    slots=st.integers(0, 2**16),
    tenant=texts,
    priority=st.integers(-(2**31), 2**31 - 1),
    mode=st.sampled_from(["pool", "shared"]),
    verify=st.none() | st.sampled_from(["off", "accidents", "keyed"]),
    deadline_unix_s=st.floats(0, 4e9),
    steps=st.integers(0, 2**63 - 1),
)
started_jobs = st.builds(
    started,
    specs,
    number=st.integers(1, 255),
    memory=st.builds(SlotRange, st.integers(0, 8190), st.just(2), st.just(2)),
    epoch=st.integers(0, 2**32 - 1),
    members=st.dictionaries(st.integers(0, 31), endpoints, max_size=32),
    state=st.sampled_from([JobState.STARTING, JobState.RUNNING, JobState.LEAVING]),
    switch=st.sampled_from(["switch", "tor1"]),
    window=st.integers(1, 2**15),
    created_unix_s=st.floats(0, 4e9),
    token_hash=st.binary(max_size=64),
    key_seed=st.binary(max_size=16),
)


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    opened = open_store(store_url)
    yield opened
    opened.close()


@settings(max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck))
@given(made=started_jobs, leaving=st.sets(st.integers(0, 31)))
def test_a_job_comes_back_as_it_was_and_with_those_who_left(
    store: Store, made: Job, leaving: set[int]
) -> None:
    claim = store.claim("test")
    claim.save(made)
    everybody = dict(made.members)
    for rank in leaving & set(made.members):
        del made.members[rank]
    claim.save(made)
    (stored,) = store.load(7.0)
    assert shown(stored.job) == shown(made)
    assert stored.endpoints == everybody
    claim.remove(made)
    assert store.load(7.0) == []


@pytest.mark.parametrize("tree", TREES, ids=lambda tree: f"{len(tree)} switches")
def test_a_tree_comes_back_with_what_each_switch_still_has(store: Store, tree: Tree) -> None:
    claim = store.claim("test")
    made = job_over(tree)
    made.placed, placed, made.state = None, made.placed, JobState.JOINING
    claim.save(made)  # of a fabric: it is not known yet where it will be
    (stored,) = store.load(0.0)
    assert shown(stored.job) == shown(made)
    made.placed, made.state = placed, JobState.RUNNING
    claim.save(made)
    (stored,) = store.load(0.0)
    assert shown(stored.job) == shown(made)
    del made.memory[tree.root.switch]
    claim.save(made)
    (stored,) = store.load(0.0)
    assert shown(stored.job) == shown(made)
    assert stored.job.forest == forest_of(tree)
    claim.remove(made)
    claim.save(job(made.number))  # nothing is left of the tree under this number
    assert store.load(0.0)[0].job.forest == forest_of(single(NAME, 2))


@pytest.mark.parametrize("tree", TREES, ids=lambda tree: f"{len(tree)} switches")
def test_a_change_comes_back_with_both_mappings(store: Store, tree: Tree) -> None:
    claim = store.claim("test")
    made = job_over(tree)
    made.state = JobState.RUNNING
    claim.save(made)
    memory = {name: SlotRange(900, 8, 8) for name in made.memory}
    other = Mapping(made.epoch + 1, (made.number + 1,), forest_of(tree), memory, 4, host_first=64)
    made.change = Change(other, "a test", in_place=True, since_unix_s=5.5)
    claim.save(made)
    for stage in (Stage.ASKED, Stage.DECIDED):
        made.change.stage = stage
        made.change.first_operation = 2**63 - 1 if stage is Stage.DECIDED else 0
        claim.save(made)
        assert stored_job(store) == shown(made)
    made.placed = other
    alone = forest_of(single("elsewhere", made.world_size))
    former = Mapping(made.epoch, (made.number,), alone, {"elsewhere": SlotRange(0, 2, 2)}, 1)
    made.change.other, made.change.stage = former, Stage.CLEARING
    made.first_operation = made.change.first_operation
    claim.save(made)
    assert stored_job(store) == shown(made)
    store.claim("another").save(made)  # who does not know what is there
    claim = store.claim("test")
    assert stored_job(store) == shown(made)
    former.memory.clear()
    claim.save(made)
    assert stored_job(store) == shown(made)
    made.change = None
    claim.save(made)
    assert stored_job(store) == shown(made)
    claim.remove(made)
    claim.save(job(made.number))
    assert stored_job(store) == shown(job(made.number))


def test_how_far_those_had_come_who_left_is_stored(store: Store) -> None:
    claim = store.claim("test")
    made = job(ranks=3, state=JobState.RUNNING)
    claim.save(made)
    made.departures[1] = Departure("10.0.0.1:4001 of host pid 3", 2**63 - 1, 4, 7.0)
    claim.save(made)  # it is still here
    assert store.load(0.0)[0].job.departures == {}
    del made.members[1]
    made.departures[1] = replace(made.departures[1], submitted=5)
    claim.save(made)
    del made.members[2]  # without a word
    claim.save(made)
    (stored,) = store.load(9.0)
    assert stored.job.departures == {1: Departure("10.0.0.1:4001", 5, 4, 9.0)}


def test_a_store_is_one_switch_s(store: Store, store_url: str) -> None:
    former = store.claim("a process 1", "10.0.0.1:17760")
    store.check_switch("10.0.0.1:17760")
    refusal = (
        r"store \S+: a process 1 has claimed it for the switch at 10\.0\.0\.1:17760, and this"
        r" controller's is at 10\.0\.0\.2:17760: give each switch a store of its own"
    )
    for late in (
        lambda: store.check_switch("10.0.0.2:17760"),
        lambda: store.claim("b process 2", "10.0.0.2:17760"),
    ):
        with pytest.raises(OtherSwitchError, match=refusal):
            late()
    former.check()
    with closing(open_store(store_url)) as other:
        other.claim("b process 2", "10.0.0.2:17760", moves=True)
        with pytest.raises(OtherSwitchError, match="b process 2 has claimed it for the switch at"):
            former.check()
        with pytest.raises(OtherSwitchError):
            store.claim("a process 1", "10.0.0.1:17760")


def test_a_joining_job_forgets_who_hung_up(store: Store) -> None:
    claim = store.claim("test")
    made = job()
    claim.save(made)
    del made.members[1]
    claim.save(made)
    assert store.load(0.0)[0].endpoints.keys() == {0}


def test_a_job_and_its_epoch_are_stored_together_or_not_at_all(
    store: Store, store_url: str
) -> None:
    claim = store.claim("test")
    assert store.last_epoch() is None
    claim.save(job(1), last_epoch=2**32 - 1)
    assert store.last_epoch() == 2**32 - 1
    with pytest.raises(StoreError, match=r"(?i)unique"):
        claim.save(job(2), last_epoch=5)  # of the same name
    with pytest.raises(StoreError, match=r"(?i)check"):
        claim.save(job(3, "k"), last_epoch=2**32)
    with closing(open_store(store_url)) as again:
        assert [item.job.number for item in again.load(0.0)] == [1]
        assert again.last_epoch() == 2**32 - 1


def test_who_lost_the_claim_writes_nothing(store: Store, store_url: str) -> None:
    first, second = store, open_store(store_url)
    former = first.claim("a process 1")
    former.save(job(1))
    latter = second.claim("b process 2")
    for late in (
        former.check,
        lambda: former.save(job(1, state=JobState.LEAVING)),
        lambda: former.remove(job(1)),
        lambda: former.save_epoch(9),
    ):
        with pytest.raises(FencedError, match=r"store\S*: b process 2 has claimed it"):
            late()
    latter.check()
    assert [item.job.state for item in second.load(0.0)] == [JobState.JOINING]
    assert second.last_epoch() is None
    second.close()


def test_a_database_that_has_forgotten_a_claim_does_not_let_two_write(
    store: Store, store_url: str
) -> None:
    """As after a failover to a copy that lacks the last transactions."""
    store.claim("first")
    former = store.claim("former")
    with store.transaction() as (db, _):
        db.execute("UPDATE claim SET generation = generation - 1, holder = 'first'")
    with closing(open_store(store_url)) as other:
        latter = other.claim("latter")
        with pytest.raises(FencedError, match="latter has claimed it"):
            former.save(job())
        latter.save(job())


def test_who_claims_sees_the_change_that_a_former_holder_has_begun(
    store: Store, store_url: str
) -> None:
    """Else it would go on without it, and the change would come later all the same."""
    former = store.claim("former")

    def take_over() -> list[str]:
        with closing(open_store(store_url)) as other:
            other.claim("latter")
            return [item.job.name for item in other.load(0.0)]

    with ThreadPoolExecutor() as pool:
        with former._change() as db:
            taking = pool.submit(take_over)
            wait([taking], timeout=0.1)
            rows.put_job(db, job())
        assert taking.result() == ["j"]
    with pytest.raises(FencedError):
        former.save(job(2, "late"))


def test_a_change_that_was_begun_dies_with_its_process(store_url: str) -> None:
    process = context.Process(target=_die_within_a_change, args=(store_url,))
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL
    with closing(open_store(store_url)) as after:
        assert [item.job.name for item in after.load(0.0)] == ["j"]
        after.claim("next").remove(job(1))


def _die_within_a_change(store_url: str) -> None:
    store = open_store(store_url)
    claim = store.claim("test")
    claim.save(job(1))
    with store.transaction() as (db, _):
        db.execute("DELETE FROM jobs")
        os.kill(os.getpid(), signal.SIGKILL)


def test_the_file_is_for_its_owner_only(tmp_path: Path) -> None:
    open_file(tmp_path / "s.db").close()
    assert stat.S_IMODE(os.stat(tmp_path / "s.db").st_mode) == 0o600


def open_file(path: Path | str) -> Store:
    return open_store(f"sqlite:///{path}")


def test_opening_again_changes_nothing(tmp_path: Path) -> None:
    path = str(tmp_path / "s.db")
    for _ in range(2):
        open_file(path).close()
    db = sqlite3.connect(path)
    assert db.execute("PRAGMA user_version").fetchone() == (VERSION,)
    assert db.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
    assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)


@pytest.mark.parametrize("other", [1, VERSION - 1, VERSION + 1])
def test_a_file_of_another_ina_is_refused_and_left_as_it_is(other: int, tmp_path: Path) -> None:
    path = str(tmp_path / "s.db")
    with closing(open_file(path)) as store:
        store.claim("test").save(job())
    with sqlite3.connect(path) as db:
        db.execute(f"PRAGMA user_version = {other}")
    what_to_do = "let the ina that made it end its jobs, then remove the store or name another one"
    with pytest.raises(StoreError, match=rf"s\.db: its schema is {other}, .*: {what_to_do}$"):
        open_file(path)
    with sqlite3.connect(path) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (other,)
        assert db.execute("SELECT count(*) FROM jobs").fetchone() == (1,)


def test_a_row_that_cannot_be_read_is_said(store: Store) -> None:
    claim = store.claim("test")
    claim.save(job())
    for what in ("job", "endpoint"):
        with store.transaction() as (db, _):
            db.execute("UPDATE members SET endpoint = '{}'")
            if what == "job":
                db.execute("UPDATE jobs SET job = '{'")
        with pytest.raises(StoreError, match=r"job 1 in the store cannot be read: "):
            store.load(0.0)


def test_another_program_s_file_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = str(tmp_path / "s.db")
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE bookmarks (url TEXT)")
    with pytest.raises(StoreError, match="belongs to another program"):
        open_file(path)
    with sqlite3.connect(path) as db:
        assert db.execute("SELECT name FROM sqlite_master").fetchall() == [("bookmarks",)]


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda path: path.write_text("no database, but a text of some length " * 9), "not a data"),
        (lambda path: path.mkdir(), "Is a directory"),
        (lambda path: path.parent.rmdir(), "No such file or directory"),
    ],
)
def test_a_file_that_is_no_store(make: object, says: str, tmp_path: Path) -> None:
    path = tmp_path / "d" / "s.db"
    path.parent.mkdir()
    assert callable(make)
    make(path)
    with pytest.raises(StoreError, match=rf"store {path}: .*{says}") as caught:
        open_file(path)
    assert "\n" not in str(caught.value)


def test_a_closed_store_says_so(store: Store) -> None:
    claim = store.claim("test")
    store.close()
    store.close()
    with pytest.raises(StoreError, match="closed"):
        claim.save(replace(job()))
