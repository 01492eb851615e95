"""A researcher's own window: the class that ``module:Class`` names, and how the core calls it."""

from __future__ import annotations

import _thread
import importlib
import inspect
import numbers
import os
import re
import sys
import traceback
from collections.abc import Callable, Mapping

from ina.congestion.errors import CongestionError, WindowError
from ina.congestion.window import Batch, Window

_NAME = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", re.ASCII)
_MOST_PACKETS = (1 << 32) - 1
_MOST_GAP_NS = 3_600_000_000_000
"""An hour: who wants no packets sent is told of it before the job is."""

_new = tuple.__new__  # Batch(...) without a call of Python's own
Said = tuple[int, int, int]
"""Packets, the pace's gap in ns, and its burst in packets."""
Told = Callable[..., Said | None]
"""Takes the fields of a Batch in their order; None: the window has failed, and is as it was."""


def is_own(algorithm: str) -> bool:
    """Whether an algorithm's name is that of a class, rather than one of the table."""
    return ":" in algorithm


def check_name(algorithm: str) -> None:
    """Raise CongestionError unless it may be a class's. Imports nothing."""
    if _NAME.fullmatch(algorithm) is None:
        raise CongestionError(f"the window {algorithm!r}: want module:Class, as my_module:MyWindow")


class Own:
    """One class with its options; the core makes a window of it for each share of a worker's lanes.

    Not picklable: whoever is elsewhere imports the class there.
    """

    def __init__(self, algorithm: str, options: Mapping[str, float]) -> None:
        """Imports the class. Raises CongestionError: there is none, or it lacks an option."""
        check_name(algorithm)
        self.error: WindowError | None = None
        """The first failure of any of its windows. None is called any more from then on."""
        self._name = algorithm
        self._options = dict(options)
        self._class = _imported(algorithm)
        _check_options(algorithm, self._class, self._options)

    def window(self, largest: int) -> tuple[Told, int, int, int]:
        """For the core: what it is to call, and what the new window says before that.

        Raises WindowError.
        """
        try:
            one = self._class(largest, **self._options)
            said = _said(one)
        except Exception as error:
            raise self._failure(f"with largest = {largest}", error) from error
        packets, pace = one.packets, one.pace

        # Between batches Python has left the processor's caches: a step here takes a microsecond.
        def told(*fields: int) -> Said | None:
            nonlocal said, packets, pace
            if self.error is not None:
                return None
            try:
                one.on_batch(_new(Batch, fields))
                if one.packets is not packets or one.pace is not pace:
                    said = _said(one)
                    packets, pace = one.packets, one.pace
            except BaseException as error:
                if isinstance(error, KeyboardInterrupt):
                    _thread.interrupt_main()  # the core cannot pass it on
                self.error = self._failure("in on_batch", error)
                self.error.__cause__ = error
                return None
            return said

        return (told, *said)

    def _failure(self, where: str, error: BaseException) -> WindowError:
        frames = traceback.extract_tb(error.__traceback__)
        last = next((it for it in reversed(frames) if it.filename != __file__), None)
        at = "" if last is None else f" ({os.path.basename(last.filename)}:{last.lineno})"
        is_said = isinstance(error, CongestionError)  # by this file, in a line
        kind = "" if is_said else f"{type(error).__name__}: "
        failure = WindowError(f"the window {self._name!r} failed {where}: {kind}{error}{at}")
        failure.detail = "" if is_said else "".join(traceback.format_exception(error))
        return failure


def _said(window: Window) -> Said:
    """Raises CongestionError: it is no number of packets, or no pace."""
    packets = window.packets
    if not (_is_number(packets) and packets >= 1):
        raise CongestionError(f"it says packets = {packets!r}: want a number, at least 1")
    pace = window.pace
    try:
        gap_ns, burst_packets = pace
        is_pace = (
            isinstance(pace, tuple)  # not a list, which could change
            and _is_number(gap_ns)
            and _is_number(burst_packets)
            and 0 <= gap_ns <= _MOST_GAP_NS
            and burst_packets >= 1
        )
    except (TypeError, ValueError):
        is_pace = False
    if not is_pace:
        raise CongestionError(
            f"it says pace = {pace!r}: want Pace(gap_ns, burst_packets), a gap of 0 ns to an hour"
            " and a burst of at least 1"
        )
    return (
        int(min(packets, _MOST_PACKETS)),
        int(gap_ns),
        int(min(burst_packets, _MOST_PACKETS)),
    )


def _is_number(value: object) -> bool:
    kind = type(value)
    return kind is int or kind is float or (isinstance(value, numbers.Real) and kind is not bool)


def _imported(algorithm: str) -> type[Window]:
    module_name, _, class_name = algorithm.partition(":")
    who = f"the window {algorithm!r}"
    here = os.getcwd()
    if here not in sys.path and "" not in sys.path:
        sys.path.append(here)  # as with `python -m`, but after all else
    try:
        module = importlib.import_module(module_name)
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and _is_part(error.name, module_name):
            raise CongestionError(
                f"{who}: there is no module {error.name!r} in {here} or on Python's path"
            ) from None
        failure = CongestionError(f"{who}: its module fails: {type(error).__name__}: {error}")
        failure.detail = "".join(traceback.format_exception(error))
        raise failure from error
    found = getattr(module, class_name, None)
    where = getattr(module, "__file__", None) or module_name
    if found is None:
        there = ", ".join(name for name, it in vars(module).items() if _is_window(it)) or "none"
        raise CongestionError(f"{who}: {where} has no {class_name}; windows there: {there}")
    if not _is_window(found):
        raise CongestionError(
            f"{who}: {class_name} of {where} is no class derived from ina.congestion.Window"
        )
    assert isinstance(found, type)
    if missing := sorted(getattr(found, "__abstractmethods__", ())):
        raise CongestionError(f"{who}: {class_name} of {where} has no {', '.join(missing)}")
    return found


def _is_part(name: str | None, module_name: str) -> bool:
    return name is not None and f"{module_name}.".startswith(f"{name}.")


def _is_window(found: object) -> bool:
    return isinstance(found, type) and issubclass(found, Window) and found is not Window


def _check_options(algorithm: str, kind: type[Window], options: Mapping[str, float]) -> None:
    try:
        inspect.signature(kind).bind(1, **options)
    except TypeError as error:
        taken = list(inspect.signature(kind).parameters)[1:]
        raise CongestionError(
            f"the window {algorithm!r} does not take its options: {error}; it has"
            f" {', '.join(taken) or 'none'}"
        ) from None
