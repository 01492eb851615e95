"""``ina._native.shm``, known to be of these sources."""

from ina._native.shm import *  # noqa: F403
