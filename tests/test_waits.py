"""Waits for other programs and servers that end although nobody answers, each in one line."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ina import metrics, netns
from ina.bench import controller as bench_controller
from ina.bench import switch as bench_switch
from ina.cli import main
from ina.cli.common import rpc_client
from ina.cli.switch import probe, shell_env
from ina.controller.embedded import Embedded
from ina.doctor import kernel
from ina.doctor.path import examine_path
from ina.emulate import emulation, namespaces, nodes, program_switches, remains, switches
from ina.emulate import job as emulated_job
from ina.emulate.errors import EmulationError
from ina.emulate.load import load_topology
from ina.emulate.processes import Logged, environment
from ina.emulate.programming import SwitchPlan
from ina.emulate.switches import Switches
from ina.errors import DeadlineError, UnavailableError
from ina.files import root
from ina.netns import NetnsError
from ina.p4 import compile as p4_compile
from ina.p4 import tofino
from ina.p4.errors import P4cMissingError, P4CompileError
from ina.p4.names import POOL
from ina.switch import server
from ina.switch.c_target import cache
from ina.switch.errors import CompilationError
from ina.switch.ports import UdpPort
from ina.switch.server import SoftSwitch
from ina.switch.xdp import compile as compile_bpf
from ina.switch.xdp import features
from ina.switch.xdp.libbpf import XdpError
from ina.tables import grpc_wire
from ina.tables.errors import SwitchError
from ina.testing.control_plane import P4RuntimeClient
from ina.testing.device import pool_program
from ina.testing.errors import DeviceError
from tests.selection import LONG
from tests.worlds.processes.silence import (
    DEADLINE_S,
    program_that_hangs,
    silent_server,
    stuck_thread,
)

SHORT_S = 0.1


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any, str], None]:
    """Makes a deadline of a module short."""
    return lambda module, name: monkeypatch.setattr(module, name, SHORT_S)


@pytest.fixture
def hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Puts a program of this name that hangs where the system's would be found."""

    def put(name: str) -> Path:
        monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
        return program_that_hangs(tmp_path / name)

    return put


