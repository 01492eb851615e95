"""Slots as a resource that jobs share: how many each is to have, who waits, who is resized."""
