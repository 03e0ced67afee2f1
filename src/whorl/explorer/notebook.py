"""The explorer as an object: it shows itself in a notebook, and hands out its figures."""

import threading
from html import escape
from typing import Any

import plotly.graph_objects as go

from whorl.explorer import gallery, recipe
from whorl.explorer.server import Server
from whorl.explorer.state import State, from_query
from whorl.explorer.style import THEMES


class Explorer:
    """A page that shows a state, in place as the last line of a notebook's cell.

    The server starts when it is first needed, on a free port of this machine and for this machine
    only. `figures()` are the same pictures without a page.

    Args:
        state: What is shown.
        height: Of the page in a notebook, in pixels.
        **settings: The settings of `State` by name, where no state is given.

    Raises:
        ValueError: If a setting is not within its limits.

    Examples:
        >>> from whorl.explorer import Explorer
        >>> Explorer(depth=4, omega=2.0).state.depth
        4
    """

    def __init__(self, state: State | None = None, *, height: int = 900, **settings: Any) -> None:
        self.state: State = state if state is not None else State(**settings)
        self.height = height
        self._server: Server | None = None

    @classmethod
    def at(cls, address: str) -> "Explorer":
        """The explorer that an address from the page names."""
        return cls(from_query(address.partition("?")[2] if "?" in address else address))

    @property
    def address(self) -> str:
        """Where the page is."""
        if self._server is None:
            self._server = Server().start()
            threading.Thread(target=self._end, name="whorl-end").start()
        return f"{self._server.address}?{self.state.to_query()}"

    def figures(self, theme: str = "light") -> dict[str, go.Figure]:
        """Every view by name."""
        return gallery.figures(self.state, THEMES[theme])

    def python(self) -> str:
        """The script that remakes the state."""
        return recipe.python(self.state)

    def close(self) -> None:
        """Stop the server."""
        if self._server is not None:
            self._server.stop()
            self._server = None

    def _end(self) -> None:
        """Stop with the main thread, before Python frees what a compiler may still need."""
        threading.main_thread().join()
        self.close()

    def _repr_html_(self) -> str:
        return (
            f'<iframe src="{escape(self.address)}" width="100%" height="{self.height}"'
            ' style="border:0" title="whorl explorer"></iframe>'
        )
