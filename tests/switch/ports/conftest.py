"""A pipeline made by hand (reflector.c), so that ports are tested without a P4 program."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ina._native import switch as native

HERE = Path(__file__).parent
SAME_PORT = 512
OTHER_PORT = 513


class Reflector:
    """One state of the reflector library."""

    def __init__(
        self,
        library: ctypes.CDLL,
        *,
        answer: bool = False,
        to_port: int = SAME_PORT,
        copies: int = 1,
        udp_port: int = 0,
        tos: int = -1,
    ) -> None:
        self._library = library
        self.state: int = library.reflector_new(answer, to_port, copies, udp_port, tos)
        self.pipeline: int = library.ina_pipeline_get()

    @property
    def max_depth(self) -> int:
        return int(self._library.reflector_max_depth(self.state))

    @property
    def tailed(self) -> int:
        """Packets that came in two parts."""
        return int(self._library.reflector_tailed(self.state))

    def close(self) -> None:
        self._library.reflector_free(self.state)


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    if shutil.which("cc") is None:
        pytest.skip("no C compiler (cc)")
    target = tmp_path_factory.mktemp("reflector") / "reflector.so"
    native_dir = HERE.parents[2] / "native"
    subprocess.run(
        ["cc", "-O1", "-shared", "-fPIC", f"-I{native_dir}", "-o", target, HERE / "reflector.c"],
        check=True,
    )
    library = ctypes.CDLL(str(target))
    library.reflector_new.restype = ctypes.c_void_p
    library.reflector_new.argtypes = [
        ctypes.c_int, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_uint16, ctypes.c_int,
    ]  # fmt: skip
    library.ina_pipeline_get.restype = ctypes.c_void_p
    library.reflector_max_depth.argtypes = [ctypes.c_void_p]
    library.reflector_tailed.argtypes = [ctypes.c_void_p]
    library.reflector_free.argtypes = [ctypes.c_void_p]
    return library


@pytest.fixture
def reflector(library: ctypes.CDLL) -> Iterator[Callable[..., Reflector]]:
    made: list[Reflector] = []

    def make(**options: int) -> Reflector:
        made.append(Reflector(library, **options))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def run_loop() -> Iterator[Callable[..., native.PortLoop]]:
    """Starts a loop over ports with a reflector; stops it at the end of the test."""
    loops: list[native.PortLoop] = []

    def start(ports: list[native.Port], pipeline: Reflector | None = None) -> native.PortLoop:
        loop = native.PortLoop(510)
        for port in ports:
            loop.add(port)
        if pipeline is not None:
            loop.set_pipeline(pipeline.pipeline, pipeline.state)
        loop.start()
        loops.append(loop)
        return loop

    yield start
    for loop in loops:
        loop.stop()


def wait_until(condition: Callable[[], bool], what: str, deadline_s: float = 10.0) -> None:
    end = time.monotonic() + deadline_s
    while not condition():
        assert time.monotonic() < end, f"not within {deadline_s} s: {what}"
        time.sleep(0.002)
