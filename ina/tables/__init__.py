"""What a switch's tables hold, as values, and the sessions that write and read them."""