@pytest.fixture(autouse=True)
def no_tls_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which would also ask a silent server, for longer (tests/rpc/test_tls_probe.py)."""
    for module in (
        "ina.rpc.absence",
        "ina.tables.grpc_wire",
    ):
        monkeypatch.setattr(f"{module}.tls_trouble", lambda *about: None)


Short = Callable[[Any, str], None]
Hangs = Callable[[str], Path]


# Servers.


def one_line(capsys: pytest.CaptureFixture[str]) -> str:
    (line,) = capsys.readouterr().err.strip().splitlines()
    return line


def test_a_controller_that_does_not_answer_a_command(
    short: Short, capsys: pytest.CaptureFixture[str]
) -> None:
    short(rpc_client, "TIMEOUT_S")
    with silent_server() as address:
        assert main.run(["job", "list", "--controller", address]) == 2
    assert address in one_line(capsys)


def test_completion_of_names_is_not_kept_waiting(short: Short) -> None:
    short(rpc_client, "COMPLETION_DEADLINE_S")
    with silent_server() as address:
        context = cast(Any, SimpleNamespace(params={"controller": address}))
        assert rpc_client.job_names(context, "") == []


def test_a_switch_that_does_not_answer_a_probe(short: Short) -> None:
    short(probe, "TIMEOUT_S")
    with silent_server() as address, pytest.raises(UnavailableError, match="no switch answers at"):
        probe.probe(address, 1)


def test_a_controller_that_does_not_answer_the_doctor() -> None:
    with silent_server() as address:
        (step,) = examine_path(address, timeout_s=SHORT_S)
    assert not step.ok


def test_a_device_under_test_that_does_not_answer() -> None:
    with silent_server() as address, pytest.raises(DeviceError, match=r"no answer within 0.1 s"):
        P4RuntimeClient(address, 1, connect_s=SHORT_S)


def test_a_switch_that_does_not_come_up_is_not_programmed(short: Short) -> None:
    short(program_switches, "START_TIMEOUT_S")
    short(program_switches, "_CONNECT_S")
    with silent_server() as address:
        plan = SwitchPlan("s1", address, 1, "", "", [])
        with pytest.raises(SwitchError, match=r"no answer within 0.1 s"):
            asyncio.run(program_switches._connect(plan))


def test_a_device_under_test_that_takes_a_program_and_does_not_answer(
    short: Short, monkeypatch: pytest.MonkeyPatch
) -> None:
    short(grpc_wire, "PIPELINE_TIMEOUT_S")
    release = threading.Event()
    monkeypatch.setattr(SoftSwitch, "_install", lambda self, pipeline: release.wait(DEADLINE_S))
    with SoftSwitch([UdpPort(1)]) as switch:
        client = P4RuntimeClient(switch.grpc_addr, 1)
        try:
            with pytest.raises(DeviceError, match=r"(?i)deadline\b"):
                client.set_pipeline(pool_program(64))
        finally:
            release.set()
            client.close()


def test_a_switch_does_not_wait_for_its_threads(short: Short) -> None:
    short(server, "_STOP_DEADLINE_S")
    switch = SoftSwitch([UdpPort(1)])
    switch.start()
    own = switch._cpu_thread
    assert own is not None
    with stuck_thread() as stuck:
        switch._cpu_thread = stuck
        switch.stop()
    own.join(DEADLINE_S)


def test_metrics_do_not_wait_for_their_thread(short: Short) -> None:
    short(metrics, "_STOP_DEADLINE_S")
    server = metrics.MetricsServer("127.0.0.1:0", [])
    own = server._thread
    assert own is not None
    with stuck_thread() as stuck:
        server._thread = stuck
        server.close()
    own.join(DEADLINE_S)


# Programs.


def test_a_c_compiler_that_hangs(short: Short, hangs: Hangs) -> None:
    short(cache, "COMPILE_TIMEOUT_S")
    with pytest.raises(CompilationError, match="the program took more than 0 s"):
        cache._run([str(hangs("cc"))], "the program")


def test_a_compiler_for_bpf_that_hangs(short: Short, hangs: Hangs) -> None:
    short(compile_bpf, "_TIMEOUT_S")
    with pytest.raises(CompilationError, match="took more than 0 s"):
        compile_bpf._run([str(hangs("clang"))])


def test_a_p4_compiler_that_hangs(
    short: Short, hangs: Hangs, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    p4c = hangs("p4c-bm2-ss")
    short(p4_compile, "COMPILE_DEADLINE_S")
    short(p4_compile, "_VERSION_DEADLINE_S")
    with pytest.raises(P4CompileError, match=r"pool.p4: p4c took more than 0.1 s"):
        p4_compile._run([str(p4c)], tmp_path, Path("pool.p4"))
    monkeypatch.setattr(p4_compile, "find_p4c", lambda: p4c)
    with pytest.raises(P4cMissingError, match=r"timed out after 0.1 s"):
        p4_compile.p4c_version()


def test_a_tofino_compiler_and_an_assembler_that_hang(
    short: Short, hangs: Hangs, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    short(tofino, "TOFINO_DEADLINE_S")
    short(tofino, "_BFAS_DEADLINE_S")
    target = tofino.TARGETS["tofino"]
    monkeypatch.setattr(tofino, "find_tool", lambda name, variable: hangs(name))
    source = tmp_path / "pool.p4"
    source.touch()
    with pytest.raises(P4CompileError, match=r"pool.p4: \S+ took more than 0.1 s"):
        tofino.compile_tofino(source, target, tmp_path / "out")
    assembly = tmp_path / "pool.bfa"
    assembly.touch()
    with pytest.raises(P4CompileError, match=r"pool.p4: \S+ took more than 0.1 s"):
        tofino._assemble(assembly, target, source)


def test_an_installation_that_hangs(short: Short, hangs: Hangs) -> None:
    short(shell_env, "INSTALL_DEADLINE_S")
    with pytest.raises(DeadlineError, match=r"pip: not done within 0.1 s"):
        shell_env._run([str(hangs("pip"))], "pip")


def test_ip_that_hangs(short: Short, hangs: Hangs) -> None:
    hangs("ip")
    short(netns, "COMMAND_TIMEOUT_S")
    short(netns, "BATCH_TIMEOUT_S")
    with pytest.raises(NetnsError, match=r"ip link: no end in 0.1 s"):
        netns.ip(None, "link")
    with pytest.raises(NetnsError, match=r"ip -batch -: no end in 0.1 s"):
        netns.ip_batch(None, ["link add a"])


def test_what_the_doctor_tries_and_hangs(
    short: Short, hangs: Hangs, monkeypatch: pytest.MonkeyPatch
) -> None:
    short(kernel, "_TIMEOUT_S")
    monkeypatch.setattr("ina.doctor.kernel.os.geteuid", lambda: 0)
    hangs("ip")
    hangs("unshare")
    assert "cannot be tried: " in kernel.can_make_veth()


def test_a_kernel_that_tells_nothing_of_an_interface(
    short: Short, monkeypatch: pytest.MonkeyPatch
) -> None:
    short(features, "_TIMEOUT_S")
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with theirs:
        monkeypatch.setattr(socket, "socket", lambda *_: ours)
        with pytest.raises(XdpError, match="interface lo: timed out"):
            features.features_of("lo")


def test_bmv2_that_does_not_even_help(short: Short, hangs: Hangs) -> None:
    short(nodes, "_HELP_S")
    hangs(nodes.BMV2)
    assert nodes._thrift(9090) == ()


# Processes of emulations and benchmarks.


@pytest.fixture
def sleeper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Logged:
    """One that says nothing and ignores SIGTERM."""
    monkeypatch.setattr("ina.emulate.processes.within", lambda space, command: command)
    code = "import signal,time;signal.signal(15,1);open('up','w');time.sleep(60)"
    monkeypatch.chdir(tmp_path)
    logged = Logged(
        "the sleeper", "", [sys.executable, "-c", code], tmp_path / "log", environment()
    )
    while not (tmp_path / "up").exists():
        logged.check()
    return logged


def test_a_program_of_an_emulation_that_does_not_get_ready(sleeper: Logged) -> None:
    with pytest.raises(DeadlineError, match=r"the sleeper: not ready after 0.1 s, see"):
        sleeper.await_line("ready", SHORT_S)
    sleeper.stop(SHORT_S)
    assert sleeper.process.poll() == -9  # SIGTERM was not enough


def test_switches_that_are_not_programmed_in_time(
    short: Short, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short(switches, "PROGRAM_TIMEOUT_S")
    pid = tmp_path / "pid"
    hanging = ["sh", "-c", f"echo $$ > {pid}; exec sleep 60"]
    monkeypatch.setattr(switches, "within", lambda space, command: hanging)
    topology = load_topology(root() / "examples" / "topologies" / "star4.toml")
    those = Switches(topology, (64, POOL), tmp_path, lambda text: None)
    with pytest.raises(DeadlineError, match=r"not programmed after 0.1 s"):
        those._write()
    os.kill(int(pid.read_text()), signal.SIGKILL)


def test_a_command_of_a_host_that_hangs(short: Short, monkeypatch: pytest.MonkeyPatch) -> None:
    short(emulation, "COMMAND_TIMEOUT_S")
    monkeypatch.setattr(emulation, "within", lambda space, command: command)
    host = SimpleNamespace(name="h1", commands=["sleep 60"], commands_may_fail=False)
    topology = cast(Any, SimpleNamespace(name="t", hosts=[host]))
    with pytest.raises(DeadlineError, match=r"host h1: sleep 60: no end in 0.1 s"):
        emulation._run_commands(topology, lambda text: None)


def test_an_emulation_that_does_not_come_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remains, "RUN_DIR", tmp_path)
    late = r"emulation slow: not up after 0.1 s"
    with remains.claimed("slow"), pytest.raises(DeadlineError, match=late):
        remains.running(start_timeout_s=SHORT_S)


def test_an_emulation_that_lets_nothing_fail(
    short: Short, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short(remains, "FAIL_TIMEOUT_S")
    monkeypatch.setattr(remains, "RUN_DIR", tmp_path)
    state = remains.State("slow", 1, "out", [], {"s1": "soft"}, "", "", ["s1"])
    with remains.claimed("slow"):
        remains.publish(state)
        with pytest.raises(DeadlineError, match=r"slow: has not done it after 0.1 s, see out"):
            remains.put_down(state, ["s1"], is_down=True)
        assert remains.asked_down("slow") == {"s1"}
    assert not list(tmp_path.iterdir())


def test_a_mended_switch_that_its_controller_leaves_without_a_program(short: Short) -> None:
    class Bare:
        async def has_pipeline(self) -> bool:
            return False

    short(program_switches, "START_TIMEOUT_S")
    with pytest.raises(EmulationError, match=r"its controller has set no program in 0.1 s"):
        asyncio.run(program_switches._until_set(cast(Any, Bare())))


@pytest.mark.parametrize("module", [namespaces, emulated_job], ids=["an emulation", "a job"])
def test_processes_that_do_not_end_are_named(
    module: Any, short: Short, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one that hangs in the kernel; here nobody kills it."""
    short(module, "_KILL_S")
    monkeypatch.setattr(namespaces, "_TERM_S", SHORT_S)
    monkeypatch.setattr(module.os, "kill", lambda pid, number: None)
    monkeypatch.setattr(module, "processes", lambda names: {4711})
    monkeypatch.setattr(emulated_job, "_environ", lambda pid: [b"INA_EMULATE_JOB=m"])
    monkeypatch.setattr(emulated_job, "_MARK", "INA_EMULATE_JOB")
    end = (
        partial(namespaces._end_processes, ["n"])
        if module is namespaces
        else partial(emulated_job._kill_marked, ["n"], "m")
    )
    with pytest.raises(UnavailableError, match=r"processes 4711 .*do not end"):
        end()


