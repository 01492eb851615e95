"""Fuzzing of every door through which bytes from outside come; docs/fuzzing.md."""
