"""``ina._native.sim``, known to be of these sources."""

from ina._native.sim import *  # noqa: F403
