"""The explorer's connections.

How many there may be, and how long each may take to say what it wants.

A connection has a thread, so that one which says nothing, or a letter per second, must not keep it.
A request's head has to be there within `HEAD` seconds and its body within `BODY`, however they are
cut; an answer has to be taken within `TAKE`. There are at most `CONNECTIONS` at once, `EACH` of
them from one address, and whoever comes beyond that is told so and let go.
"""

import contextlib
import io
import socket
import threading
import time
from collections import Counter
from typing import Any

from werkzeug.serving import ThreadedWSGIServer, WSGIRequestHandler

HEAD, BODY, TAKE = 10.0, 60.0, 60.0  # seconds
CONNECTIONS, EACH = 512, 256
FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 2\r\nContent-Type:"
    b' application/json\r\nConnection: close\r\n\r\n{"busy":true,"error":"the explorer must have a'
    b' connection free, but too many are open: it tries again by itself"}'
)


class Listening(ThreadedWSGIServer):
    """A server with a thread for each of a bounded number of connections."""

    def __init__(self, host: str, port: int, app: Any) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            listener = socket.create_server((host, port), family=family, backlog=CONNECTIONS)
        except OSError as wrong:  # it names no place itself
            raise OSError(wrong.errno, wrong.strerror or str(wrong), f"{host}:{port}") from wrong
        with listener:
            super().__init__(host, port, app, _Handler, fd=listener.fileno())
        self._open: dict[socket.socket, str] = {}
        self._count = threading.Lock()

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Whether there is room for one more."""
        address = str(client_address[0])
        with self._count:
            room = len(self._open) < CONNECTIONS and Counter(self._open.values())[address] < EACH
            if room:
                self._open[request] = address
        if not room:
            with contextlib.suppress(OSError):
                request.setblocking(False)
                request.send(FULL)
        return room

    def shutdown_request(self, request: Any) -> None:
        with self._count:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that breaks is no news."""


class _Timed(io.RawIOBase):
    """What a connection sends, up to a moment."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self.until: float = time.monotonic() + HEAD

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left = self.until - time.monotonic()
        if left <= 0:
            raise TimeoutError("a request must come within a stated time, but it did not")
        self._connection.settimeout(left)
        return self._connection.recv_into(buffer)


class _Handler(WSGIRequestHandler):
    """A request with a time limit, of which nothing is logged: one request is not news."""

    def setup(self) -> None:
        super().setup()
        self._timed = _Timed(self.connection)
        self.rfile: Any = io.BufferedReader(self._timed)

    def run_wsgi(self) -> None:
        self._timed.until = time.monotonic() + BODY
        super().run_wsgi()

    def send_response(self, code: int, message: str | None = None) -> None:
        # From here on nothing is read but what is thrown away, and that not for long.
        self._timed.until = time.monotonic() + 1.0
        self.connection.settimeout(TAKE)
        super().send_response(code, message)

    def log(self, *given: Any, **named: Any) -> None:
        """Say nothing."""
