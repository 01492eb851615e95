"""p4 (see docs/architecture.md)."""
