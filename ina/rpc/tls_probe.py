"""Says why two sides do not agree on TLS, which gRPC keeps to itself.

Meant for after a call has failed: it opens one connection of its own with Python's TLS.
"""

from __future__ import annotations

import socket
import ssl

from ina.rpc.tls import TlsError, TlsFiles, from_environment, load

TIMEOUT_S = 3.0
_OTHER_NAME, _OTHER_ADDRESS = 62, 64  # OpenSSL's X509_V_ERR_...
_UNKNOWN_ISSUER = {18, 19, 20, 21}
_EXPIRED, _NOT_YET_VALID = 10, 9


def tls_trouble(
    address: str, files: TlsFiles | None = None, timeout_s: float = TIMEOUT_S
) -> str | None:
    """What is wrong between this side's ``files`` and the server at ``host:port``, in one line.

    None: nothing is, or nobody listens there. ``files``: the environment's if left out. Returns
    within about twice ``timeout_s``, and raises nothing.
    """
    files = from_environment() if files is None else files
    host, _, port = address.rpartition(":")
    try:
        load(files, server=False)
        with socket.create_connection((host.strip("[]"), int(port)), timeout_s) as connection:
            connection.settimeout(timeout_s)
            return _shake_hands(connection, host.strip("[]"), files)
    except TlsError as error:
        return str(error)
    except (OSError, ValueError):
        return None


def _shake_hands(connection: socket.socket, host: str, files: TlsFiles) -> str | None:
    context = ssl.create_default_context(cafile=files.ca or None)
    context.set_alpn_protocols(["h2"])
    if files.cert:
        context.load_cert_chain(files.cert, files.key)
    if not files:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    shook = False
    try:
        with context.wrap_socket(connection, server_hostname=host) as secured:
            shook = True
            # In TLS 1.3 the server judges the client's certificate after the handshake; a server
            # that is content sends its HTTP/2 settings at once, gRPC's just hangs up otherwise.
            if files and not secured.recv(1):
                raise ConnectionResetError("it hung up")
    except ssl.SSLCertVerificationError as error:
        return _bad_server(error, host, files)
    except TimeoutError:
        pass
    except (ssl.SSLError, ConnectionError) as error:
        if not files:
            # Something other than TLS came back: both sides speak plain text, as they should.
            return _asks_for_tls(files) if shook else None
        return _refused(error, files)
    return None if files or not shook else _asks_for_tls(files)


def _asks_for_tls(files: TlsFiles) -> str:
    return f"it speaks TLS: set {files.name('ca')}"


def _bad_server(error: ssl.SSLCertVerificationError, host: str, files: TlsFiles) -> str:
    if error.verify_code in (_OTHER_NAME, _OTHER_ADDRESS):
        return f"its certificate is not for {host} (subjectAltName)"
    if error.verify_code in _UNKNOWN_ISSUER:
        issuer = f"{files.name('ca')} {files.ca}" if files.ca else "a public authority"
        return f"its certificate is not signed by {issuer}"
    if error.verify_code == _EXPIRED:
        return "its certificate has expired"
    if error.verify_code == _NOT_YET_VALID:
        return "its certificate is not valid yet"
    return f"its certificate: {error.verify_message}"


def _refused(error: OSError, files: TlsFiles) -> str:
    reason = str(getattr(error, "reason", None) or error.strerror or error)
    refuses = "ALERT" in reason or isinstance(error, ConnectionError)
    if reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG"):
        return f"it speaks plain text, and {files.name('ca')} asks for TLS"
    if refuses and not files.cert:
        return f"it asks for a client certificate: set {files.name('cert')} and {files.name('key')}"
    said = reason.lower().replace("_", " ")
    if refuses:
        return f"it refuses {files.name('cert')} {files.cert} ({said})"
    return f"TLS fails: {said}"
