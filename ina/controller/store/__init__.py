"""The desired state of one switch, in SQLite: what must be on it after any restart."""

from ina.controller.store.database import IN_MEMORY, Claim, Store, StoredJob

__all__ = ["IN_MEMORY", "Claim", "Store", "StoredJob"]
