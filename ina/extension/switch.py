"""``ina._native.switch``, known to be of these sources."""

from ina._native.switch import *  # noqa: F403
