"""The order of operations whose values are known only once others have ended.

Ranks submit the same operations in the same order. What follows from an earlier one's result (the
values of a sparse sum, from its counters) has its place in that order from the moment at which it
was asked for: whatever is submitted later waits behind it, on all ranks alike, until that result is
there. Who waits for what, and when, changes nothing.

How to use it, on top of anything that begins operations::

    turns = Turns()
    first = turns.submit(lambda: begin(a))  # begin(): returns a Sum
    known = Then(first, lambda result: prepare(result))
    second = turns.submit(lambda: begin(known.wait()), after=known)
    third = turns.submit(lambda: begin(b))  # begins once second has begun

*All* operations go through ``submit``. Nothing of it takes a thread of its own: what has to be done
is done in the thread that tells the end of the operation before.
"""

from __future__ import annotations

import contextlib
import copy
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent import futures
from typing import Any, Generic, Protocol, TypeVar

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Sum(Protocol[T_co]):
    """An operation that is under way: ``ina.host.Handle``, or what stands in for it."""

    def add_done_callback(self, function: Callable[[Any], object]) -> object:
        """Call ``function(self)`` once it has ended, from the thread that brings it, or now."""

    def done(self) -> bool:
        """Return whether it has ended, well or not."""

    def wait(self) -> T_co:
        """Return its result once it is there; raise its error."""


class Later(Generic[T]):
    """A result that comes, or an error; a Sum itself."""

    def __init__(self) -> None:
        self._future: futures.Future[T] = futures.Future()

    def done(self) -> bool:
        """Return whether it has ended, with a result or with an error."""
        return self._future.done()

    def has_ended(self, timeout_s: float | None) -> bool:
        """Wait at most so long, or as long as it takes; return whether it has ended."""
        if not self._future.done():
            self._hand_over()
            futures.wait((self._future,), timeout_s)
        return self._future.done()

    def wait(self) -> T:
        """Return the result once it is there; raise the error, a copy for each caller."""
        self.has_ended(None)
        error = self.exception()
        if error is not None:
            raise error
        return self._future.result()

    def exception(self) -> Exception | None:
        """Return the error it ended with; None: it has a result, or has not ended."""
        error = self._future.exception() if self._future.done() else None
        assert error is None or isinstance(error, Exception)
        return None if error is None else copy.copy(error)  # a traceback belongs to one thread

    def add_done_callback(self, function: Callable[[Any], object]) -> None:
        """Call ``function(self)`` once it has ended, from the thread that ends it, or now."""
        self._future.add_done_callback(lambda _: function(self))

    def _succeed(self, result: T) -> None:
        with contextlib.suppress(futures.InvalidStateError):  # it was ended meanwhile
            self._future.set_result(result)

    def _fail(self, error: Exception) -> None:
        with contextlib.suppress(futures.InvalidStateError):
            self._future.set_exception(error)

    def _hand_over(self) -> None:
        """This thread is about to wait: should it be the one that tells the end of what this
        depends on, another one has to."""


class Then(Later[T]):
    """What a function makes of another's result: called once, in the thread that brings that."""

    def __init__(self, source: Sum[Any], function: Callable[[Any], T]) -> None:
        super().__init__()
        self._source = source
        self._function: Callable[[Any], T] | None = function
        source.add_done_callback(self._follow)

    def _follow(self, source: Sum[Any]) -> None:
        function, self._function = self._function, None  # and what it keeps
        assert function is not None
        try:
            result = function(source.wait())
        except Exception as error:
            self._fail(error)
        else:
            self._succeed(result)

    def _hand_over(self) -> None:
        hand_over(self._source)


class Together(Later[list[T]]):
    """The results of all, in their order; the first error of theirs in place of them."""

    def __init__(self, sums: Sequence[Sum[T]]) -> None:
        super().__init__()
        self._sums = tuple(sums)
        self._lock = threading.Lock()
        self._left = len(self._sums)
        for one in self._sums:
            one.add_done_callback(self._one_ended)
        if not self._sums:
            self._succeed([])

    def _one_ended(self, _: Sum[T]) -> None:
        with self._lock:
            self._left -= 1
            if self._left:
                return
        try:
            results = [one.wait() for one in self._sums]
        except Exception as error:
            self._fail(error)
        else:
            self._succeed(results)

    def _hand_over(self) -> None:
        for one in self._sums[:1]:  # one thread tells the ends of all
            hand_over(one)


