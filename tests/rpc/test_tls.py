"""What is wrong with a TLS file is said before anything is served, with the file's name."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ina.rpc.channel import open_channel
from ina.rpc.tls import TlsError, TlsFiles, channel_credentials, load, server_credentials
from tests.worlds.fakes.certificates import Authority


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def good(authority: Authority) -> TlsFiles:
    return authority.issue("good")


def test_good_files_are_taken_by_both_sides(good: TlsFiles) -> None:
    server_credentials(good)
    server_credentials(replace(good, ca=""))
    channel_credentials(good)
    channel_credentials(replace(good, cert="", key=""))
    pair, roots = load(good, server=True)
    assert pair == (Path(good.key).read_bytes(), Path(good.cert).read_bytes())
    assert roots == Path(good.ca).read_bytes()


def refused(files: TlsFiles, *, server: bool = True) -> str:
    with pytest.raises(TlsError) as caught:
        load(files, server=server)
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize("field", ["cert", "key", "ca"])
def test_an_unreadable_file_is_named(good: TlsFiles, field: str, tmp_path: Path) -> None:
    missing = str(tmp_path / "missing.pem")
    files = replace(good, **{field: missing})
    assert refused(files) == f"tls.{field} {missing}: No such file or directory"
    directory = replace(good, **{field: str(tmp_path)})
    assert refused(directory) == f"tls.{field} {tmp_path}: Is a directory"


@pytest.mark.parametrize("field", ["cert", "key", "ca"])
@pytest.mark.parametrize("damage", [lambda text: "", lambda text: text[: len(text) // 2]])
def test_a_damaged_file_is_named(
    good: TlsFiles, field: str, damage: Callable[[str], str], tmp_path: Path
) -> None:
    path = tmp_path / "damaged.pem"
    path.write_text(damage(Path(getattr(good, field)).read_text()))
    assert refused(replace(good, **{field: str(path)})).startswith(f"tls.{field} {path}: ")


@pytest.mark.parametrize("field", ["cert", "key"])
def test_swapped_files_are_named(good: TlsFiles, field: str) -> None:
    other = "key" if field == "cert" else "cert"
    swapped = replace(good, **{field: getattr(good, other)})
    assert refused(swapped).startswith(f"tls.{field} {getattr(good, other)}: holds no ")


def test_another_certificate_s_key_is_named(authority: Authority, good: TlsFiles) -> None:
    other = authority.issue("other")
    message = refused(replace(good, key=other.key))
    assert message == f"tls.key {other.key}: is not the key of tls.cert {good.cert}"


def test_an_encrypted_key_asks_nobody_for_its_passphrase(authority: Authority) -> None:
    files = authority.issue("encrypted", passphrase="quite a secret")
    assert refused(files).startswith(f"tls.key {files.key}: is encrypted")


@pytest.mark.parametrize("server", [True, False])
def test_dates_are_checked(authority: Authority, server: bool) -> None:
    past = authority.issue(f"past-{server}", end="20200102000000Z")
    assert refused(past, server=server) == f"tls.cert {past.cert}: the certificate has expired"
    future = authority.issue(f"future-{server}", start="20980101000000Z")
    assert refused(future, server=server).endswith("the certificate is not valid yet")


def test_an_expired_authority_is_named(good: TlsFiles, tmp_path: Path) -> None:
    parent = Authority(tmp_path)
    expired = parent.issue("expired", end="20200102000000Z", authority=True)
    message = refused(replace(good, ca=expired.cert))
    assert re.fullmatch(rf"tls\.ca {re.escape(expired.cert)}: expired on .* 2020 GMT", message)


def test_the_purpose_is_checked(authority: Authority) -> None:
    server, client = (
        authority.issue(f"for-{use}", usage=use) for use in ("serverAuth", "clientAuth")
    )
    load(server, server=True)
    load(client, server=False)
    assert "is not for a client" in refused(server, server=False)
    assert "is not for a server" in refused(client, server=True)


def test_half_a_pair_and_a_server_without_its_own_are_refused(good: TlsFiles) -> None:
    assert refused(replace(good, key="")) == "tls.cert is set and tls.key is not"
    assert refused(replace(good, cert="")) == "tls.key is set and tls.cert is not"
    assert "a server needs its own" in refused(TlsFiles(ca=good.ca))


def test_the_environment_s_names_are_in_the_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INA_TLS_CA", "/nowhere/ca.pem")
    with pytest.raises(TlsError, match=r"^INA_TLS_CA /nowhere/ca.pem: No such file"):
        open_channel("127.0.0.1:1")
