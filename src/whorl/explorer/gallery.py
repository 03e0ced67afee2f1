"""From a state to its figures, in the portions that the page asks for, one after the other."""

import json
from collections.abc import Callable
from typing import Any

import plotly.graph_objects as go
from plotly.utils import PlotlyJSONEncoder

from whorl.explorer import compute, cycle, held, many, moment, presets, style, views, wires
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


def drawn(state: State, portion: str, theme: Theme) -> dict[str, go.Figure]:
    """The views of a portion, by their places; a view with nothing to show is left out."""
    found: dict[str, go.Figure] = {}
    for view in views.of(state.system, portion):
        seen = SUBJECTS[view.subject](state)
        try:
            figure = view.factory(seen, seen.moment(state.frame), theme)
            if not isinstance(figure, go.Figure | None):
                raise TypeError("it must return a Plotly figure")
        except Exception as wrong:
            if view.source.startswith("whorl."):
                raise
            # Whatever a view of another package raises, the others are drawn.
            why = f"The view {view.name} of {view.source} cannot be drawn: {wrong}"
            figure = style.message(" ".join(why.split())[:200], theme)
        if figure is not None:
            found[view.place] = figure
    return found


def paths(state: State, theme: Theme = style.LIGHT) -> Portion:
    """Both paths, which the eye follows first, and what the page has to know of the run."""
    run = SUBJECTS[views.subjects(state.system)[0]](state)
    here = views.of(state.system)
    return {
        "figures": drawn(state, "paths", theme),
        "titles": {view.place: view.label for view in here},
        "portions": {view.place: view.portion for view in here},
        "made": run.made,
        "clock": run.clock,
        "note": run.note,
        "finding": presets.found(state, run),
    }


def picture(state: State, theme: Theme = style.LIGHT) -> Portion:
    """What else moves along the run."""
    return {"figures": drawn(state, "picture", theme)}


def instant(state: State, theme: Theme = style.LIGHT) -> Portion:
    """What belongs to the moment alone: the map of Q, and two verdicts in words."""
    subject = views.subjects(state.system)[0]
    seen = SUBJECTS["instant" if subject == "run" else subject](state)
    verdicts, colour = seen.said(state.frame)
    return {
        "figures": drawn(state, "instant", theme),
        "verdicts": verdicts,
        "colour": colour,
    }


def family(state: State, theme: Theme = style.LIGHT) -> Portion:
    """What three hundred networks do."""
    return {"figures": drawn(state, "family", theme)}


PORTIONS: dict[str, Callable[..., Portion]] = {
    "paths": paths,
    "picture": picture,
    "instant": instant,
    "family": family,
}


def encoded(portion: str, state: State, theme: Theme) -> str:
    """A portion as JSON, in which arrays are bytes."""
    answer = PORTIONS[portion](state, theme)
    plain = {place: figure.to_dict() for place, figure in answer["figures"].items()}
    return json.dumps(answer | {"figures": plain}, cls=PlotlyJSONEncoder)


def figures(state: State, theme: Theme = style.LIGHT) -> dict[str, go.Figure]:
    """All views of a state, by name, in the order of the page."""
    found: dict[str, go.Figure] = {}
    for portion in PORTIONS.values():
        found |= portion(state, theme)["figures"]
    places = [view.place for view in views.of(state.system)]
    return {place: found[place] for place in places if place in found}
