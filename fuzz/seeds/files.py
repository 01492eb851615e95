"""Configurations, networks and programs: the project's own, and small ones with every key."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fuzz.seeds.packets import Examples

ROOT = Path(__file__).parents[2]

_CONTROLLER = {
    "empty": "",
    "switch": '[switch]\nname = "s"\nvalues = 64\ngrpc_addr = "127.0.0.1:9559"\ndata_port = 3\n',
    "auto": '[switch]\nvalues = 0\ndata_host = "10.0.0.1"\ndata_udp_port = 17760\n',
    "switches": '[[switch]]\nname = "a"\n[[switch]]\nname = "b"\ngrpc_addr = "127.0.0.1:9560"\n',
    "multicast": '[switch]\nmulticast = "239.1.0.0/16"\n',
    "host": '[[host]]\naddress = "10.0.0.1"\nport = 4\nmac = "02:00:00:00:00:01"\n',
    "jobs": "[jobs]\nslots = 64\nlease_s = 5.5\npreempt = true\n",
    "tenants": "[tenants.team]\nslots = 64\njobs = 2\n[tenants.default]\n",
    "store": '[store]\nlocation = "sqlite:///tmp/x.db"\n',
    "postgres": '[store]\nlocation = "postgresql://u@h/db"\n',
    "tls": '[tls]\ncert = "c"\nkey = "k"\nca = "a"\n[switch_tls]\nca = "b"\n',
    "operators": '[operators]\ntoken_file = "/t"\n',
    "congestion": '[congestion]\nalgorithm = "fixed"\n',
    "tofino": '[switch]\ntarget = "tofino"\nsouthbound = "bfrt"\ndata_port = "1/0"\n',
    "tofino-ports": '[switch]\ntarget = "tofino2"\n[[switch.ports]]\nport = "1/0"\nspeed = "1"\n',
    "unknown-key": "[switch]\nnonsense = 1\n",
    "wrong-type": '[switch]\nvalues = "many"\n',
    "not-toml": "[switch\n",
    "dates": "listen = 1979-05-27T07:32:00Z\n",
    "strings": "listen = '''\na\n'''\nmetrics = \"\\u0041\"\n",
    "inline": 'switch = { name = "s", values = 256 }\ntls = {}\n',
    "not-utf8": b"\xff\xfe".decode("latin-1"),
    "deep": "switch = " + "[" * 1000,
    "long-number": "switch = " + "9" * 5000,
}

_NETWORK = {
    "empty": "",
    "two": (
        '[hosts.a]\nip = "10.0.0.1/24"\n[hosts.b]\nip = "10.0.0.2/24"\n[switches.s]\n'
        '[[links]]\nends = ["a", "s"]\n[[links]]\nends = ["b", "s"]\n'
    ),
    "ports": (
        '[hosts.a]\nip = "10.0.0.1/24"\nmac = "02:00:00:00:00:01"\ncommands = ["ip route"]\n'
        '[switches.s]\nkind = "bmv2"\nloss_rate = 0.1\nloss_seed = 4\nruntime_json = "s.json"\n'
        '[[links]]\nends = ["a", "s-p7"]\nbandwidth_mbit = 100\nqueue_kib = 64\nloss_rate = 0.01\n'
    ),
    "more": (
        'name = "n"\nswitch = "soft"\naggregator = "s"\naggregator_address = "10.0.0.254"\n'
        "[defaults]\nbandwidth_mbit = 1000\n[controller.jobs]\nslots = 64\n"
        '[hosts.a]\nip = "10.0.0.1/24"\n[switches.s]\n[switches.t]\n'
        '[[links]]\nends = ["a", "s"]\n[[links]]\nends = ["s", "t"]\n'
    ),
    "no-link": '[hosts.a]\nip = "10.0.0.1/24"\n[switches.s]\n',
    "no-such-end": '[hosts.a]\nip = "10.0.0.1/24"\n[switches.s]\n[[links]]\nends = ["a", "x"]\n',
    "three-ends": '[hosts.a]\nip = "10.0.0.1/24"\n[switches.s]\n[[links]]\nends = ["a", "s", 1]\n',
    "deep": "hosts = " + "{ a = " * 500,
    "bad-address": '[hosts.a]\nip = "10.0.0.1"\n[switches.s]\n[[links]]\nends = ["a", "s"]\n',
}

_HOST = {"ip": "10.0.0.1/24", "mac": "08:00:00:00:01:11"}
_TUTORIAL: dict[str, Any] = {
    "two": {
        "hosts": {
            "h1": {
                **_HOST,
                "commands": [
                    "route add default gw 10.0.0.10 dev eth0",
                    "arp -i eth0 -s 10.0.0.10 08:00:00:00:01:00",
                ],
            },
            "h2": {"ip": "10.0.0.2/24"},
        },
        "switches": {"s1": {"runtime_json": "s1-runtime.json"}, "s2": {}},
        "links": [["h1", "s1-p1"], ["h2", "s2-p1", "0", 10], ["s1-p2", "s2-p2", "0ms", 0.5]],
    },
    "one": {"hosts": {"h": _HOST}, "switches": {"s": {}}, "links": [["h", "s-p1"]]},
    "latency": {"hosts": {"h": _HOST}, "switches": {"s": {}}, "links": [["h", "s-p1", "5ms"]]},
    "extra": {"hosts": {"h": _HOST}, "switches": {"s": {}}, "links": [["h", "s-p1"]], "more": 1},
    "no-hosts": {"switches": {}, "links": []},
    "list": [1, 2],
    "deep": {"hosts": {"h": {"ip": [[[[]]]]}}, "switches": {}, "links": []},
}


def controller_toml_inputs() -> Examples:
    """Configurations."""
    shipped = {
        f"{folder}-shipped": (ROOT / "deploy" / folder / "controller.toml").read_bytes()
        for folder in ("systemd", "kubernetes")
    }
    return {name: text.encode("latin-1") for name, text in _CONTROLLER.items()} | shipped


def network_toml_inputs() -> Examples:
    """Networks."""
    shipped = {
        path.stem: path.read_bytes() for path in (ROOT / "examples" / "topologies").glob("*.toml")
    }
    return {name: text.encode() for name, text in _NETWORK.items()} | shipped


def network_json_inputs() -> Examples:
    """The tutorials' networks."""
    return {name: json.dumps(document).encode() for name, document in _TUTORIAL.items()} | {
        "cut": b'{"hosts": {',
        "deep-array": b"[" * 2000,
        "not-utf8": b'{"hosts": "\xff"}',
    }


def bmv2_json_inputs() -> Examples:
    """The programs that the soft switch's tests have, without what is for people."""
    folders = ("programs", "programs/refused", "p4runtime/programs")
    paths = [path for folder in folders for path in (ROOT / "tests/switch" / folder).glob("*.json")]
    made = {path.stem: _without_places(json.loads(path.read_bytes())) for path in paths}
    return {
        name: json.dumps(document, separators=(",", ":")).encode()
        for name, document in made.items()
    }


def _without_places(node: Any) -> Any:
    if isinstance(node, dict):
        return {key: _without_places(value) for key, value in node.items() if key != "source_info"}
    return [_without_places(item) for item in node] if isinstance(node, list) else node
