"""The P4Runtime service of the soft switch (P4Runtime 1.4, full pipeline access)."""

from ina.switch.p4runtime.device import Device
from ina.switch.p4runtime.service import P4RuntimeService

__all__ = ["Device", "P4RuntimeService"]
