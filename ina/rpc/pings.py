"""HTTP/2 pings: a sign of life from native code.

gRPC's own threads answer them, also while another thread holds Python's lock, and they stop with
the process. So a stream that is pinged, and stays open, proves that the peer's process runs.
"""

from __future__ import annotations

_SHORTEST_MS = 500

BEARABLE = [
    # A server hangs up on who asks more often.
    ("grpc.http2.min_ping_interval_without_data_ms", _SHORTEST_MS),
    ("grpc.keepalive_permit_without_calls", 1),
]
"""A server's options: what :func:`options` of its clients asks is not too much."""


def options(every_s: float, timeout_s: float) -> list[tuple[str, int]]:
    """Of a channel or a server: ping each connection, break it when no answer comes in time.

    gRPC pings once a second at most. What is silent is noticed after both times together.
    """
    timeout_ms = int(timeout_s * 1000)
    return [
        ("grpc.keepalive_time_ms", max(_SHORTEST_MS, int(every_s * 1000))),
        ("grpc.keepalive_timeout_ms", timeout_ms),
        ("grpc.http2.ping_timeout_ms", timeout_ms),  # which by itself would be a minute
        ("grpc.http2.max_pings_without_data", 0),
    ]