def test_a_controller_to_be_measured_that_is_not_ready(short: Short, tmp_path: Path) -> None:
    short(bench_controller, "_READY_S")
    with subprocess.Popen(["sleep", "60"], stdout=subprocess.PIPE, text=True) as process:
        try:
            with pytest.raises(DeadlineError, match=rf"{process.pid} is not ready after 0.1 s"):
                bench_controller._address(process, tmp_path / "log")
        finally:
            process.kill()


def test_workers_of_a_measured_switch_that_do_not_send_or_end(short: Short) -> None:
    short(bench_switch, "_START_S")
    short(bench_switch, "_STOP_S")
    switch = SimpleNamespace(stats=lambda: SimpleNamespace(rx_packets=3))
    with pytest.raises(DeadlineError, match=r"3 packets of 2 workers after 0.1 s"):
        bench_switch._await_packets(switch, [], 2)
    with subprocess.Popen(["sleep", "60"], stdout=subprocess.PIPE, text=True) as process:
        try:
            with pytest.raises(DeadlineError, match=rf"not ended in 0.1 s: rank 0 .*{process.pid}"):
                bench_switch._finish([process])
        finally:
            process.kill()


@pytest.mark.skipif(not LONG, reason="waits for 10 s (make test-long)")
def test_who_connects_and_says_nothing_is_let_go() -> None:
    """By the switch's and by the controller's gRPC server."""
    with Embedded(values=64, slots=64) as running:
        for address in (running.switch.grpc_addr, running.controller_addr):
            host, _, port = address.rpartition(":")
            with socket.create_connection((host, int(port)), timeout=DEADLINE_S) as quiet:
                while quiet.recv(4096):  # the settings of HTTP/2; then it hangs up
                    pass
