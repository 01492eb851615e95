"""Window algorithms beside one another, on the same networks: ``ina sim compare windows``."""