class Turn(Later[Any]):
    """An operation that begins when it is its turn; its result is that operation's."""

    def __init__(self, turns: Turns, begin: Callable[[], Sum[Any]], after: Sum[Any] | None) -> None:
        """For Turns."""
        super().__init__()
        self._turns = turns
        self._begin: Callable[[], Sum[Any]] | None = begin
        self._sum: Sum[Any] | None = None
        self._error: Exception | None = None
        self.after = after

    @property
    def may_begin(self) -> bool:
        """What it follows from is there."""
        return self.after is None or self.after.done()

    def begin(self) -> None:
        """It is its turn. Raises nothing."""
        assert self._begin is not None
        try:
            self._sum = self._begin()
        except Exception as error:
            self._error = error
        self._begin = self.after = None  # with what they keep

    def tell(self) -> None:
        """Who waits hears of its end from now on; once, after begin()."""
        if self._sum is None:
            assert self._error is not None
            self._fail(self._error)
        else:
            self._sum.add_done_callback(self._follow)

    def drop(self, error: Exception) -> None:
        """It is never its turn."""
        self._begin = self.after = None
        self._fail(error)

    def _follow(self, sum_: Sum[Any]) -> None:
        try:
            result = sum_.wait()
        except Exception as error:
            self._fail(error)
        else:
            self._succeed(result)

    def _hand_over(self) -> None:
        if self._sum is not None:
            hand_over(self._sum)
        else:
            self._turns.hand_over()


class Turns:
    """Of all operations of a session, or of a process group. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._queue: deque[Turn] = deque()
        self._is_moving = False  # guarded by the lock: operations are being begun
        self._end: Callable[[], Exception] | None = None

    @property
    def are_waited_for(self) -> bool:
        """Whether what is submitted now begins later. No: as good as always."""
        return bool(self._queue)

    def submit(self, begin: Callable[[], Sum[T]], after: Sum[Any] | None = None) -> Sum[T]:
        """What `begin` returns if nothing is before it, else what stands for it until its turn.

        `begin` is called once, in this thread or in the one that ends what comes before; what it
        raises, the result raises, unless it is called now and `after` is None. `after`: it is not
        called before this has ended, well or not, and nor is anything that is submitted later.
        """
        if after is None and not self._queue:  # it is emptied after the last one has begun
            return begin()
        turn = Turn(self, begin, after)
        with self._lock:
            if self._end is None:
                self._queue.append(turn)
            end = self._end
        if end is not None:
            turn.drop(end())
        elif after is not None:
            after.add_done_callback(lambda _: self._move())
        else:
            self._move()  # those before may have begun since
        return turn

    def end(self, error: Callable[[], Exception]) -> None:
        """What waits for its turn ends with an error, and all that would have to. Idempotent."""
        with self._lock:
            self._end = self._end or error
            left = list(self._queue)
            self._queue.clear()
        for turn in left:
            turn.drop(error())

    def hand_over(self) -> None:
        """See Later."""
        with self._lock:
            before = self._queue[0].after if self._queue else None
        if before is not None:
            hand_over(before)

    def _move(self) -> None:
        """Begin those whose turn it is."""
        begun = []
        with self._lock:
            if self._is_moving:  # in begin(), of this thread
                return
            self._is_moving = True
            while self._queue and self._queue[0].may_begin:
                turn = self._queue[0]
                turn.begin()
                begun.append(turn)
                if self._queue and self._queue[0] is turn:
                    self._queue.popleft()
            self._is_moving = False
        for turn in begun:
            turn.tell()


def hand_over(sum_: Sum[Any]) -> None:
    """See Later: whoever adds a callback in the completion thread has another thread take over."""
    if isinstance(sum_, Later):
        sum_._hand_over()
    else:  # also where it has ended: others' callbacks may not have run
        sum_.add_done_callback(_nothing)


def _nothing(_: object) -> None:
    pass
