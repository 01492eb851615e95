"""A plan to C: what is printed, and the runtime that it is compiled with."""
