"""What a rank's link has carried."""

from __future__ import annotations

from pathlib import Path


def device_of(host: str | None) -> str | None:
    """The only one of this namespace that is no loopback; None: workers share this host's."""
    if host is None or host.startswith("127."):
        return None
    names = [path.name for path in Path("/sys/class/net").iterdir() if path.name != "lo"]
    named = Path("/proc/net/dev").read_text()
    found = [name for name in names if f"{name}:" in named]
    return found[0] if len(found) == 1 else None


def carried(device: str | None) -> tuple[int, int] | None:
    """Bytes that it has received and sent, with Ethernet's headers."""
    if device is None:
        return None
    for line in Path("/proc/net/dev").read_text().splitlines():
        name, _, counts = line.partition(":")
        if name.strip() == device:
            numbers = counts.split()
            return int(numbers[0]), int(numbers[8])
    return None
