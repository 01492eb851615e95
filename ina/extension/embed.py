"""``ina._native.embed``, known to be of these sources."""

from ina._native.embed import *  # noqa: F403
