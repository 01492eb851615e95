"""All that is compared, by name, in the order of the documentation."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ina.sim.windows.a2tp_testbed import A2TP_TESTBED
from ina.sim.windows.alone import ALONE
from ina.sim.windows.cell import Family
from ina.sim.windows.incast import INCAST
from ina.sim.windows.jobs import JOBS
from ina.sim.windows.late import PAUSES, SLOW_LINK
from ina.sim.windows.panama_clos import PANAMA_CLOS
from ina.sim.windows.slots import SLOTS
from ina.sim.windows.tcp import TCP
from ina.sim.windows.web_search import WEB_SEARCH

_ALL = (ALONE, JOBS, TCP, WEB_SEARCH, SLOTS, INCAST, SLOW_LINK, PAUSES, A2TP_TESTBED, PANAMA_CLOS)
FAMILIES: Mapping[str, Family] = MappingProxyType({family.name: family for family in _ALL})
"""A new one is a module like :mod:`ina.sim.windows.alone`, and its place here."""
