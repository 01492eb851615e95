"""Finds out what is wrong: with this machine, the way to the switch and back, a job."""
