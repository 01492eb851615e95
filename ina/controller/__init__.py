"""The controller, room by room (see docs/architecture.md)."""
