"""Tenants, tokens, sizes and preemption, as a configuration file sets them, through the service."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import msgspec
import pytest

from ina.cli import main
from ina.controller.config import TenantConfig
from ina.controller.embedded import Embedded
from ina.rpc import controller_pb2 as pb2
from tests.worlds.fakes.workers import CALL_TIMEOUT_S, Workers, is_clean, refusal, workers_of
from tests.worlds.processes.controllers import controller

pytestmark = pytest.mark.usefixtures("quick_retries")

TENANTS = {"tenants": {"vision": {"jobs": 1, "max_priority": 5}, "speech": {"slots": 4096}}}


def test_tenants_and_their_quotas() -> None:
    with controller(TENANTS) as workers:
        workers.create("a", 1, tenant="vision", priority=9)
        assert [(job.tenant, job.priority) for job in workers.jobs()] == [("vision", 5)]
        with refusal(
            grpc.StatusCode.PERMISSION_DENIED, "'b': no tenant is called 'default'; .* INA_TENANT"
        ):
            workers.create("b", 1)
        with refusal(grpc.StatusCode.RESOURCE_EXHAUSTED, "quota of tenant 'vision': 1 of 1 jobs"):
            workers.create("b", 1, tenant="vision")
        workers.create("b", 1, tenant="speech")
        with refusal(
            grpc.StatusCode.RESOURCE_EXHAUSTED, "quota of tenant 'speech': 4096 of 4096 slots"
        ):
            workers.create("c", 1, tenant="speech")


def test_who_finds_its_tenant_s_quota_in_use_waits_for_it_if_it_wants_to() -> None:
    with controller(TENANTS) as workers, ThreadPoolExecutor(1) as pool:
        epoch = workers.run_job("a", 1, tenant="speech").epoch
        waits = pool.submit(workers.create, "b", 1, tenant="speech", queue_s=60.0)
        while not (told := decisions(workers, "b")) and not waits.done():
            time.sleep(0.01)
        assert told[0][0] == "wait"
        assert "quota of tenant 'speech': 4096 of 4096 slots in use" in told[0][1]
        workers.leave("a", 0, epoch)
        assert waits.result(CALL_TIMEOUT_S).slots == 4096


def decisions(workers: Workers, job: str) -> list[tuple[str, str]]:
    request = pb2.ListDecisionsRequest(job=job)
    found = workers.operator.ListDecisions(request, timeout=CALL_TIMEOUT_S).decisions
    return [(it.what, it.reason) for it in found]


def test_a_more_important_job_takes_the_place_of_another() -> None:
    with controller({"jobs": {"preempt": True}}) as workers:
        first = workers.run_job("first", 1)
        second = workers.run_job("second", 1)
        with refusal(grpc.StatusCode.RESOURCE_EXHAUSTED, "all 2 ranges of 4096 slots are in use"):
            workers.create("third", 1)
        with workers.watch("second", 0, second.epoch) as events:
            workers.create("urgent", 1, priority=1)
            told = next(events)
        assert (told.kind, told.fatal) == (pb2.JOB_EVICTED, True)
        assert told.reason == "evicted: job 'urgent' is more important and needs its slots"
        assert [job.name for job in workers.jobs()] == ["first", "urgent"]
        workers.leave("first", 0, first.epoch)


def test_without_preemption_importance_makes_no_room() -> None:
    with controller({}) as workers:
        workers.create("a", 1)
        workers.create("b", 1)
        with refusal(grpc.StatusCode.RESOURCE_EXHAUSTED, "no slots left"):
            workers.create("c", 1, priority=9)
        assert [job.name for job in workers.jobs()] == ["a", "b"]


def test_all_workers_show_the_jobs_token() -> None:
    with controller({}) as workers:
        workers.create("j", 2, token="open sesame")
        other = "job 'j' was created with another join token"
        with refusal(grpc.StatusCode.PERMISSION_DENIED, other):
            workers.create("j", 2)
        with refusal(grpc.StatusCode.PERMISSION_DENIED, other):
            workers.join("j", 0, token="open barley").result()
        joins = [workers.join("j", rank, token="open sesame") for rank in range(2)]
        (epoch,) = {join.result().epoch for join in joins}
        for rank in range(2):
            workers.leave("j", rank, epoch)
        assert is_clean(workers)
        with refusal(grpc.StatusCode.INVALID_ARGUMENT, "a join token of 1001 characters"):
            workers.create("k", 1, token="x" * 1001)


def test_jobs_get_what_they_ask_for() -> None:
    with controller({"jobs": {"sizing": "asked", "slots": 512}}) as workers:
        assert workers.create("big", 1, slots=7000).slots == 7000
        assert workers.create("default", 1).slots == 512
        with refusal(grpc.StatusCode.RESOURCE_EXHAUSTED, "no 1000 free ones are side by side"):
            workers.create("more", 1, slots=1000)
        assert workers.create("rest", 1, slots=680).slots == 680
        assert [(job.first_slot, job.window) for job in workers.jobs()] == [
            (0, 2048),
            (7000, 256),
            (7512, 256),
        ]


def test_jobs_get_equal_shares_and_windows_that_the_switch_bears() -> None:
    config: dict[str, dict[str, Any]] = {
        "jobs": {"sizing": "equal", "count": 3},
        "switch": {"max_window": 60},
    }
    with controller(config) as workers:
        joined = workers.run_job("j", 1)
        assert (joined.slots, joined.window) == (2730, 60)


def test_operators_see_what_each_tenant_uses_and_may_use() -> None:
    limits = {"slots": 8192, "jobs": 2, "workers": 3, "max_priority": 5}
    with controller({"tenants": {"vision": limits, "idle": {}}}) as workers:
        joined = workers.run_job("a", 2, tenant="vision")
        idle, vision = workers.tenants()
        assert idle == pb2.Tenant(name="idle", configured=True)
        used = {"jobs": 1, "slots": 4096, "workers": 2}
        allowed = {"jobs_limit": 2, "slots_limit": 8192, "workers_limit": 3, "max_priority": 5}
        assert vision == pb2.Tenant(name="vision", configured=True, **used, **allowed)
        workers.leave("a", 0, joined.epoch)  # it still has its slots
        assert workers.tenants()[1] == vision
        workers.leave("a", 1, joined.epoch)
        assert workers.tenants()[1].jobs == 0


def test_without_configured_tenants_those_with_jobs_are_shown() -> None:
    with controller({}) as workers:
        assert workers.tenants() == [pb2.Tenant(name="default")]
        workers.create("a", 3, tenant="speech")
        assert workers.tenants()[1] == pb2.Tenant(name="speech", jobs=1, slots=4096, workers=3)


def test_the_command_line_lists_them(capsys: pytest.CaptureFixture[str]) -> None:
    config = {"tenants": {"vision": {"jobs": 2, "max_priority": 5}}}
    with Embedded(values=64, slots=4096, config=config) as embedded:
        with workers_of(embedded.controller_addr) as workers:
            workers.create("a", 1, tenant="vision")
        command = ["tenant", "list", "--controller", embedded.controller_addr]
        assert main.run(command) == 0
        assert capsys.readouterr().out.splitlines()[-1].split() == (
            ["vision", "1", "of", "2", "4096", "1", "5"]
        )
        assert main.run([*command, "--json"]) == 0
        (row,) = json.loads(capsys.readouterr().out)
        assert (row["name"], row["jobs"], row["jobs_limit"]) == ("vision", 1, 2)


def test_of_a_tenant_that_is_no_more_configured_it_says_so(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with Embedded(values=64, slots=4096) as embedded:
        with workers_of(embedded.controller_addr) as workers:
            workers.create("a", 1, tenant="vision")
        command = ["tenant", "list", "--controller", embedded.controller_addr]
        assert main.run(command) == 0
        assert capsys.readouterr().out.splitlines()[-1].split()[-1] == "any"
        assert embedded._app is not None
        assert embedded._loop is not None
        asked = msgspec.structs.replace(
            embedded._app._asked, tenants={"speech": TenantConfig(max_priority=2)}
        )
        embedded._loop.call_soon_threadsafe(embedded._app.reload, asked)
        assert main.run(command) == 0
        speech, vision = capsys.readouterr().out.splitlines()[-2:]
        assert (speech.split()[-1], vision.split()[-1]) == ("2", "refused")


def test_a_tenant_whose_name_cannot_be_printed_is_refused() -> None:
    """PostgreSQL would not store it, and the controller would lose its store for it."""
    with controller({}) as workers, refusal(grpc.StatusCode.PERMISSION_DENIED, "printable"):
        workers.create("a", 1, tenant="a\0b")


def test_all_workers_verify_sums_alike() -> None:
    """As the first asks; by name or not at all. The key is all ranks', and the epoch's."""
    with controller({}) as workers:
        keys = set()
        for asked in ("keyed", "accidents", "off", ""):
            verify = asked or "accidents"  # where packets go by a network
            how = f"by '{asked}'" if asked else "by default"
            workers.create("j", 2, verify=asked)
            workers.create("j", 2)  # whoever asks for nothing does as the others
            for other in {"off", "accidents", "keyed"} - {asked}:
                told = f"job 'j' verifies its sums {how}, not '{other}'"
                with refusal(grpc.StatusCode.ALREADY_EXISTS, told):
                    workers.create("j", 2, verify=other)
            replies = [join.result() for join in [workers.join("j", rank) for rank in range(2)]]
            assert [reply.verify for reply in replies] == [verify] * 2
            (key,) = {reply.check_key for reply in replies}
            assert len(key) == (16 if verify == "keyed" else 0)
            assert key not in {reply.member_key for reply in replies}
            keys.add(key)
            for rank in range(2):
                workers.leave("j", rank, replies[0].epoch)
        assert is_clean(workers)
        assert len(keys) == 2
        with refusal(grpc.StatusCode.INVALID_ARGUMENT, "verify=often: want off or accidents or"):
            workers.create("k", 1, verify="often")
