"""``ina._native.host``, known to be of these sources."""

from ina._native.host import *  # noqa: F403
