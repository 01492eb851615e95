"""PTF tests of the pool program on any P4Runtime switch: docs/p4runtime.md shows how to run them.

PTF sends and receives packets on the switch's cables, p4runtime-shell writes its tables. Parameters
(`--test-params`): grpc='HOST:PORT', device=ID, p4info='FILE', program='FILE', layer='FILE' (the
scapy layer of ina). The program is the build for 64 values.
"""

# mypy: ignore-errors
# ruff: noqa: N802, D102, D103 (unittest's names)
import functools
import importlib.util

import p4runtime_sh.shell as sh
import ptf
import ptf.testutils as tu
from ptf.base_tests import BaseTest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

VALUES, EPOCH, JOB, GROUP = 64, 7, 3, 5
SWITCH_MAC, SWITCH_IP, UDP_PORT = "02:00:00:00:00:fe", "10.0.0.254", 17760
CONTRIBUTION = 1  # kind of a packet


@functools.cache  # each import binds a new class to UDP
def load_layer(path):
    """The scapy layer, in a file that needs nothing of ina."""
    spec = importlib.util.spec_from_file_location("ina_layer", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.INA


def mac(worker):
    return f"02:00:00:00:00:{worker + 1:02x}"


def address(worker):
    return f"10.0.0.{worker + 1}"


class PoolTest(BaseTest):
    """A switch with the pool program and a job of two workers, at ports 1 and 2."""

    def setUp(self):
        super().setUp()
        params = tu.test_params_get()
        self.INA = load_layer(params["layer"])
        self.dataplane = ptf.dataplane_instance
        self.dataplane.flush()
        sh.setup(
            device_id=int(params.get("device", 1)),
            grpc_addr=params["grpc"],
            election_id=(0, 100),
            config=sh.FwdPipeConfig(params["p4info"], params["program"]),
            verbose=False,
        )
        self.insert("PoolIngress.own_addresses", {"dst_addr": SWITCH_IP}, "PoolIngress.ours", {})
        group = sh.MulticastGroupEntry(GROUP)
        for worker in (0, 1):
            group.add(worker + 1, worker + 1)
            self.insert(
                "PoolEgress.address.receivers", {"job": JOB, "worker": worker},
                "PoolEgress.address.address",
                {"dst_mac": mac(worker), "dst_addr": address(worker), "dst_port": 1024 + worker,
                 "way": 0, "way_mask": 0, "strips_on": 0, "strips_off": 0},  # wants all values
            )  # fmt: skip
        group.insert()
        self.insert(
            "PoolIngress.admission.jobs", {"job": JOB, "epoch": EPOCH},
            "PoolIngress.admission.admit_job",
            {"epoch": EPOCH, "first_slot": 16, "slots": 8, "full_bitmap": 3, "group": GROUP,
             "job_index": JOB},
        )  # fmt: skip
        for worker in (0, 1):
            self.insert(
                "PoolIngress.admission.members",
                {"ingress_port": worker + 1, "src_addr": address(worker),
                 "src_port": 1024 + worker, "job": JOB, "epoch": EPOCH, "worker": worker,
                 "kind": CONTRIBUTION},
                "PoolIngress.admission.admit_member", {"worker_bit": 1 << worker},
            )  # fmt: skip

    def tearDown(self):
        # Setting a program clears its tables, but BMv2 keeps its multicast groups.
        sh.MulticastGroupEntry(GROUP).delete()
        sh.teardown()
        super().tearDown()

    def insert(self, table, match, action, params):
        entry = sh.TableEntry(table)(action=action)
        for name, value in match.items():
            entry.match[name] = str(value)
        for name, value in params.items():
            entry.action[name] = str(value)
        entry.insert()

    def contribution(self, worker, seq, values, **fields):
        header = {"job": JOB, "epoch": EPOCH, "worker": worker, "slot": seq % 8, "seq": seq}
        header |= {"contributors": 1 << worker} | fields
        return (
            Ether(src=mac(worker), dst=SWITCH_MAC)
            / IP(src=address(worker), dst=SWITCH_IP, tos=2)
            / UDP(sport=1024 + worker, dport=UDP_PORT, chksum=0)
            / self.INA(values=values, **header)
        )

    def result(self, worker):
        """The next packet of the worker's port, checked to be a result for it."""
        received = self.dataplane.poll(port_number=worker + 1, timeout=10)
        assert isinstance(received, self.dataplane.PollSuccess), received.format()
        packet = Ether(received.packet)
        assert packet.dst == mac(worker)
        assert packet[UDP].dport == 1024 + worker
        assert packet[self.INA].kind == 2
        assert packet[self.INA].worker == worker
        return packet[self.INA]


class TwoWorkersAreSummed(PoolTest):
    """The sum goes to both; a repeated contribution brings it back to its sender alone."""

    def runTest(self):
        one, two = list(range(VALUES)), [-3 * i for i in range(VALUES)]
        tu.send_packet(self, 1, self.contribution(0, 0, one, next_exponent=9))
        tu.verify_no_other_packets(self, timeout=1)
        tu.send_packet(self, 2, self.contribution(1, 0, two, next_exponent=4))
        for worker in (0, 1):
            result = self.result(worker)
            assert result.values == [a + b for a, b in zip(one, two, strict=True)]
            assert result.contributors == 3
            assert result.next_exponent == 9
        tu.send_packet(self, 1, self.contribution(0, 0, one, flags=1))
        assert self.result(0).values == [-2 * i for i in range(VALUES)]
        tu.verify_no_other_packets(self, timeout=1)


class StrangersAreRefused(PoolTest):
    """A worker's packet through another's port, and an unknown job, change nothing."""

    def runTest(self):
        ones = [1] * VALUES
        tu.send_packet(self, 2, self.contribution(0, 1, ones))
        tu.send_packet(self, 1, self.contribution(0, 1, ones, job=JOB + 1))
        tu.send_packet(self, 1, self.contribution(0, 1, ones, epoch=EPOCH - 1))
        tu.send_packet(self, 1, self.contribution(0, 1, ones))
        tu.send_packet(self, 2, self.contribution(1, 1, ones))
        for worker in (0, 1):
            assert self.result(worker).values == [2] * VALUES
        tu.verify_no_other_packets(self, timeout=1)


class OtherTrafficIsForwarded(PoolTest):
    """Frames that are not ina's go where the MAC table says."""

    def runTest(self):
        self.insert(
            "PoolIngress.forwarding.dmac", {"dst_mac": mac(2)},
            "PoolIngress.forwarding.forward", {"port": 3},
        )  # fmt: skip
        frame = tu.simple_tcp_packet(eth_dst=mac(2))
        tu.send_packet(self, 1, frame)
        tu.verify_packets(self, frame, ports=[3])
