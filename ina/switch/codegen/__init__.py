"""Typed pipeline to C, C to a shared object."""
