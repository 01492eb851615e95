"""Memory policies compared: a trace of jobs through the controller that ships, in virtual time."""
