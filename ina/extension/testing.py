"""``ina._native.testing``, known to be of these sources."""

from ina._native.testing import *  # noqa: F403
