"""``ina._native.infer``, known to be of these sources."""

from ina._native.infer import *  # noqa: F403
