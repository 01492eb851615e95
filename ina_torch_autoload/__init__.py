"""Makes ``init_process_group("ina")`` work without ``import ina.torch``.

torch calls :func:`register` at the end of its own import (entry point group ``torch.backends``),
in every program of an environment that has ina, also those that never use it. So it imports nothing
(``import ina`` sets an option of gRPC's for the whole process: hence a package of its own), and
what goes wrong does not break ``import torch``. The first group imports :mod:`ina.torch`.
``TORCH_DEVICE_BACKEND_AUTOLOAD=0`` turns it off.
"""

from __future__ import annotations

import warnings
from typing import Any

_NAME = "ina"
_DEVICES = ["cpu", "cuda"]  # ina.torch.devices.DEVICES, which cannot be imported yet


def register() -> None:
    """Tell torch of the backend, unless :mod:`ina.torch` has. Warns where torch refuses it."""
    import torch.distributed as dist  # imported by now, as a rule: torch does it

    if not dist.is_available():  # a build without it
        return
    try:
        if not hasattr(dist.Backend, _NAME.upper()):
            dist.Backend.register_backend(_NAME, _create, extended_api=True, devices=_DEVICES)
    except Exception as error:  # of a later torch; raised, it would break every import of torch
        warnings.warn(
            f"ina: backend 'ina' cannot be registered ({error}); import ina.torch says more",
            stacklevel=2,
        )


def _create(options: Any, backend_options: object) -> Any:
    """As :func:`ina.torch.create`, which takes this one's place when it is imported."""
    import ina.torch

    return ina.torch.create(options, backend_options)
