"""``ina sim``."""
