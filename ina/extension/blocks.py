"""``ina._native.blocks``, known to be of these sources."""

from ina._native.blocks import *  # noqa: F403
