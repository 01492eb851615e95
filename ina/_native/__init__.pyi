from ina._native import blocks as blocks
from ina._native import check as check
from ina._native import congestion as congestion
from ina._native import host as host
from ina._native import quantize as quantize
from ina._native import rdma as rdma
from ina._native import shm as shm
from ina._native import switch as switch
from ina._native import testing as testing

SOURCES_SHA256: str
