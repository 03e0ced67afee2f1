"""The server of the page: the page itself, four portions of figures, and two downloads.

It is a tool of one person on one machine. It stores nothing and executes nothing that it is sent.
It answers only to the hosts that it was told to trust, so that no other site can reach it through
the browser, and refuses requests that come from another origin. Every request is a GET: settings
travel in the address. The page loads nothing from elsewhere, and its content policy says so.
"""

import contextlib
import functools
import socket
import threading
from collections.abc import Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path
from urllib.parse import urlsplit

import plotly
from flask import Flask, Response, abort, jsonify, request
from werkzeug.exceptions import HTTPException
from werkzeug.serving import WSGIRequestHandler, make_server

from whorl.explorer import gallery, page, recipe
from whorl.explorer.presets import PRESETS
from whorl.explorer.state import MAX_DEPTH, State, from_query
from whorl.explorer.style import THEMES
from whorl.explorer.work import BusyError, Task, Work
from whorl.fields import choice

# Plotly looks for pandas in whatever it is given. It fails while another thread, such as a view of
# another package, is half through importing it; so it is imported before there are any threads.
with contextlib.suppress(ImportError):
    import pandas  # noqa: F401

BODY_LIMIT = 2**14  # bytes that a request may carry; the page sends none
PATIENCE = 60  # seconds that a connection may stand still
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: "
    "blob:; connect-src 'self'; "
    "font-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'self' "
    "http://localhost:* http://127.0.0.1:*"
)
KINDS = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


def application(*, trusted: Sequence[str] = (), work: Work | None = None) -> Flask:
    """The page as a WSGI application.

    Args:
        trusted: Host names besides this machine's own under which it answers.
        work: Who computes; a new one if left out.

    Returns:
        The application.
    """
    app = Flask("whorl.explorer", static_folder=None)
    app.config.update(TRUSTED_HOSTS=[*LOOPBACK, *trusted], MAX_CONTENT_LENGTH=BODY_LIMIT)
    work = work or Work()
    app.extensions["whorl"] = work
    app.before_request(_same_origin)
    app.after_request(_sealed)
    app.add_url_rule("/", "page", _page)
    app.add_url_rule("/status", "status", lambda: jsonify(work.report()))
    app.add_url_rule("/assets/<name>", "asset", _asset)
    portions = ", ".join(gallery.PORTIONS)
    app.add_url_rule(
        f"/<any({portions}):portion>/<theme>", "portion", functools.partial(_portion, work)
    )
    app.add_url_rule("/state.<any(json, py):kind>", "download", _download)
    app.register_error_handler(Exception, _refused)
    return app


def _refused(error: Exception) -> tuple[Response, int]:
    """Answer every failure in one sentence; without an answer the page would wait indefinitely."""
    if isinstance(error, HTTPException):
        return jsonify(error=error.description or "refused"), error.code or 500
    if isinstance(error, ValueError):
        return jsonify(error=str(error)), 400
    if isinstance(error, BusyError):
        return jsonify(error=str(error), busy=True), 503
    said = " ".join(f"{type(error).__name__}: {error}".split())[:300]
    return jsonify(error=f"This picture cannot be computed ({said})."), 500


def _same_origin() -> None:
    """Refuse requests of other sites.

    Only the page itself may be opened from anywhere, by a link or in a notebook's frame. Another
    port of this machine is another origin although it is the same site, and a page without an
    origin belongs to nobody.
    """
    origin = request.headers.get("Origin")
    site = request.headers.get("Sec-Fetch-Site", "same-origin")
    foreign = origin is not None and urlsplit(origin).netloc != request.host
    if foreign or (site not in ("same-origin", "none") and request.endpoint != "page"):
        abort(
            403,
            "requests must come from the explorer's own page, but this one comes from another site",
        )


def _sealed(response: Response) -> Response:
    response.headers["Content-Security-Policy"] = POLICY
    response.headers["X-Content-Type-Options"] = "nosniff"
    # With no referrer at all, browsers also hide the origin from the page's own server.
    response.headers["Referrer-Policy"] = "same-origin"
    response.headers["Cross-Origin-Resource-Policy"] = "same-origin"
    if request.endpoint != "asset":
        response.headers["Cache-Control"] = "no-store"
    return response


