"""What libibverbs and ina's own declarations of it agree on, size by size and place by place."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lines import ROOT

HEADER = Path("/usr/include/infiniband/verbs.h")
OURS = ROOT / "native" / "host" / "channel" / "verbs_abi.hpp"
CXX = shutil.which(os.environ.get("CXX", "c++"))

THEIRS = {
    "ContextOps": "ibv_context_ops",
    "Context": "ibv_context",
    "CompChannel": "ibv_comp_channel",
    "Cq": "ibv_cq",
    "Qp": "ibv_qp",
    "Mr": "ibv_mr",
    "Gid": "ibv_gid",
    "GidEntry": "ibv_gid_entry",
    "PortAttr": "ibv_port_attr",
    "GlobalRoute": "ibv_global_route",
    "AhAttr": "ibv_ah_attr",
    "QpCap": "ibv_qp_cap",
    "QpInitAttr": "ibv_qp_init_attr",
    "QpAttr": "ibv_qp_attr",
    "Sge": "ibv_sge",
    "SendWr": "ibv_send_wr",
    "RecvWr": "ibv_recv_wr",
    "Wc": "ibv_wc",
}
MADE_THERE = {"Context", "CompChannel", "Cq", "Qp", "Mr"}
"""By the library: what is behind the fields that we read is left out."""
OTHERWISE_NAMED = {
    ("ContextOps", "before_poll"): "_compat_query_device",
    ("ContextOps", "before_post"): "_compat_cq_event",
    ("ContextOps", "after_post"): "_compat_create_ah",
    ("SendWr", "immediate"): "imm_data",
    ("SendWr", "remote"): "wr",
    ("SendWr", "xrc"): "qp_type",
    ("SendWr", "window"): "bind_mw",
    ("Wc", "immediate"): "imm_data",
}
ARRAYS = {"before_poll", "before_post", "after_post"}
"""Of several fields there."""
VALUES = {
    "kGidRoceV1": "IBV_GID_TYPE_ROCE_V1",
    "kGidRoceV2": "IBV_GID_TYPE_ROCE_V2",
    "kPortActive": "IBV_PORT_ACTIVE",
    "kEthernet": "IBV_LINK_LAYER_ETHERNET",
    "kQpRc": "IBV_QPT_RC",
    "kQpUc": "IBV_QPT_UC",
    "kStateInit": "IBV_QPS_INIT",
    "kStateRtr": "IBV_QPS_RTR",
    "kStateRts": "IBV_QPS_RTS",
    "kWcSuccess": "IBV_WC_SUCCESS",
    "kWcFlushed": "IBV_WC_WR_FLUSH_ERR",
    "kWcRetriesSpent": "IBV_WC_RETRY_EXC_ERR",
    "kWrSend": "IBV_WR_SEND",
    "kSendSignaled": "IBV_SEND_SIGNALED",
    "kAccessLocalWrite": "IBV_ACCESS_LOCAL_WRITE",
    "kAttrState": "IBV_QP_STATE",
    "kAttrAccessFlags": "IBV_QP_ACCESS_FLAGS",
    "kAttrPkeyIndex": "IBV_QP_PKEY_INDEX",
    "kAttrPort": "IBV_QP_PORT",
    "kAttrAv": "IBV_QP_AV",
    "kAttrPathMtu": "IBV_QP_PATH_MTU",
    "kAttrTimeout": "IBV_QP_TIMEOUT",
    "kAttrRetryCnt": "IBV_QP_RETRY_CNT",
    "kAttrRnrRetry": "IBV_QP_RNR_RETRY",
    "kAttrRqPsn": "IBV_QP_RQ_PSN",
    "kAttrMaxRdAtomic": "IBV_QP_MAX_QP_RD_ATOMIC",
    "kAttrMinRnrTimer": "IBV_QP_MIN_RNR_TIMER",
    "kAttrSqPsn": "IBV_QP_SQ_PSN",
    "kAttrMaxDestRdAtomic": "IBV_QP_MAX_DEST_RD_ATOMIC",
    "kAttrDestQpn": "IBV_QP_DEST_QPN",
}


def structs(text: str) -> dict[str, list[str]]:
    """The fields of each, in order."""
    found = {}
    for name, body in re.findall(r"^struct (\w+) \{\n(.*?)^\};", text, re.MULTILINE | re.DOTALL):
        body = re.sub(r"//[^\n]*", "", body)
        pointers = re.findall(r"\(\*(\w+)\)\([^)]*\);|[ *](\w+)(?:\[\d+\])?;", body)
        found[name] = [one or other for one, other in pointers]
    return found


def checks() -> Iterator[str]:
    for name, fields in structs(OURS.read_text()).items():
        theirs = THEIRS[name]
        if name not in MADE_THERE:
            yield f"static_assert(sizeof(verbs::{name}) == sizeof({theirs}));"
        for field in fields:
            there = f"{theirs}, {OTHERWISE_NAMED.get((name, field), field)}"
            yield f"static_assert(offsetof(verbs::{name}, {field}) == offsetof({there}));"
            if field not in ARRAYS and (name, field) not in {("SendWr", "window")}:
                size = f"sizeof({theirs}::{OTHERWISE_NAMED.get((name, field), field)})"
                if (name, field) != ("Context", "device"):
                    yield f"static_assert(sizeof(verbs::{name}::{field}) == {size});"
    for ours, value in VALUES.items():
        yield f"static_assert(static_cast<int>(verbs::{ours}) == static_cast<int>({value}));"


def test_every_declaration_is_looked_at() -> None:
    text = OURS.read_text()
    assert structs(text).keys() == THEIRS.keys()
    assert set(re.findall(r"constexpr [\w:]+ (k\w+)", text)) == VALUES.keys()
    assert structs(text)["Wc"][:4] == ["wr_id", "status", "opcode", "vendor_err"]
    assert structs(text)["ContextOps"][1:3] == ["poll_cq", "req_notify_cq"]


@pytest.mark.skipif(not HEADER.exists(), reason="needs libibverbs-dev")
@pytest.mark.skipif(CXX is None, reason="needs a C++ compiler")
def test_the_header_says_the_same(tmp_path: Path) -> None:
    assert CXX is not None
    source = tmp_path / "same.cpp"
    lines = (
        "#include <cstddef>",
        "#include <infiniband/verbs.h>",
        '#include "host/channel/verbs_abi.hpp"',
        "using namespace ina::host;",
        *checks(),
    )
    source.write_text("\n".join(lines) + "\n")
    command = [CXX, "-std=c++17", "-fsyntax-only", f"-I{ROOT / 'native'}", str(source)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    wrong = source.read_text().replace("verbs::Wc, status", "verbs::Wc, opcode")
    source.write_text(wrong)
    assert subprocess.run(command, capture_output=True, timeout=60, check=False).returncode != 0
