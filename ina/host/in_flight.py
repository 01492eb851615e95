"""Operations that have been submitted, and the memory that must stay until each has ended."""

from __future__ import annotations

from ina.extension.host import Operation, OperationState

_FIRST_SWEEP = 16  # operations whose memory may stay alive after their end


class InFlight:
    """One session's. Not thread-safe."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[Operation, object]] = {}
        self._sweep_at = _FIRST_SWEEP

    def add(self, operation: Operation, keep: object) -> None:
        """Keep what it reads and writes alive."""
        if len(self._kept) >= self._sweep_at:
            self._sweep()
        self._kept[operation.id] = (operation, keep)

    def forget(self, operation_id: int) -> None:
        """It has ended. Idempotent."""
        self._kept.pop(operation_id, None)

    def has_pending(self) -> bool:
        """Whether any has not ended."""
        return any(it.state == OperationState.PENDING for it, _ in self._kept.values())

    def clear(self) -> None:
        """All have ended."""
        self._kept.clear()

    def _sweep(self) -> None:
        """Let go of ended operations; again when as many have come, so a submit costs O(1)."""
        for done in [i for i, (o, _) in self._kept.items() if o.state != OperationState.PENDING]:
            del self._kept[done]
        self._sweep_at = max(_FIRST_SWEEP, 2 * len(self._kept))
