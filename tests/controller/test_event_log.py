"""One log line an event, with fields for machines."""

from __future__ import annotations

import logging

import pytest

from ina.controller.jobs.events import EventBus
from ina.rpc import controller_pb2 as pb2


def event(kind: pb2.EventKind, **more: object) -> pb2.JobEvent:
    return pb2.JobEvent(kind=kind, name="train", job=3, epoch=7, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("said", "level", "line"),
    [
        (event(pb2.JOB_CREATED), "INFO", "job 'train': created (number 3, epoch 7)"),
        (
            event(pb2.MEMBER_JOINED, ranks=[1]),
            "INFO",
            "job 'train': rank 1 joined (number 3, epoch 7)",
        ),
        (
            event(pb2.JOB_RUNNING, reason="2 workers, slots 0..511, window 256"),
            "INFO",
            "job 'train': runs: 2 workers, slots 0..511, window 256 (number 3, epoch 7)",
        ),
        (
            event(pb2.MEMBER_LOST, ranks=[0, 1], reason="gone", fatal=True),
            "ERROR",
            "job 'train': ranks 0, 1 lost: gone (number 3, epoch 7)",
        ),
        (
            event(pb2.JOB_ENDED, reason="they differ", fatal=True),
            "ERROR",
            "job 'train': ended: they differ (number 3, epoch 7)",
        ),
    ],
)
def test_each_event_is_a_line(
    said: pb2.JobEvent, level: str, line: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        EventBus().publish(said)
    (record,) = caplog.records
    assert (record.levelname, record.getMessage()) == (level, line)
    fields = vars(record)["ina_fields"]
    assert fields["event"] == pb2.EventKind.Name(said.kind)
    assert (fields["job_name"], fields["ranks"]) == ("train", list(said.ranks))


def test_every_event_of_a_job_is_a_line(caplog: pytest.LogCaptureFixture) -> None:
    of_none = ("EVENT_UNSPECIFIED", "SWITCH_UNREACHABLE", "SWITCH_BACK", "FABRIC_CHANGED")
    names = pb2.EventKind.keys()
    of_jobs = [getattr(pb2, name) for name in names if name not in of_none]
    with caplog.at_level(logging.INFO):
        for kind in of_jobs:
            EventBus().publish(event(kind, reason="so it is"))
    assert len(caplog.records) == len(of_jobs)
    assert all(": so it is (" in record.getMessage() for record in caplog.records)


def test_that_a_job_stalls_and_goes_on_is_heard_alike(caplog: pytest.LogCaptureFixture) -> None:
    bus = EventBus()
    with caplog.at_level(logging.INFO):
        bus.publish(event(pb2.JOB_STALLED, ranks=[1], reason="rank 1 has not sent it"))
        bus.publish(event(pb2.JOB_RESUMED, reason="after 3 s"))
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("INFO", "job 'train': stalled: rank 1 has not sent it (number 3, epoch 7)"),
        ("INFO", "job 'train': goes on: after 3 s (number 3, epoch 7)"),
    ]
