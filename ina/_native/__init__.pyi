from ina._native import host as host
from ina._native import switch as switch

SOURCES_SHA256: str
