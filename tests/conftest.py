"""What all tests need of the process that they run in."""

from __future__ import annotations

import os
import signal

# Some tests import grpc before ina, which would have set this (see ina/__init__.py).
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

# A job started in the background (`make test &`, some CI runners) ignores SIGINT, and so would each
# process that the tests start and interrupt: programs inherit an ignored signal.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
