"""A small certificate authority for tests, made with the openssl command."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from ina.rpc.tls import TlsFiles

_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
_CONFIG = """
[ca]
default_ca = ca
[ca]
dir = {directory}
database = $dir/index.txt
new_certs_dir = $dir
serial = $dir/serial
certificate = $dir/ca.pem
private_key = $dir/ca.key
default_md = sha256
policy = any
[any]
commonName = supplied
"""


class Authority:
    """Issues certificates into ``directory``; ``ca`` is its own."""

    def __init__(self, directory: Path, name: str = "test authority", days: int = 30) -> None:
        if shutil.which("openssl") is None:
            pytest.skip("needs openssl")
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.ca = directory / "ca.pem"
        (directory / "index.txt").touch()
        (directory / "serial").write_text("01\n")
        (directory / "openssl.cnf").write_text(_CONFIG.format(directory=directory))
        _openssl(
            "req", "-x509", *_KEY, "-nodes", "-subj", f"/CN={name}", "-days", str(days),
            "-keyout", str(directory / "ca.key"), "-out", str(self.ca),
        )  # fmt: skip

    def issue(
        self,
        name: str,
        *,
        names: str = "DNS:localhost,IP:127.0.0.1",
        usage: str = "serverAuth,clientAuth",
        start: str = "20200101000000Z",
        end: str = "20990101000000Z",
        passphrase: str = "",
        authority: bool = False,
    ) -> TlsFiles:
        """``name.pem`` and ``name.key``; the result's ``ca`` is this authority."""
        cert, key, request = (self.directory / f"{name}.{kind}" for kind in ("pem", "key", "csr"))
        hide = ["-passout", f"pass:{passphrase}"] if passphrase else ["-nodes"]
        extensions = self.directory / f"{name}.ext"
        extensions.write_text(
            "basicConstraints=CA:TRUE\n"
            if authority
            else f"subjectAltName={names}\nextendedKeyUsage={usage}\n"
        )
        _openssl(
            "req", *_KEY, *hide, "-subj", f"/CN={name}", "-keyout", str(key), "-out", str(request)
        )
        _openssl(
            "ca", "-batch", "-notext", "-config", str(self.directory / "openssl.cnf"),
            "-extfile", str(extensions), "-startdate", start, "-enddate", end,
            "-in", str(request), "-out", str(cert),
        )  # fmt: skip
        return TlsFiles(str(cert), str(key), str(self.ca))


def _openssl(*arguments: str) -> None:
    done = subprocess.run(
        ["openssl", *arguments], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
