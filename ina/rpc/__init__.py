"""The gRPC contract between hosts, operators and the controller (``controller.proto``)."""
