"""What mode `stream` has in a packet's last word: the number of the block that comes next."""

from __future__ import annotations

NO_BLOCK = 2**32 - 1
"""`next` of a lane that has none left: more than the number of any."""
