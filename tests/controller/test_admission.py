"""Tenants, quotas, priorities: who gets in, who must go, and that no quota is ever exceeded."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ina.controller.config import TenantConfig
from ina.controller.errors import JobConflictError, JobTokenError, NoRoomError, TenantError
from ina.controller.job import JobSpec, JobState
from ina.controller.jobs.admission import Admission
from ina.controller.jobs.numbers import EpochCounter
from ina.controller.jobs.registry import Registry
from ina.controller.memory import FirstFit, StaticPool
from tests.worlds.fakes.registries import endpoint, run_job
from tests.worlds.fakes.switches import NAME, alone, memory_of


def make_registry(
    tenants: dict[str, TenantConfig] | None = None, *, preempt: bool = False, asked: bool = False
) -> Registry:
    return Registry(
        alone(FirstFit(64, 16) if asked else StaticPool(64, 16)),
        EpochCounter(0),
        range(1, 100),
        admission=Admission(tenants or {}, preempt=preempt),
    )


def test_a_tenant_that_is_not_configured_is_refused() -> None:
    registry = make_registry({"vision": TenantConfig()})
    registry.create(JobSpec("a", 2, tenant="vision"), 0.0)
    with pytest.raises(TenantError, match="'b': no tenant is called 'speech'"):
        registry.create(JobSpec("b", 2, tenant="speech"), 0.0)
    with pytest.raises(TenantError, match="no tenant is called 'default'"):
        registry.create(JobSpec("b", 2), 0.0)
    with pytest.raises(TenantError, match="'speech'"):
        registry.create(JobSpec("a", 2, tenant="speech"), 0.0)


def test_without_tenants_each_name_is_one() -> None:
    registry = make_registry()
    assert registry.create(JobSpec("a", 2), 0.0).tenant == "default"
    assert registry.create(JobSpec("b", 2, tenant="x", priority=7), 0.0).priority == 7
    with pytest.raises(JobConflictError, match="'b' is of tenant 'x', not 'default'"):
        registry.create(JobSpec("b", 2), 0.0)


def test_who_takes_no_slots_is_no_matter_of_how_many_there_are() -> None:
    """A job whose mapping changes has both: more than its tenant may (seed 12164)."""
    registry = make_registry({"t": TenantConfig()})
    large = registry.create(JobSpec("large", 2, tenant="t"), 0.0)  # it has 16
    admission = Admission({"t": TenantConfig(slots=8)})
    admission.check_quota(JobSpec("b", 2, tenant="t"), {}, [large])
    with pytest.raises(NoRoomError, match="16 of 8 slots in use, and this needs 2 more"):
        admission.check_quota(JobSpec("b", 2, tenant="t"), {"": 2}, [large])


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        (TenantConfig(jobs=2), "2 of 2 jobs in use, and this needs 1 more"),
        (TenantConfig(slots=40), "32 of 40 slots in use, and this needs 16 more"),
        (TenantConfig(workers=6), "4 of 6 workers in use, and this needs 3 more"),
    ],
)
def test_a_quota_is_refused_with_its_numbers_and_holds_for_one_tenant(
    limits: TenantConfig, said: str
) -> None:
    registry = make_registry({"t": limits, "u": TenantConfig()})
    for name in "ab":
        registry.create(JobSpec(name, 2, tenant="t"), 0.0)
    with pytest.raises(NoRoomError, match=f"'c': quota of tenant 't': {said}"):
        registry.create(JobSpec("c", 3, tenant="t"), 0.0)
    registry.create(JobSpec("c", 3, tenant="u"), 0.0)
    registry.abandon(registry.get("a"))
    registry.create(JobSpec("d", 3, tenant="t"), 0.0)


def test_priorities_are_capped() -> None:
    registry = make_registry({"t": TenantConfig(max_priority=3)})
    assert registry.create(JobSpec("a", 1, tenant="t", priority=9), 0.0).priority == 3
    assert registry.create(JobSpec("b", 1, tenant="t", priority=-1), 0.0).priority == -1


def test_the_youngest_of_the_least_important_makes_room() -> None:
    registry = make_registry(preempt=True)
    for age, (name, priority) in enumerate([("a", 0), ("b", 1), ("c", 0), ("d", 5)]):
        registry.create(JobSpec(name, 1, priority=priority), float(age))
    assert [job.name for job in registry.victims(JobSpec("new", 1, priority=1), 0)] == ["c"]
    assert registry.victims(JobSpec("new", 1), 0) == []


def test_nobody_is_ended_for_a_quota() -> None:
    registry = make_registry({"t": TenantConfig(jobs=1, max_priority=9)}, preempt=True)
    registry.create(JobSpec("a", 1, tenant="t"), 0.0)
    with pytest.raises(NoRoomError, match="1 of 1 jobs in use"):
        registry.victims(JobSpec("b", 1, tenant="t", priority=9), 0)


def test_without_preemption_nobody_is_ended() -> None:
    registry = make_registry()
    for name in "abcd":
        registry.create(JobSpec(name, 1), 0.0)
    assert registry.victims(JobSpec("e", 1, priority=9), 0) == []


JOBS = st.lists(st.tuples(st.integers(1, 16), st.integers(0, 3)), min_size=1, max_size=12)


@given(JOBS, st.integers(1, 32), st.integers(0, 4))
def test_victims_are_less_important_and_just_enough(
    jobs: list[tuple[int, int]], half: int, priority: int
) -> None:
    registry = make_registry(preempt=True, asked=True)
    for index, (half_slots, other) in enumerate(jobs):
        try:
            registry.create(JobSpec(f"j{index}", 1, 2 * half_slots, priority=other), float(index))
        except NoRoomError:
            continue
    if registry.switches[NAME].memory.fits("new", 2 * half, []):
        return
    victims = registry.victims(JobSpec("new", 1, priority=priority), 2 * half)
    lower = [job for job in registry if job.priority < priority]
    possible = registry.switches[NAME].memory.fits(
        "new", 2 * half, [memory_of(job) for job in lower]
    )
    assert bool(victims) == possible
    assert all(victim.priority < priority for victim in victims)
    for spared in victims:
        rest = [memory_of(victim) for victim in victims if victim is not spared]
        assert not registry.switches[NAME].memory.fits("new", 2 * half, rest)
    for victim in victims:
        registry.abandon(victim)
    if victims:
        registry.create(JobSpec("new", 1, 2 * half, priority=priority), 99.0)


LIMITS = st.builds(
    TenantConfig, slots=st.integers(0, 64), jobs=st.integers(0, 3), workers=st.integers(0, 8)
)


@given(
    LIMITS,
    st.lists(st.tuples(st.booleans(), st.integers(1, 5), st.integers(0, 8)), max_size=20),
)
def test_no_quota_is_ever_exceeded(
    limits: TenantConfig, steps: list[tuple[bool, int, int]]
) -> None:
    registry = make_registry({"t": limits}, asked=True)
    for index, (begin, workers, half) in enumerate(steps):
        jobs = list(registry)
        if begin:
            try:
                registry.create(JobSpec(f"j{index}", workers, 2 * half, tenant="t"), 0.0)
            except NoRoomError:
                continue
        elif jobs:
            registry.abandon(jobs[half % len(jobs)])
        jobs = list(registry)
        assert len(jobs) <= (limits.jobs or 99)
        assert sum(job.world_size for job in jobs) <= (limits.workers or 99)
        assert sum(memory_of(job).reserved for job in jobs) <= (limits.slots or 99)
        assert registry.slots_used() == sum(memory_of(job).reserved for job in jobs)


@pytest.mark.parametrize(
    ("first", "other", "said"),
    [
        ("secret", "guess", "another join token"),
        ("secret", "", "another join token"),
        ("", "secret", "no join token"),
    ],
)
def test_all_show_the_token_of_the_first(first: str, other: str, said: str) -> None:
    registry = make_registry()
    job = registry.create(JobSpec("j", 2, token=first), 0.0)
    assert registry.create(JobSpec("j", 2, token=first), 0.0) is job
    with pytest.raises(JobTokenError, match=said):
        registry.create(JobSpec("j", 2, token=other), 0.0)
    with pytest.raises(JobTokenError, match=said):
        registry.join("j", 0, endpoint(1), token=other)
    assert not job.members
    registry.join("j", 0, endpoint(1), token=first)
    assert first.encode() not in job.token_hash or not first


def test_who_lacks_the_token_hears_nothing_else_of_a_job_that_runs() -> None:
    registry = make_registry()
    job = registry.create(JobSpec("j", 1, token="secret"), 0.0)
    registry.join("j", 0, endpoint(1), token="secret")
    registry.place(job)
    registry.installed(job)
    assert job.state is JobState.RUNNING
    for other, world_size in (("guess", 1), ("", 2)):
        with pytest.raises(JobTokenError, match=r"^job 'j' was created with another join token$"):
            registry.create(JobSpec("j", world_size, token=other), 0.0)
    with pytest.raises(JobConflictError, match="the name 'j' is in use: it is running"):
        registry.create(JobSpec("j", 1, token="secret"), 0.0)


def test_a_job_from_before_comes_back_with_its_number_and_slots() -> None:
    before = make_registry()
    jobs = [run_job(before, name, 1) for name in "ab"]
    after = make_registry()
    after.adopt(jobs[1])
    assert after.get("b") is jobs[1]
    other = run_job(after, "c", 1)
    assert (other.number, memory_of(other).first) == (jobs[0].number, memory_of(jobs[0]).first)
    with pytest.raises(JobConflictError, match="name or number 1 is in use"):
        after.adopt(jobs[0])
    after.leave("b", 0, jobs[1].epoch)
    after.removed(jobs[1])
    assert after.slots_used() == 16


def test_foreign_numbers_and_slots_are_not_handed_out() -> None:
    registry = make_registry()
    registry.switches[NAME].set_foreign([1, 2], [range(8)])
    job = registry.create(JobSpec("a", 1), 0.0)
    assert (job.number, memory_of(job).first) == (3, 16)
    registry.switches[NAME].set_foreign([], [])
    assert memory_of(registry.create(JobSpec("b", 1), 0.0)).first == 0


def test_a_job_that_runs_can_be_ended_for_all() -> None:
    registry = make_registry()
    job = run_job(registry, "j", 3)
    registry.end(job)
    assert (job.state, job.members) == (JobState.LEAVING, {})
    assert registry.leave("j", 1, job.epoch) is None
    registry.removed(job)
    assert registry.slots_used() == 0


@pytest.mark.parametrize(
    ("slots", "max_window", "window"), [(16, 0, 8), (14, 0, 4), (2, 0, 1), (16, 3, 3), (16, 99, 8)]
)
def test_windows_are_what_the_slots_and_the_queues_bear(
    slots: int, max_window: int, window: int
) -> None:
    registry = Registry(
        alone(StaticPool(64, 16), max_window=max_window), EpochCounter(0), range(1, 9)
    )
    assert registry.create(JobSpec("j", 1, slots), 0.0).window == window
