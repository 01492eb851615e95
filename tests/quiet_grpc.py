"""What a fork server loads first: as ``ina`` itself has it, gRPC says nothing of handshakes."""

import os

os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
