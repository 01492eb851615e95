"""What happens to jobs, told to whoever listens: workers, operators, metrics.

For one event loop: nothing here is thread-safe. Listeners never hold up who publishes: one that
does not keep up is dropped, with an error that says so.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable

from ina.controller.errors import SlowWatcherError
from ina.controller.job import Job
from ina.log import fields
from ina.rpc import controller_pb2 as pb2

_log = logging.getLogger(__name__)

QUEUE_EVENTS = 1000
"""Events that a listener may be behind before it is dropped."""
HISTORY_EVENTS = 50
"""Last events that are kept of each job name."""
HISTORY_NAMES = 1000
"""Names that a history is kept of; of more, the one that was silent longest is forgotten."""

Clock = Callable[[], float]


def job_event(
    kind: pb2.EventKind,
    job: Job,
    *,
    ranks: Iterable[int] = (),
    reason: str = "",
    fatal: bool = False,
) -> pb2.JobEvent:
    """An event of ``job``; ``fatal``: the job cannot go on."""
    return pb2.JobEvent(
        kind=kind,
        name=job.name,
        job=job.number,
        epoch=job.epoch,
        switch=job.switch,
        ranks=sorted(ranks),
        reason=reason,
        fatal=fatal,
    )


_WORDS: dict[int, tuple[str, int]] = {
    pb2.JOB_CREATED: ("created", logging.INFO),
    pb2.MEMBER_JOINED: ("joined", logging.INFO),
    pb2.JOB_RUNNING: ("runs", logging.INFO),
    pb2.MEMBER_LEFT: ("left", logging.INFO),
    pb2.MEMBER_LOST: ("lost", logging.ERROR),
    # Workers warn of it, and a job's own controller is in one's process.
    pb2.JOB_STALLED: ("stalled", logging.INFO),
    pb2.JOB_RESUMED: ("goes on", logging.INFO),
    pb2.JOB_EVICTED: ("evicted", logging.ERROR),
    pb2.SWITCH_LOST: ("lost its switch", logging.ERROR),
    pb2.SUMS_CORRUPTED: ("has corrupted sums", logging.ERROR),
    pb2.RANKS_DIFFER: ("is at odds", logging.INFO),  # its ranks are asked how; then it is fatal
    pb2.JOB_ENDED: ("ended", logging.INFO),
    pb2.JOB_REMAPS: ("changes", logging.INFO),
    pb2.JOB_REMAPPED: ("has changed", logging.INFO),
    pb2.JOB_REMAP_OFF: ("does not change", logging.WARNING),
    pb2.JOB_WINDOWS: ("is told its windows", logging.INFO),
}


def log_event(event: pb2.JobEvent) -> None:
    """One line; of the switch as such the supervisor tells, also where no term listens."""
    if event.kind not in _WORDS:
        return
    word, level = _WORDS[event.kind]
    # Most reasons name them, and where they are.
    ranks = "" if event.reason.startswith("rank") else ", ".join(map(str, event.ranks))
    who = f"rank{'s' if len(event.ranks) > 1 else ''} {ranks} " if ranks else ""
    _log.log(
        logging.ERROR if event.fatal else level,
        "job %r: %s%s%s (number %d, epoch %d)",
        event.name,
        who,
        word,
        f": {event.reason}" if event.reason else "",
        event.job,
        event.epoch,
        extra=fields(
            event=pb2.EventKind.Name(event.kind),
            job_name=event.name,
            job=event.job,
            epoch=event.epoch,
            ranks=list(event.ranks),
            reason=event.reason,
            fatal=event.fatal,
        ),
    )


def log_shapes(job: Job) -> None:
    """One line of a job that runs by a mapping which brings it sums alone."""
    if why := job.lacks_shapes:
        _log.info("job %r: collectives that are no sums go beside the network: %s", job.name, why)


class Subscription:
    """The events of one listener, oldest first; an asynchronous iterator.

    Iterating ends when the bus closes, and raises :class:`SlowWatcherError` after the last event
    that there was room for. Leaving its ``with`` block ends it.
    """

    def __init__(self, bus: EventBus, name: str | None, limit: int) -> None:
        self._bus = bus
        self._name = name
        self._limit = limit
        self._events: deque[pb2.JobEvent] = deque()
        self._changed = asyncio.Event()
        self._closed = False
        self._dropped = False

    def __enter__(self) -> Subscription:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __aiter__(self) -> Subscription:
        return self

    async def __anext__(self) -> pb2.JobEvent:
        while not self._events:
            if self._dropped:
                raise SlowWatcherError(
                    f"watcher of {self._whom()}: more than {self._limit} events behind"
                )
            if self._closed:
                raise StopAsyncIteration
            self._changed.clear()
            await self._changed.wait()
        event = self._events.popleft()
        if self._name is None or not self._goes_on(event):
            return event
        merged = pb2.JobEvent()
        merged.CopyFrom(event)  # others have the same
        while self._goes_on(event):
            merged.ranks.extend(self._events.popleft().ranks)
        return merged

    def _goes_on(self, event: pb2.JobEvent) -> bool:
        """Whether the next one says the same of other ranks.

        A thousand ranks leave at once, and each of them hears of all others.
        """
        if not self._events or event.kind != pb2.MEMBER_LEFT:
            return False
        after = self._events[0]
        return (after.kind, after.name, after.epoch, after.reason) == (
            event.kind, event.name, event.epoch, event.reason
        )  # fmt: skip

    def close(self) -> None:
        """Ends it; what has not been read is still read."""
        self._closed = True
        self._changed.set()
        self._bus._forget(self)

    def _offer(self, event: pb2.JobEvent) -> None:
        if self._name is not None and event.name not in ("", self._name):
            return
        if len(self._events) >= self._limit:
            _log.warning("dropping a watcher of %s: it reads too slowly", self._whom())
            self._dropped = True
            self.close()
            return
        self._events.append(event)
        self._changed.set()

    def _whom(self) -> str:
        return "all jobs" if self._name is None else f"job {self._name!r}"


class EventBus:
    """Hands events to the subscriptions of now, and keeps the last ones of each job."""

    def __init__(self, *, unix_clock: Clock = time.time) -> None:
        self._unix_clock = unix_clock
        self._subscriptions: list[Subscription] = []
        self._history: OrderedDict[str, deque[pb2.JobEvent]] = OrderedDict()
        self._closed = False

    def publish(self, event: pb2.JobEvent) -> None:
        """Tells all; never waits. ``unix_s`` is filled in where it is 0."""
        if not event.unix_s:
            event.unix_s = self._unix_clock()
        if event.name and event.kind != pb2.JOB_WINDOWS:  # as they are is shown otherwise
            self._keep(event)
        log_event(event)
        for subscription in list(self._subscriptions):
            subscription._offer(event)

    def subscribe(self, name: str | None = None, *, limit: int = QUEUE_EVENTS) -> Subscription:
        """The events from now on: of job ``name`` and of all jobs together, or (None) every one."""
        subscription = Subscription(self, name, limit)
        if self._closed:
            subscription.close()
        else:
            self._subscriptions.append(subscription)
        return subscription

    def history(self, name: str) -> list[pb2.JobEvent]:
        """The last events of the jobs that were called ``name``, oldest first."""
        return list(self._history.get(name, ()))

    def close(self) -> None:
        """Ends every subscription."""
        self._closed = True
        for subscription in list(self._subscriptions):
            subscription.close()

    def _keep(self, event: pb2.JobEvent) -> None:
        events = self._history.setdefault(event.name, deque(maxlen=HISTORY_EVENTS))
        events.append(event)
        self._history.move_to_end(event.name)
        if len(self._history) > HISTORY_NAMES:
            self._history.popitem(last=False)

    def _forget(self, subscription: Subscription) -> None:
        if subscription in self._subscriptions:
            self._subscriptions.remove(subscription)
