"""`whorl explore`: the interactive page."""

import argparse
import errno
from typing import Any

from whorl_cli import _output

STORY = """Open the interactive page: the network, the output simplex, the residual's spiral, the curvature map, losses, ledger, live.

The page is for this machine alone unless --host says otherwise; then --trust names each host name or address under which visitors reach it.
Everything it needs is served from here: it works without a network."""


def add(commands: Any) -> None:
    """Put the arguments on the parser."""
    parser = _output.command(commands, "explore", call, "the interactive page", STORY)
    parser.add_argument(
        "address",
        nargs="?",
        default="",
        help="what to show: a link copied from the page, or the part of it after the ?",
    )
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        help="address to listen at (default: %(default)s, this machine alone)",
    )
    parser.add_argument(
        "--port",
        type=int,
        default=8642,
        help="port to listen at, 0 for any free one (default: %(default)s)",
    )
    parser.add_argument(
        "--trust",
        action="append",
        default=[],
        metavar="HOST",
        help="host name under which visitors may come; can be repeated",
    )
    parser.add_argument("--no-browser", action="store_true", help="do not open a browser")
    parser.add_argument(
        "--cache",
        metavar="DIR",
        help="keep compiled programs here, so that the next start is quick",
    )


def call(args: argparse.Namespace) -> int:
    """Serve until interrupted."""
    from whorl.fields import Field

    Field("--port", low=0, high=65535, type="whole").check(args.port)
    if args.host not in ("127.0.0.1", "localhost", "::1") and not args.trust:
        raise ValueError(
            "--trust must name a host under which visitors may come where --host is not this "
            f"machine, but --host is {args.host}"
        )
    import webbrowser

    import jax

    jax.config.update("jax_enable_x64", True)
    if args.cache:
        jax.config.update("jax_compilation_cache_dir", args.cache)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)
    from whorl.explorer.server import Server
    from whorl.explorer.state import from_query

    state = from_query(args.address.rpartition("?")[2])
    try:
        server = Server(args.host, args.port, trusted=args.trust, alone=True)
    except OSError as taken:
        if taken.errno != errno.EADDRINUSE:
            raise
        raise ValueError(
            f"--port must be free, but something listens at port {args.port} already; --port 0 "
            "takes any free one"
        ) from taken
    server.start()
    query = state.to_query()
    address = server.address + (f"?{query}" if query else "")
    if args.json:
        _output.say({"address": address})
    else:
        print(f"whorl explorer at {address}  (Ctrl-C ends it)", flush=True)  # noqa: T201
    if not args.no_browser:
        webbrowser.open(address)
    # Ctrl-C ends it, and the process: nothing is stored that would have to be put away
    server.wait()
    return 0
