"""Run by test_shell.py inside the environment of p4runtime-shell, which cannot hold ina as well.

Arguments: gRPC address, P4Info, BMv2 JSON. Prints what it did as one JSON line.
"""

# mypy: ignore-errors
import json
import os
import sys

import p4runtime_sh.shell as sh
from p4runtime_sh.p4runtime import P4RuntimeWriteException

TABLE = "PoolIngress.forwarding.ipv4_lpm"


def main():
    address, p4info, program = sys.argv[1:]
    sh.setup(
        device_id=1,
        grpc_addr=address,
        election_id=(0, 1),
        config=sh.FwdPipeConfig(p4info, program),
    )
    did = {"tables": sorted(table.name for table in sh.P4Objects(sh.P4Type.table))}
    entry = sh.TableEntry(TABLE)(action="PoolIngress.forwarding.route")
    entry.match["dst_addr"] = "10.1.0.0/16"
    entry.action["port"] = "2"
    entry.action["src_mac"] = "02:00:00:00:00:01"
    entry.action["dst_mac"] = "02:00:0a:01:00:01"
    entry.insert()
    did["inserted"] = [str(e.match["dst_addr"].lpm.prefix_len) for e in sh.TableEntry(TABLE).read()]
    try:
        entry.insert()
    except P4RuntimeWriteException as error:
        did["again"] = str(error)
    entry.action["port"] = "3"
    entry.modify()
    did["modified"] = [e.action["port"].value.hex() for e in sh.TableEntry(TABLE).read()]
    entry.delete()
    did["left"] = len(list(sh.TableEntry(TABLE).read()))
    group = sh.MulticastGroupEntry(7)
    group.add(1, 1).add(2, 2)
    group.insert()
    did["group"] = [len(g.replicas) for g in sh.MulticastGroupEntry(7).read()]
    group.delete()
    did["counters"] = len(list(sh.CounterEntry("PoolIngress.distribute.drops").read()))
    sh.teardown()
    print(json.dumps(did), flush=True)


try:
    main()
    status = 0
except BaseException as error:
    print(repr(error), file=sys.stderr, flush=True)
    status = 1
os._exit(status)  # the shell leaves a thread behind that would keep the process alive
