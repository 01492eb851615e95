"""What a switch shall have and has, as entries and groups, and the protocols that carry it."""
