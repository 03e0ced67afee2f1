"""From a state to its figures, in the portions that the page asks for.

The paths, the rest of the run, the moment, the family.
"""

from typing import Any

import plotly.graph_objects as go

from whorl.explorer import compute, cycle, many, moment, style
from whorl.explorer.state import State
from whorl.explorer.style import Theme
from whorl.explorer.views import cycle as cycle_view
from whorl.explorer.views import heat, ledger, loss, network, simplex, spiral
from whorl.explorer.views import many as many_view

VIEWS = ("network", "simplex", "spiral", "heat", "loss", "ledger", "many")
TITLES = {
    "network": "Network",
    "simplex": "Output simplex",
    "spiral": "Residual plane",
    "heat": "Would a turn help?",
    "loss": "Loss over updates",
    "ledger": "Ledger of the gap",
    "many": "300 networks",
}
CYCLE_TITLES = {
    "network": "One column, three shares",
    "simplex": "Orbit on the simplex",
    "spiral": "Orbit around the centre",
    "heat": "What the motion keeps",
    "loss": "Shares over time",
    "ledger": "Circulation",
    "many": "300 networks",
}
Portion = dict[str, Any]


def paths(state: State, theme: Theme = style.LIGHT) -> Portion:
    """Both paths, which the eye follows first, with what the page has to know of the run.

    Figures carry all moments.
    """
    if state.system == "rps":
        orbit = cycle.orbit(state)
        drawn = cycle_view.paths(orbit, orbit.moment(state.frame), theme)
        return {"figures": drawn, "titles": CYCLE_TITLES, "made": orbit.made, "note": orbit.note}
    run = compute.run(state)
    at = run.moment(state.frame)
    drawn = {"simplex": simplex.figure(run, at, theme), "spiral": spiral.figure(run, at, theme)}
    return {"figures": drawn, "titles": TITLES, "made": run.made, "note": run.note}


def picture(state: State, theme: Theme = style.LIGHT) -> Portion:
    """What else moves along the run."""
    if state.system == "rps":
        orbit = cycle.orbit(state)
        return {"figures": cycle_view.others(orbit, orbit.moment(state.frame), theme)}
    run = compute.run(state)
    at = run.moment(state.frame)
    drawn = {
        "network": network.figure(run.layers, run.flows, run.target, at, theme),
        "loss": loss.figure(run, at, theme),
        "ledger": ledger.figure(run, at, theme),
    }
    return {"figures": drawn}


def instant(state: State, theme: Theme = style.LIGHT) -> Portion:
    """What belongs to the moment alone: the map of Q, and two verdicts in words."""
    if state.system == "rps":
        orbit = cycle.orbit(state)
        return {
            "figures": {},
            "verdicts": [
                orbit.verdict,
                "Mass is conserved, the orbit is closed, and no loss falls along it.",
            ],
        }
    run, seen = compute.run(state), moment.moment(state)
    foot = (
        f"Q with column {seen.number + 1} of the last layer anywhere"
        if state.system == "family"
        else "Q with the column anywhere"
    )
    drawn = heat.figure(seen, run.layers[-1][:, :, seen.number], foot, theme)
    said = [seen.certificate, seen.curvature]
    return {"figures": {"heat": drawn}, "verdicts": said, "colour": seen.colour}


def family(state: State, theme: Theme = style.LIGHT) -> Portion:
    """What three hundred networks do."""
    seen = many.many(state)
    return {
        "figures": {
            "many": many_view.figure(seen, min(state.frame, max(seen.gaps.shape[1] - 1, 0)), theme)
        }
    }


def figures(state: State, theme: Theme = style.LIGHT) -> dict[str, go.Figure]:
    """All views of a state, by name."""
    portions = [
        paths(state, theme),
        picture(state, theme),
        instant(state, theme),
        family(state, theme),
    ]
    found = {name: drawn for portion in portions for name, drawn in portion["figures"].items()}
    return {name: found[name] for name in VIEWS if name in found}
