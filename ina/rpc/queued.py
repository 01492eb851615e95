"""How a controller says that a job waits for slots, and is to ask again."""

QUEUED = "waits for slots"
"""Part of the message of a CreateJob that fails with UNAVAILABLE for that reason."""
