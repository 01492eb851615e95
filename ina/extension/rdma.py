"""``ina._native.rdma``, known to be of these sources."""

from ina._native.rdma import *  # noqa: F403
