"""What callers see: gRPC services, metrics, and the role in which a controller answers."""
