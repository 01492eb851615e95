"""``ina switch detach``: takes a pinned switch out of the kernel."""

from __future__ import annotations

from ina.cli.common.output import emit
from ina.switch.xdp.detach import detach


def detach_pin(name: str, json: bool) -> None:
    """Prints what was removed. Raises what :func:`~ina.switch.xdp.detach.detach` raises."""
    gone = detach(name)
    said = [f"port {port} ({interface})" for port, interface in gone.ports.items()]
    said += [f"{gone.programs} programs", f"{gone.maps} maps"] if gone else []
    document = {
        "name": name,
        "ports": {str(port): interface for port, interface in gone.ports.items()},
        "programs": gone.programs,
        "maps": gone.maps,
    }
    human = f"removed {', '.join(said)}" if gone else f"nothing is pinned as {name}"
    emit(document, json, human)
