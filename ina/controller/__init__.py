"""controller (see docs/architecture.md)."""
