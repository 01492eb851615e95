"""Why a server cannot be reached, in words of ina's own: gRPC's are for who writes gRPC.

Meant for after a call has failed: it opens connections of its own.
"""

from __future__ import annotations

import re
import socket

from ina.rpc.channel import is_loopback
from ina.rpc.tls import TlsFiles
from ina.rpc.tls_probe import tls_trouble

TIMEOUT_S = 3.0
_NO_CONNECTION = re.compile(r"Failed to connect to remote host: (?:connect: )?([A-Z][a-z ]+)")


def absence(address: str, timeout_s: float = TIMEOUT_S) -> str | None:
    """What keeps from a connection to ``host:port``; None: there is one. Raises nothing.

    Returns within ``timeout_s``, and what the name takes to be looked up.
    """
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    try:
        socket.create_connection((host, int(port)), timeout_s).close()
    except ConnectionRefusedError:
        elsewhere = "" if is_loopback(host) else ", or on its own 127.0.0.1 only"
        return f"nobody listens there: it does not run, or at another address{elsewhere}"
    except TimeoutError:
        return "no answer to a connection: the host is down, a firewall, or another address"
    except (socket.gaierror, UnicodeError):
        return f"no host is known by the name {host!r}"
    except OSError as error:
        return f"no way leads there: {error.strerror}"
    except ValueError:
        return "want HOST:PORT"
    return None


def why_absent(address: str, said: str | None, files: TlsFiles | None = None) -> str:
    """Why the server at ``host:port`` has not answered. ``said``: gRPC's words, or the server's own
    where it is there and has refused. ``files``: as of :func:`tls_trouble`."""
    return absence(address) or tls_trouble(address, files) or in_words(said)


def in_words(said: str | None) -> str:
    """One line, of which gRPC's words on connections are translated; others stay."""
    line = " ".join(str(said or "it did not say why").split())
    if "HTTP/2" in line or "SETTINGS frame" in line:
        return "what listens there is no gRPC server"
    if "errors resolving" in line or "DNS resolution failed" in line:
        return "no host is known by this name"
    if line == "Deadline Exceeded":
        return "no answer in time"
    found = _NO_CONNECTION.search(line)
    return f"no connection: {found[1].strip()}" if found else line
