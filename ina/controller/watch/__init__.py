"""Watches over running jobs: leases, stalls, ranks that differ, ranks that have left."""
