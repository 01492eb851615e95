"""One direction of a cable: what waits before it, and what may befall frames on it."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Literal

from ina.extension import sim as native
from ina.sim.errors import ScenarioError

_MARKINGS = {
    "none": native.Marking.NONE,
    "step": native.Marking.STEP,
    "red": native.Marking.RED,
}
WIRE_GAP_BYTES = 24
"""What a frame takes on a wire besides its bytes: preamble, frame check, gap."""
_MOST_WIRE_GAP_BYTES = 1 << 15
_SHARES = (
    "loss",
    "bad_from",
    "bad_to",
    "bad_loss",
    "duplication",
    "reordering",
    "corruption",
    "red_probability",
    "red_weight",
)


@dataclass(frozen=True)
class Way:
    """Lengths are bytes as on the wire; probabilities are those of a frame.

    Raises :class:`ScenarioError` where a number is out of range.
    """

    bits_per_s: int = 10_000_000_000
    wire_gap_bytes: int = WIRE_GAP_BYTES
    """Of each frame, besides its bytes."""
    burst_bytes: int = 0
    """More than 0: a token bucket, of which so much passes at once after a pause."""
    delay_ns: int = 1_000
    jitter_ns: int = 0
    """Up to so much more, evenly distributed; frames keep their order."""
    loss: float = 0.0
    bad_from: float = 0.0
    """Of losses in bursts (Gilbert-Elliott): how likely a frame begins one,"""
    bad_to: float = 1.0
    """ends one,"""
    bad_loss: float = 1.0
    """and is lost in one."""
    duplication: float = 0.0
    reordering: float = 0.0
    """Frames that later ones may overtake, since they come up to ``reordering_ns`` later."""
    reordering_ns: int = 0
    corruption: float = 0.0
    frame_check: bool = True
    """Corrupted frames are dropped at the link's end; without it they go on."""
    queue_bytes: int = 1 << 40
    """A frame that finds no room is dropped."""
    marking: Literal["none", "step", "red"] = "none"
    mark_bytes: int = 0
    red_least_bytes: int = 0
    red_most_bytes: int = 0
    red_probability: float = 0.1
    red_weight: float = 0.002
    urgent_dscp: int = 64
    """Frames with such a DSCP, or a higher one, go first; 64: none do."""

    def __post_init__(self) -> None:
        for share in _SHARES:
            value = getattr(self, share)
            if not 0 <= value <= 1:
                raise ScenarioError(f"{share} = {value:g}: a probability is 0 to 1")
        for number in fields(self):
            value = getattr(self, number.name)
            if isinstance(value, (int, float)) and not (math.isfinite(value) and value >= 0):
                raise ScenarioError(f"{number.name} = {value}: it must not be negative")
        if self.wire_gap_bytes > _MOST_WIRE_GAP_BYTES:
            raise ScenarioError(
                f"wire_gap_bytes = {self.wire_gap_bytes}: want {_MOST_WIRE_GAP_BYTES} or less"
            )
        if self.marking not in _MARKINGS:
            raise ScenarioError(f"marking = {self.marking!r}: want {', '.join(_MARKINGS)}")

    def link(self) -> native.LinkConfig:
        """For the native network."""
        return native.LinkConfig(
            bits_per_s=self.bits_per_s,
            wire_gap_bytes=self.wire_gap_bytes,
            burst_bytes=self.burst_bytes,
            delay_ns=self.delay_ns,
            jitter_ns=self.jitter_ns,
            loss=self.loss,
            bad_from=self.bad_from,
            bad_to=self.bad_to,
            bad_loss=self.bad_loss,
            duplication=self.duplication,
            reordering=self.reordering,
            reordering_ns=self.reordering_ns,
            corruption=self.corruption,
            frame_check=self.frame_check,
        )

    def queue(self) -> native.QueueConfig:
        """For the native network."""
        return native.QueueConfig(
            limit_bytes=self.queue_bytes,
            marking=_MARKINGS[self.marking],
            mark_bytes=self.mark_bytes,
            red_least_bytes=self.red_least_bytes,
            red_most_bytes=self.red_most_bytes,
            red_probability=self.red_probability,
            red_weight=self.red_weight,
            urgent_dscp=self.urgent_dscp,
        )
