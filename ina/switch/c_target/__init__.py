"""The C target: a plan as C, compiled by this machine's compiler, loaded into this process."""
