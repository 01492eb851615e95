"""deploy/systemd: what the units start, with the files that they name."""

from __future__ import annotations

import configparser
import shlex
from pathlib import Path

from ina.cli.main import run
from tests.worlds.processes.machine import DEPLOY, machine, ready_line, stop

FOLDER = DEPLOY / "systemd"


def unit(name: str) -> tuple[list[str], dict[str, str]]:
    """The command and the variables of a service, for 127.0.0.1."""
    parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    text = (FOLDER / name).read_text()
    parser.read_string(text)
    lines = [
        line.partition("=")[2] for line in text.splitlines() if line.startswith("Environment=")
    ]
    variables = dict(word.split("=", 1) for line in lines for word in shlex.split(line))
    command = parser["Service"]["ExecStart"].replace("${DATA_HOST}", "127.0.0.1")
    assert "$" not in command
    return shlex.split(command), variables


def test_the_units_start_a_controller_and_its_switch(tmp_path: Path) -> None:
    text = (FOLDER / "controller.toml").read_text()
    _, switch_environ = unit("ina-switch.service")
    assert f'data_host = "{switch_environ["DATA_HOST"]}"' in text  # both say where workers send to
    config = tmp_path / "controller.toml"
    text = text.replace(switch_environ["DATA_HOST"], "127.0.0.1")
    config.write_text(text.replace("/var/lib/ina", str(tmp_path)))
    assert run(["controller", "check", str(config)]) == 0
    command, _ = unit("ina-controller.service")
    assert "/etc/ina/controller.toml" in command
    command = [word.replace("/etc/ina/controller.toml", str(config)) for word in command]
    with machine(tmp_path) as host:
        switch = host.start(*unit("ina-switch.service")[0])
        controller = host.start(*command)
        try:
            assert "port 1 udp:127.0.0.1:17760" in ready_line(switch)
            assert "switch 127.0.0.1:9559" in ready_line(controller)
        finally:
            stop(controller, switch)
