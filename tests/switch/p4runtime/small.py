"""The small program of tests/switch/ir over P4Runtime: its config, without a P4 source."""

from __future__ import annotations

import json

from finsy.proto import p4i, p4r
from google.protobuf import text_format

from tests.switch.ir.small import Json


def small_config(program: Json, p4info: str = "") -> p4r.ForwardingPipelineConfig:
    """``p4info``: as text; the empty one says that there is nothing to control."""
    info = text_format.Parse(p4info or "pkg_info {}", p4i.P4Info())
    return p4r.ForwardingPipelineConfig(p4info=info, p4_device_config=json.dumps(program).encode())
