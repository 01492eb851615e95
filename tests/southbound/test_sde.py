"""The SDE's client is found by SDE_INSTALL, and what is wrong with it is said in one line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ina.errors import MissingToolError
from ina.tables.bfrt.sde import client_folder, load_client
from tests.southbound.conftest import forget_client, make_sde

CONTROLLER = "ina.controller.switches.southbound, ina.tables.bfrt.session"


def test_the_fake_is_loaded_as_the_real_one_would_be(sde: Path) -> None:
    client = load_client()
    assert client.__name__ == "bfrt_grpc.client"
    assert Path(client.__file__).is_relative_to(sde)
    assert sys.path[-1] == str(client_folder())
    assert load_client() is client
    assert sys.path.count(str(client_folder())) == 1


def test_without_an_sde() -> None:
    with pytest.raises(MissingToolError, match="set SDE_INSTALL to the SDE's install folder"):
        client_folder({})


def test_a_folder_that_is_no_sde(tmp_path: Path) -> None:
    with pytest.raises(MissingToolError, match=r"SDE_INSTALL=.*bfrt_grpc/client.py") as caught:
        client_folder({"SDE_INSTALL": str(tmp_path)})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("import google.rpc_of_nobody", "needs google.rpc_of_nobody: pip install googleapis"),
        ("import nobody_has_this", "needs nobody_has_this$"),
        ("raise TypeError('Descriptors cannot be created directly.\\nIf')",
         r"older protobuf \(Descriptors cannot be created directly.\): set PROTOCOL_BUFFERS"),
        ("raise ImportError('libgrpc.so: wrong ELF class')", "wrong ELF class"),
    ],
)  # fmt: skip
def test_a_client_that_cannot_be_imported(
    text: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    forget_client()
    root = make_sde(tmp_path / "sde", text + "\n")
    with pytest.raises(MissingToolError, match=says) as caught:
        load_client({"SDE_INSTALL": str(root)})
    assert "\n" not in str(caught.value)
    forget_client()


def test_the_controller_can_be_imported_without_an_sde() -> None:
    code = f"import sys, {CONTROLLER}\nassert not any('bfrt_grpc' in name for name in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
