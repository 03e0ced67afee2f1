"""The page itself, as HTML.

A native form made from the settings, the presets, and empty places for the views.

The address is checked here once, so that a broken one is answered by a sentence and the opening
state.
"""

from typing import Any

from whorl import _html
from whorl.explorer.gallery import TITLES, VIEWS
from whorl.explorer.presets import PRESETS
from whorl.explorer.state import KINDS, SAMPLES, Choice, Parts, State, from_query

GROUPS = (
    ("System", ("system", "depth", "width", "imbalance", "floor", "seed", "start", "target")),
    ("Feedback", ("law", "leak", "alpha", "omega")),
    ("Learning", ("policy", "gate", "turn", "scale", "epochs", "shown", "sample")),
)


def html(query: str) -> str:
    """The page for an address."""
    try:
        state, refusal = (from_query(query) if query else PRESETS[0].state), ""
    except ValueError as broken:
        state, refusal = State(), str(broken)
    return (
        _html.templates("whorl.explorer", "assets")
        .get_template("page.html.j2")
        .render(
            presets=PRESETS,
            groups=[(name, [_control(one, state) for one in fields]) for name, fields in GROUPS],
            views={name: TITLES[name] for name in VIEWS},
            state=state,
            refusal=refusal,
            samples=SAMPLES,
        )
    )


def _control(name: str, state: State) -> dict[str, Any]:
    """One setting: what it is, its value, and the form in which it is asked for."""
    kind = KINDS[name]
    if isinstance(kind, Choice):
        form = "select"
    elif isinstance(kind, Parts):
        form = "text"
    else:
        form = "number" if kind.high > 1000 else "range"
    return {
        "name": name,
        "kind": kind,
        "value": kind.write(getattr(state, name)),
        "default": kind.write(getattr(State(), name)),
        "step": getattr(kind, "step", 1),
        "form": form,
    }
