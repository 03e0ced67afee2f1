"""From a state to its figures, in the portions that the page asks for.

The paths, the rest of the run, the moment, the family.
"""

from collections.abc import Callable
from typing import Any

import plotly.graph_objects as go

from whorl.explorer import compute, cycle, many, moment, style, views
from whorl.explorer.state import State
from whorl.explorer.style import Theme

Portion = dict[str, Any]
SUBJECTS: dict[str, Callable[[State], Any]] = {
    "run": compute.run,
    "orbit": cycle.orbit,
    "instant": moment.moment,
    "family": many.many,
}


def _drawn(state: State, portion: str, theme: Theme) -> dict[str, go.Figure]:
    """The views of a portion, by their places."""
    found: dict[str, go.Figure] = {}
    for view in views.of(state.system == "rps", portion):
        seen = SUBJECTS[view.subject](state)
        at = seen.moment(state.frame) if hasattr(seen, "moment") else state.frame
        try:
            found[view.place] = view.factory(seen, at, theme)
        except Exception as wrong:
            if view.source.startswith("whorl."):
                raise
            # Whatever a stranger's view raises, the others are drawn.
            why = f"The view {view.name} of {view.source} cannot be drawn: {wrong}"
            found[view.place] = style.message(" ".join(why.split())[:200], theme)
    return found


def paths(state: State, theme: Theme = style.LIGHT) -> Portion:
    """Both paths, which the eye follows first, with what the page has to know of the run.

    Figures carry all moments.
    """
    cycles = state.system == "rps"
    run = cycle.orbit(state) if cycles else compute.run(state)
    titles = {view.place: view.label for view in views.of(cycles)}
    drawn = _drawn(state, "paths", theme)
    return {"figures": drawn, "titles": titles, "made": run.made, "note": run.note}


def picture(state: State, theme: Theme = style.LIGHT) -> Portion:
    """What else moves along the run."""
    return {"figures": _drawn(state, "picture", theme)}


def instant(state: State, theme: Theme = style.LIGHT) -> Portion:
    """What belongs to the moment alone: the map of Q, and two verdicts in words."""
    if state.system == "rps":
        known = "Mass is conserved, the orbit is closed, and no loss falls along it."
        told: Portion = {"verdicts": [cycle.orbit(state).verdict, known]}
    else:
        seen = moment.moment(state)
        told = {"verdicts": [seen.certificate, seen.curvature], "colour": seen.colour}
    return {"figures": _drawn(state, "instant", theme), **told}


def family(state: State, theme: Theme = style.LIGHT) -> Portion:
    """What three hundred networks do."""
    return {"figures": _drawn(state, "family", theme)}


PORTIONS: dict[str, Callable[..., Portion]] = {
    "paths": paths,
    "picture": picture,
    "instant": instant,
    "family": family,
}


def figures(state: State, theme: Theme = style.LIGHT) -> dict[str, go.Figure]:
    """All views of a state, by name."""
    found: dict[str, go.Figure] = {}
    for portion in PORTIONS.values():
        found |= portion(state, theme)["figures"]
    return {view.place: found[view.place] for view in views.of(state.system == "rps")}