@functools.cache
def _files() -> dict[str, Path]:
    """The only files that are served: the page's own, and Plotly's script."""
    own = Path(str(resources.files("whorl.explorer") / "assets"))
    files = {path.name: path for path in own.iterdir() if path.suffix in KINDS}
    script = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
    return files | {script.name: script}


def _asset(name: str) -> Response:
    if name not in _files():
        abort(404, "the page must ask for its own files, but this is none of them")
    path = _files()[name]
    age = "public, max-age=86400" if name == "plotly.min.js" else "no-cache"
    return Response(path.read_bytes(), mimetype=KINDS[path.suffix], headers={"Cache-Control": age})


def _page() -> Response:
    return Response(page.html(request.query_string.decode()), mimetype="text/html")


def _portion(work: Work, portion: str, theme: str) -> Response:
    choice("theme", theme, THEMES)
    state = from_query(request.query_string.decode())
    answer = work.do(portion, lambda: gallery.encoded(portion, state, THEMES[theme]))
    return Response(answer, mimetype="application/json")


def _download(kind: str) -> Response:
    state = from_query(request.query_string.decode())
    text, mime = (
        (state.to_json(), "application/json")
        if kind == "json"
        else (recipe.python(state), "text/x-python")
    )
    name = f'attachment; filename="whorl-state.{kind}"'
    return Response(text, mimetype=mime, headers={"Content-Disposition": name})


def _task(portion: str, state: State) -> Task:
    return portion, lambda: gallery.PORTIONS[portion](state)


def presets_first() -> list[Task]:
    """What every preset shows, and the family of the first."""
    portions = ("paths", "picture", "instant")
    shown = [_task(portion, one.state) for portion in portions for one in PRESETS]
    return [*shown, _task("family", PRESETS[0].state)]


def others() -> list[Task]:
    """What has a program of its own: other widths, the graph, and families of other depths."""
    opening = PRESETS[0].state
    states = [replace(opening, width=width) for width in (4, 5, 6, 2)]
    states.append(replace(opening, system="graph"))
    runs = [_task(portion, state) for state in states for portion in ("paths", "instant")]
    depths = (replace(opening, depth=depth) for depth in range(1, MAX_DEPTH + 1))
    return runs + [_task("family", state) for state in depths]


class _Handler(WSGIRequestHandler):
    """A connection that may not stand still for long, and of which nothing is logged."""

    timeout = PATIENCE

    def log(self, *given: object, **named: object) -> None:
        """Say nothing."""


class Server:
    """The page on a port, in a thread of its own.

    Args:
        host: The address to listen at.
        port: The port, or 0 for any free one.
        trusted: Host names besides this machine's own under which it answers.
        alone: Whether nothing else uses this process, so that it may compile programs ahead.

    Raises:
        OSError: If the port is taken.
    """

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        trusted: Sequence[str] = (),
        alone: bool = False,
    ) -> None:
        self.app: Flask = application(trusted=trusted)
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:  # werkzeug would print, and end the process
            listener = socket.create_server((host, port), family=family)
        except OSError as wrong:
            raise OSError(wrong.errno, wrong.strerror or str(wrong), f"{host}:{port}") from wrong
        with listener:
            self._server = make_server(
                host, port, self.app, True, request_handler=_Handler, fd=listener.fileno()
            )
        shown = f"[{host}]" if ":" in host else host
        self.address: str = f"http://{shown}:{self._server.port}/"
        self._alone = alone
        self._ended = threading.Event()

    def start(self) -> "Server":
        """Serve and warm up in the background."""
        threading.Thread(
            target=self._server.serve_forever, name="whorl-explorer", daemon=True
        ).start()
        self.app.extensions["whorl"].warm(presets_first(), others() if self._alone else [])
        return self

    def wait(self) -> None:
        """Serve until interrupted."""
        while not self._ended.wait(1.0):
            pass

    def stop(self) -> None:
        """Begin nothing more, finish what is being computed, and close the port."""
        self.app.extensions["whorl"].close()
        self._server.shutdown()
        self._server.server_close()
        self._ended.set()
