"""``ina._native.quantize``, known to be of these sources."""

from ina._native.quantize import *  # noqa: F403
