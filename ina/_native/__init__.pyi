from ina._native import host as host
from ina._native import switch as switch

__file__: str | None
SOURCES_SHA256: str
