"""Importing this makes gRPC's thread dwell on what comes of a cancelled call, holding its lock."""

from __future__ import annotations

import threading
import time
from typing import Any

import grpc._channel as internals

handling = threading.Event()
_handle_event: Any = internals._handle_event


def _slowly(event: Any, state: Any, deserializer: Any) -> Any:
    if state.cancelled:
        handling.set()
        time.sleep(3.0)
    return _handle_event(event, state, deserializer)


internals._handle_event = _slowly  # type: ignore[assignment]
