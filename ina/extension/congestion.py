"""``ina._native.congestion``, known to be of these sources."""

from ina._native.congestion import *  # noqa: F403
