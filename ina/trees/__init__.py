"""The trees that a job is summed over, and what its packets are sent by. Pure."""
