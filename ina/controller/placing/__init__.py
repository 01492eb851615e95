"""Where jobs of a fabric are summed: their trees, and moves off what is down."""
