"""From a state to its figures, in the portions that the page asks for.

The paths, the rest of the run, the moment, the family.
"""

from collections.abc import Callable
from typing import Any

import plotly.graph_objects as go

from whorl.explorer import compute, cycle, held, many, moment, style, views, wires
from whorl.explorer.state import State
from whorl.explorer.style import Theme

Portion = dict[str, Any]
SUBJECTS: dict[str, Callable[[State], Any]] = {
    "run": compute.run,
    "orbit": cycle.orbit,
    "instant": moment.moment,
    "family": many.many,
    "wires": wires.wires,
    "held": held.held,
}


def _drawn(state: State, portion: str, theme: Theme) -> dict[str, go.Figure]:
    """The views of a portion, by their places."""
    found: dict[str, go.Figure] = {}
    for view in views.of(state.system, portion):
        seen = SUBJECTS[view.subject](state)
        at = seen.moment(state.frame) if hasattr(seen, "moment") else state.frame
        try:
            drawn = view.factory(seen, at, theme)
            if drawn is not None:  # what has nothing to show has no place
                found[view.place] = drawn
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
    run = SUBJECTS[views.subjects(state.system)[0]](state)
    titles = {view.place: view.label for view in views.of(state.system)}
    portions = {view.place: view.portion for view in views.of(state.system)}
    drawn = _drawn(state, "paths", theme)
    return {
        "figures": drawn,
        "titles": titles,
        "portions": portions,
        "made": run.made,
        "clock": run.clock,
        "note": run.note,
    }


def picture(state: State, theme: Theme = style.LIGHT) -> Portion:
    """What else moves along the run."""
    return {"figures": _drawn(state, "picture", theme)}


def instant(state: State, theme: Theme = style.LIGHT) -> Portion:
    """What belongs to the moment alone: the map of Q, and two verdicts in words."""
    subject = views.subjects(state.system)[0]
    seen = SUBJECTS["instant" if subject == "run" else subject](state)
    verdicts, colour = seen.said(state.frame)
    return {
        "figures": _drawn(state, "instant", theme),
        "verdicts": verdicts,
        "colour": colour,
    }


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
    places = [view.place for view in views.of(state.system)]
    return {place: found[place] for place in places if place in found}
