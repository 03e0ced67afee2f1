"""The explorer's server: a page, four portions of figures, two downloads, one upload.

Nothing is stored and nothing is executed.

It answers only to hosts it was told to trust, so that no other site can reach it through a
visitor's browser; requests that come from another origin are refused. The page loads nothing from
elsewhere, and its content policy says so to the browser.
"""

import functools
import threading
from collections.abc import Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import plotly
from flask import Flask, Response, abort, jsonify, request
from werkzeug.exceptions import HTTPException, RequestEntityTooLarge

from whorl.explorer import gallery, many, page, programs, recipe, tables, views, wire
from whorl.explorer.listening import Listening
from whorl.explorer.presets import PRESETS
from whorl.explorer.state import MAX_DEPTH, State, from_query
from whorl.explorer.style import THEMES
from whorl.explorer.work import FILE, BusyError, Work

UPLOAD_LIMIT = 16 * 2**20
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: "
    "blob:; connect-src 'self'; "
    "font-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'self' "
    "http://localhost:* http://127.0.0.1:*"
)
WORDS = ("words",)  # no program at all


def application(*, trusted: Sequence[str] = (), work: Work | None = None) -> Flask:
    """The page as a WSGI application, for any server."""
    app = Flask("whorl.explorer", static_folder=None)
    app.config.update(
        TRUSTED_HOSTS=[*LOOPBACK, *trusted], MAX_CONTENT_LENGTH=UPLOAD_LIMIT, MAX_FORM_PARTS=4
    )
    lanes = work or Work()
    lanes.mark(WORDS)
    app.extensions["whorl"] = lanes
    app.before_request(_same_origin)
    app.after_request(_sealed)
    app.add_url_rule(
        "/",
        "page",
        lambda: Response(page.html(request.query_string.decode()), mimetype="text/html"),
    )
    app.add_url_rule("/status", "status", lambda: jsonify(lanes.warming.report()))
    app.add_url_rule("/assets/<name>", "asset", _asset)
    app.add_url_rule(
        "/<any(paths, picture, instant, family):portion>/<theme>",
        "portion",
        functools.partial(_portion, lanes),
    )
    app.add_url_rule("/state.<any(json, py):kind>", "download", _download)
    app.add_url_rule(
        "/upload/<theme>", "upload", functools.partial(_upload, lanes), methods=["POST"]
    )
    app.register_error_handler(ValueError, lambda refusal: (jsonify(error=str(refusal)), 400))
    app.register_error_handler(
        BusyError,
        lambda refusal: (jsonify(error=str(refusal), busy=True), 503, {"Retry-After": "1"}),
    )
    app.register_error_handler(HTTPException, _http)
    return app


def _http(error: HTTPException) -> tuple[Response, int]:
    if isinstance(error, RequestEntityTooLarge):
        return jsonify(
            error=f"the file must be at most {UPLOAD_LIMIT // 2**20} MB, but it is larger"
        ), 413
    return jsonify(error=error.description or "refused"), error.code or 500


def _same_origin() -> None:
    """Only the explorer's own page asks.

    The page itself may be come to from anywhere, by a link or in a notebook's frame.

    Another port of this machine is another origin although it is the same site, and a page without
    an origin is nobody's.
    """
    origin, site = (
        request.headers.get("Origin"),
        request.headers.get("Sec-Fetch-Site", "same-origin"),
    )
    foreign = origin is not None and urlsplit(origin).netloc != request.host
    if foreign or (site not in ("same-origin", "none") and request.endpoint != "page"):
        abort(
            403,
            "requests must come from the explorer's own page, but this one comes from another site",
        )


def _sealed(response: Response) -> Response:
    response.headers["Content-Security-Policy"] = POLICY
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Referrer-Policy"] = (
        "same-origin"  # with none at all, browsers also hide the origin from the page's own server
    )
    response.headers["Cross-Origin-Resource-Policy"] = "same-origin"
    if request.endpoint != "asset":
        response.headers["Cache-Control"] = "no-store"
    return response


@functools.cache
def _files() -> dict[str, Path]:
    """The only files that are served.

    The page's own, and Plotly's script from where Plotly is installed.
    """
    own = Path(str(resources.files("whorl.explorer") / "assets"))
    files = {path.name: path for path in own.iterdir() if path.suffix in (".css", ".js", ".svg")}
    return files | {
        "plotly.min.js": Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
    }


def _asset(name: str) -> Response:
    if name not in _files():
        abort(404, "the page must ask for its own files, but this is none of them")
    kinds = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
    kept = "public, max-age=86400" if name == "plotly.min.js" else "no-cache"
    return Response(
        _files()[name].read_bytes(),
        mimetype=kinds[_files()[name].suffix],
        headers={"Cache-Control": kept},
    )


