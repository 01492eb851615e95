"""The doors of ``native/testing/doors.hpp``, for fuzzers and tests."""

class BrokenPromise(AssertionError):  # noqa: N818 (as in C++)
    """What a door says holds for every input did not."""

def door_names() -> list[str]: ...
def enter(name: str, data: bytes) -> None:
    """Raises :class:`BrokenPromise`; ValueError: no door has this name."""

def enter_pipeline(pipeline: int, setup: bytes, data: bytes) -> None:
    """Frames at the compiled program at this address. Raises :class:`BrokenPromise`."""
