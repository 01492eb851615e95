"""deploy/kubernetes: the objects fit together, and a kubelet of a few lines runs them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped,unused-ignore]

from ina.cli.main import run
from ina.controller.config import load_config
from tests.worlds.processes.machine import DEPLOY, RUN_S, machine, ready_line, stop

FOLDER = DEPLOY / "kubernetes"
POD_IP = "127.0.0.1"


def read(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((FOLDER / name).read_text()))


def objects() -> dict[tuple[str, str], dict[str, Any]]:
    (kustomization,) = read("kustomization.yaml")
    found = [one for name in kustomization["resources"] for one in read(name)]
    return {(one["kind"], one["metadata"]["name"]): one for one in found}


def pod(kind: str, name: str) -> dict[str, Any]:
    template: dict[str, Any] = objects()[kind, name]["spec"]["template"]
    return template


def container(pod: dict[str, Any], name: str) -> dict[str, Any]:
    (one,) = (c for c in pod["spec"]["containers"] if c["name"] == name)
    assert one["image"] == "ina"
    return dict(one)


def command(container: dict[str, Any], config: Path) -> list[str]:
    """As the kubelet starts it: the image's entry point is ina, $(NAME) are variables."""
    words = [*container.get("command", ["ina"]), *container.get("args", [])]
    words = [word.replace("$(POD_IP)", POD_IP) for word in words]
    assert not [word for word in words if "$(" in word]
    return [word.replace("/etc/ina/controller.toml", str(config)) for word in words]


def environ(container: dict[str, Any]) -> dict[str, str]:
    return {one["name"]: one["value"] for one in container["env"] if "value" in one}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """The ConfigMap's file, with the volume of the store elsewhere."""
    (kustomization,) = read("kustomization.yaml")
    (generator,) = kustomization["configMapGenerator"]
    assert generator["name"] == "ina-controller"
    file = tmp_path / "controller.toml"
    text = (FOLDER / generator["files"][0]).read_text()
    assert "/var/lib/ina/" in text
    file.write_text(text.replace("/var/lib/ina", str(tmp_path)))
    return file


def test_services_ports_and_volumes_are_there() -> None:
    network = pod("StatefulSet", "ina-controller")
    spec = objects()["StatefulSet", "ina-controller"]["spec"]
    service = objects()["Service", "ina-controller"]["spec"]
    assert service["selector"] == network["metadata"]["labels"] == spec["selector"]["matchLabels"]
    assert spec["serviceName"] == "ina-controller"
    offered = {
        (port["name"], port["containerPort"], port["protocol"])
        for one in network["spec"]["containers"]
        for port in one["ports"]
    }
    assert {(p["name"], p["port"], p["protocol"]) for p in service["ports"]} == offered
    volumes = {v["name"] for v in network["spec"]["volumes"]}
    volumes |= {v["metadata"]["name"] for v in spec["volumeClaimTemplates"]}
    mounts = container(network, "controller")["volumeMounts"]
    assert {mount["name"] for mount in mounts} == volumes


def test_the_commands_listen_where_the_ports_say(config: Path) -> None:
    network = pod("StatefulSet", "ina-controller")
    assert run(["controller", "check", str(config)]) == 0
    settings = load_config(config)
    ports = {p["name"]: p["containerPort"] for p in container(network, "controller")["ports"]}
    assert (settings.listen, settings.metrics) == (
        f"0.0.0.0:{ports['grpc']}",
        f"0.0.0.0:{ports['metrics']}",
    )
    switch = container(network, "switch")
    ports = {p["name"]: p["containerPort"] for p in switch["ports"]}
    assert f"1=udp:{POD_IP}:{ports['packets']}" in command(switch, config)
    assert f"0.0.0.0:{ports['switch-metrics']}" in command(switch, config)
    assert settings.switch.grpc_addr in command(switch, config)
    assert settings.switch.data_udp_port == ports["packets"]


def test_the_job_has_as_many_pods_as_torchrun_waits_for() -> None:
    job, service = objects()["Job", "train"]["spec"], objects()["Service", "train"]
    assert job["completions"] == job["parallelism"] == 2
    worker = container(job["template"], "worker")
    assert "--nnodes 2 " in worker["command"][-1]
    assert f"--master-addr train-0.{service['metadata']['name']} " in worker["command"][-1]
    assert job["template"]["spec"]["subdomain"] == service["metadata"]["name"]
    assert service["spec"]["selector"] == {"job-name": "train"}


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl")
def test_kustomize_gives_the_pod_its_configuration() -> None:
    out = subprocess.run(
        ["kubectl", "kustomize", FOLDER], capture_output=True, text=True, timeout=60, check=True
    ).stdout
    built = {one["kind"]: one for one in yaml.safe_load_all(out)}
    volumes = built["StatefulSet"]["spec"]["template"]["spec"]["volumes"]
    assert [v["configMap"]["name"] for v in volumes] == [built["ConfigMap"]["metadata"]["name"]]
    assert built["ConfigMap"]["data"].keys() == {"controller.toml"}
    worker = built["Job"]["spec"]["template"]["spec"]["containers"][0]
    assert worker["image"].startswith("registry.example/ina:")


def test_it_trains(config: Path, tmp_path: Path) -> None:
    network, job = pod("StatefulSet", "ina-controller"), pod("Job", "train")
    worker = container(job, "worker")
    inside = [word.replace("/tmp/ina", f"{tmp_path}/ina-$JOB_COMPLETION_INDEX")
              for word in command(worker, config)]  # fmt: skip
    with machine(tmp_path, "ina-controller", "train-0.train") as host:
        switch = host.start(*command(container(network, "switch"), config))
        controller = host.start(*command(container(network, "controller"), config))
        try:
            assert ready_line(controller).startswith("ready: controller 0.0.0.0:17700")
            pods = [host.start(*inside, **environ(worker), JOB_COMPLETION_INDEX=str(index))
                    for index in range(2)]  # fmt: skip
            said = [one.communicate(timeout=RUN_S)[0] for one in pods]
            assert [one.returncode for one in pods] == [0, 0], said
        finally:
            stop(controller, switch)
    assert "epoch 3/3: " in said[0], said[0]
