"""TLS of ina's gRPC: PEM files in, gRPC credentials out, each mistake in one line with its file.

gRPC itself takes any bytes and fails at the first connection without saying which file is wrong, so
everything that can be known beforehand is checked here, with Python's own TLS.
"""

from __future__ import annotations

import os
import ssl
import time
from dataclasses import dataclass
from pathlib import Path

import grpc

from ina.errors import InvalidInputError

_EXPIRED, _NOT_YET_VALID, _WRONG_PURPOSE = 10, 9, 26  # OpenSSL's X509_V_ERR_...


class TlsError(InvalidInputError):
    """A TLS file is missing, unreadable, expired or does not fit; the message names the file."""


@dataclass(frozen=True)
class TlsFiles:
    """One side's PEM files; empty paths are not set. False when none is set: plain text."""

    cert: str = ""
    """This side's certificate, then any intermediate ones."""
    key: str = ""
    """Its private key, without a passphrase."""
    ca: str = ""
    """Whose certificates are accepted from the other side. On a server: mutual TLS."""
    prefix: str = "tls."
    """How the user spells the settings: ``tls.`` + ``cert``, or ``INA_TLS_`` + ``CERT``."""

    def __bool__(self) -> bool:
        return bool(self.cert or self.key or self.ca)

    def name(self, field: str) -> str:
        """The setting as the user spells it."""
        return self.prefix + (field.upper() if self.prefix.isupper() else field)


PLAIN_TEXT = TlsFiles()


def from_environment() -> TlsFiles:
    """The files of this process as a client: ``INA_TLS_CA``, ``INA_TLS_CERT``, ``INA_TLS_KEY``."""
    cert, key, ca = (os.environ.get(f"INA_TLS_{name}", "") for name in ("CERT", "KEY", "CA"))
    return TlsFiles(cert, key, ca, prefix="INA_TLS_")


def server_credentials(files: TlsFiles) -> grpc.ServerCredentials:
    """What a server needs; with ``ca``, clients must show a certificate. Raises TlsError."""
    pair, roots = load(files, server=True)
    assert pair is not None
    return grpc.ssl_server_credentials(
        [pair], root_certificates=roots, require_client_auth=roots is not None
    )


def server_certificates(files: TlsFiles) -> grpc.ServerCertificateConfiguration:
    """As :func:`server_credentials`, for a server that may change them. Raises TlsError."""
    pair, roots = load(files, server=True)
    assert pair is not None
    return grpc.ssl_server_certificate_configuration([pair], root_certificates=roots)


def channel_credentials(files: TlsFiles) -> grpc.ChannelCredentials:
    """What a client needs; without ``ca``, the public roots are trusted. Raises TlsError."""
    pair, roots = load(files, server=False)
    key, chain = pair or (None, None)
    return grpc.ssl_channel_credentials(roots, key, chain)


def load(files: TlsFiles, *, server: bool) -> tuple[tuple[bytes, bytes] | None, bytes | None]:
    """((key, certificate chain) if set, CA if set), read and checked. Raises TlsError."""
    for have, want in (("cert", "key"), ("key", "cert")):
        if getattr(files, have) and not getattr(files, want):
            raise TlsError(f"{files.name(have)} is set and {files.name(want)} is not")
    if server and not files.cert:
        raise TlsError(
            f"{files.name('ca')} is set and {files.name('cert')} is not: a server needs its own"
        )
    roots = _read(files, "ca") if files.ca else None
    if roots is not None:
        _check_roots(files, roots)
    if not files.cert:
        return None, roots
    chain, key = _read(files, "cert"), _read(files, "key")
    if b"PRIVATE KEY-----" not in key:
        raise TlsError(f"{_place(files, 'key')}: holds no private key in PEM")
    _roots_context(files, "cert", chain)  # only to see that it is a certificate
    _check_pair(files, chain, server=server)
    return (key, chain), roots


def _read(files: TlsFiles, field: str) -> bytes:
    try:
        return Path(getattr(files, field)).read_bytes()
    except OSError as error:
        raise TlsError(f"{_place(files, field)}: {error.strerror}") from None


def _place(files: TlsFiles, field: str) -> str:
    return f"{files.name(field)} {getattr(files, field)}"


def _roots_context(files: TlsFiles, field: str, data: bytes) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.load_verify_locations(cadata=data.decode("ascii", "replace"))
    except (ssl.SSLError, ValueError):
        raise TlsError(f"{_place(files, field)}: holds no certificate in PEM") from None
    return context


def _check_roots(files: TlsFiles, data: bytes) -> None:
    found = _roots_context(files, "ca", data).get_ca_certs()
    ends = [str(authority["notAfter"]) for authority in found if "notAfter" in authority]
    if ends and all(ssl.cert_time_to_seconds(end) < time.time() for end in ends):
        raise TlsError(f"{_place(files, 'ca')}: expired on {ends[-1]}")


def _check_pair(files: TlsFiles, chain: bytes, *, server: bool) -> None:
    """Shakes hands with itself, in memory: the key fits, the dates are good, the purpose too."""
    contexts = [ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)]
    for context in contexts:
        _load_pair(files, context)
    listener, caller = contexts
    caller.check_hostname = False
    caller.verify_mode = ssl.CERT_NONE
    verifier = caller if server else listener
    verifier.verify_mode = ssl.CERT_REQUIRED
    verifier.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # the certificate vouches for itself
    verifier.load_verify_locations(cadata=chain.decode("ascii", "replace"))
    try:
        _shake_hands(listener, caller)
    except ssl.SSLCertVerificationError as error:
        what = {
            _EXPIRED: "has expired",
            _NOT_YET_VALID: "is not valid yet",
            _WRONG_PURPOSE: f"is not for a {'server' if server else 'client'} (extendedKeyUsage)",
        }.get(error.verify_code, error.verify_message)
        raise TlsError(f"{_place(files, 'cert')}: the certificate {what}") from None
    except ssl.SSLError as error:
        raise TlsError(f"{_place(files, 'cert')}: {_reason(error)}") from None


def _load_pair(files: TlsFiles, context: ssl.SSLContext) -> None:
    asked = []

    def no_passphrase() -> str:
        asked.append(True)
        return ""

    try:
        context.load_cert_chain(files.cert, files.key, password=no_passphrase)
    except (ssl.SSLError, OSError) as error:
        if asked:
            why = "is encrypted: ina takes a key without a passphrase"
        elif isinstance(error, ssl.SSLError) and error.reason == "KEY_VALUES_MISMATCH":
            why = f"is not the key of {_place(files, 'cert')}"
        else:
            why = f"does not load with {_place(files, 'cert')}: {_reason(error)}"
        raise TlsError(f"{_place(files, 'key')}: {why}") from None


def _shake_hands(listener: ssl.SSLContext, caller: ssl.SSLContext) -> None:
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [caller.wrap_bio(down, up), listener.wrap_bio(up, down, server_side=True)]
    while sides:
        for side in list(sides):
            try:
                side.do_handshake()
                sides.remove(side)
            except ssl.SSLWantReadError:
                pass


def _reason(error: OSError) -> str:
    reason = getattr(error, "reason", None) or error.strerror or str(error)
    return str(reason).lower().replace("_", " ")