def program(portion: str, state: State) -> tuple[Any, ...]:
    """What decides which compiled program a portion needs."""
    if portion == "family":
        return WORDS if many.reason(state) else (portion, state.depth, state.policy, state.gate)
    kind = "moment" if portion == "instant" else "run"
    odd = state.system if state.system in ("graph", *views.ELSEWHERE) else ""
    return kind, state.hidden, odd, *programs.own(state)


def _portion(lanes: Work, portion: str, theme: str) -> Response:
    if theme not in THEMES:
        raise ValueError(f"theme must be one of {', '.join(THEMES)}, but it is {theme[:20]!r}")
    state = from_query(request.query_string.decode())
    answer = lanes.do(
        program(portion, state),
        lambda: wire.encoded(gallery.PORTIONS[portion](state, THEMES[theme])),
        key=(portion, theme, state),
        client=_client(),
    )
    return Response(answer, mimetype="application/json")


def _client() -> tuple[str, str]:
    """Whose turn this is: an address, and a page open there, which says a word of its own."""
    return request.remote_addr or "", request.headers.get("X-Visitor", "")[:40]


def _download(kind: str) -> Response:
    state = from_query(request.query_string.decode())
    text, mime = (
        (state.to_json(), "application/json")
        if kind == "json"
        else (recipe.python(state), "text/x-python")
    )
    return Response(
        text,
        mimetype=mime,
        headers={"Content-Disposition": f'attachment; filename="whorl-state.{kind}"'},
    )


def _upload(lanes: Work, theme: str) -> Response:
    given = request.files.get("file")
    if given is None or theme not in THEMES:
        raise ValueError("the upload must hold one file, but it holds none")
    # What was sent lies on the disk until its turn comes.
    answer = lanes.do(
        FILE,
        lambda: tables.look(given.filename or "", given.read(), THEMES[theme]),
        client=_client(),
    )
    if isinstance(answer, State):
        return jsonify(address=answer.to_query())
    return Response(wire.encoded(answer), mimetype="application/json")


def warm(lanes: Work, *, alone: bool = False) -> threading.Thread:
    """Compile what the page needs.

    Where it is `alone` in its process, also other widths, the graph and the families of every
    depth, in the background.
    """
    opening = PRESETS[0].state
    needed = [
        (preset.state, portion) for portion in ("paths", "picture", "instant") for preset in PRESETS
    ] + [(opening, "family")]
    others = [replace(opening, width=width) for width in (4, 5, 6, 2)]
    rest = [
        (state, portion)
        for state in (*others, replace(opening, system="graph"))
        for portion in ("paths", "instant")
    ] + [
        (replace(opening, depth=depth, policy=policy, gate=gate), "family")
        for gate in ("curvature", "always")
        for policy in ("adaptive", "step_matched")
        for depth in (4, 3, 2, 6, 1, 5)
        if depth <= MAX_DEPTH
    ]
    wanted = needed + (rest if alone else [])
    # Each preset is computed once even where its program is warm already: the library keeps small
    # programs of its own.
    jobs = [
        (
            portion,
            ("preset", number) if number < len(needed) else program(portion, state),
            functools.partial(_warmed, lanes, portion, state),
        )
        for number, (state, portion) in enumerate(wanted)
    ]
    return lanes.warm(jobs, len(needed), alone=alone)


def _warmed(lanes: Work, portion: str, state: State) -> None:
    gallery.PORTIONS[portion](state)
    lanes.mark(program(portion, state))


class Server:
    """The page on a port, in a thread of its own."""

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        trusted: Sequence[str] = (),
        alone: bool = False,
    ) -> None:
        self.app: Flask = application(trusted=trusted)
        self._server = Listening(host, port, self.app)
        shown = f"[{host}]" if ":" in host else host
        self.address: str = f"http://{shown}:{self._server.port}/"
        self._alone = alone
        self._thread: threading.Thread | None = None

    def start(self) -> "Server":
        """Serve and warm up in the background."""
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="whorl-explorer", daemon=True
        )
        self._thread.start()
        warm(self.app.extensions["whorl"], alone=self._alone)
        return self

    def wait(self) -> None:
        """Serve until interrupted."""
        while self._thread is not None and self._thread.is_alive():
            self._thread.join(1.0)

    def stop(self) -> None:
        """Begin nothing more, finish what is being computed, and let go of the port."""
        self.app.extensions["whorl"].close()
        self._server.shutdown()
        self._server.server_close()
