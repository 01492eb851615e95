"""switch (see docs/architecture.md)."""
