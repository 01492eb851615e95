"""Python that ``python -m ina.protocol.emit`` writes."""
