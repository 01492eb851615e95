"""Errors of the PyTorch backend."""

from __future__ import annotations

from ina.errors import DeadlineError, InaError, InvalidInputError, UnavailableError


class SettingError(InvalidInputError):
    """An ``INA_*`` environment variable has a value that cannot be used."""


class GroupSizeError(InvalidInputError):
    """The process group has more workers than its switches can sum."""


class UnsupportedDeviceError(InvalidInputError):
    """The tensor is not in CPU memory."""


class NotShardedError(InvalidInputError):
    """The model has no parameters that FSDP2 shards, or not as this needs it."""


class NotInaGroupError(InvalidInputError):
    """The process group is not of backend ``ina``."""


class RendezvousError(UnavailableError):
    """The group could not agree on a controller and a job, or rank 0 could not start them."""


class WorkTimeoutError(DeadlineError):
    """``Work.wait(timeout)`` returned before the sum was there; the operation goes on."""


class GroupClosedError(InaError):
    """The process group has been destroyed."""


class FallbackError(UnavailableError):
    """The switch was lost, and the ranks could not go on over Gloo either."""


class OverlappingTensorError(InvalidInputError):
    """Elements of a tensor that is to be written share memory."""
