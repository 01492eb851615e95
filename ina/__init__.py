"""ina: in-network aggregation. Gradients are summed by P4 switches on their way.

The package imports without torch; ``import ina.torch`` registers the PyTorch backend.
"""

import os

__version__ = "0.1.0"

# Training processes fork (DataLoader workers, subprocess with a preexec_fn) while a session's
# threads are in gRPC. gRPC's own fork handlers do harm then: in the child they start its threads
# again, on descriptors that are the parent's or, on the way to exec, closed, and abort the child
# ("epoll_wait error: Bad file descriptor"); and they print a line per fork. No child uses our
# channels, so none needs them. gRPC reads this as it is imported, so it stands before all imports.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
