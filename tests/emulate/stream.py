"""What two ranks run: a stream of TCP from one to the other, whose digests both print."""

STREAM = """
import hashlib, os, socket, sys, time
data = os.urandom(1 << 20) if os.environ["RANK"] == "0" else b""
if os.environ["RANK"] == "0":
    with socket.create_server(("10.0.0.1", 5000)) as server:
        connection, _ = server.accept()
        with connection:
            connection.sendall(data)
    print(hashlib.sha256(data).hexdigest())
else:
    deadline = time.monotonic() + 60
    while True:
        try:
            connection = socket.create_connection(("10.0.0.1", 5000), 60)
            break
        except ConnectionRefusedError:
            assert time.monotonic() < deadline
            time.sleep(0.05)
    digest = hashlib.sha256()
    with connection:
        while part := connection.recv(65536):
            digest.update(part)
    print(digest.hexdigest())
"""
