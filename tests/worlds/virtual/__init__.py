"""Whole networks in this process, in virtual time or by hand: the core that ships in them."""
