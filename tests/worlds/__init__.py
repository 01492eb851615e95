"""What tests need of the world around ina: event loops, processes."""
