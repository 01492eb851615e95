"""Real processes, their networks and machines, started for a test and gone after it."""
