"""The network as streams: nodes as tall as their flow, streams as wide as what they carry.

All the flow that enters leaves, so that every layer is equally tall in all. The outlined boxes at
the end are the target.
"""

from typing import Any

import numpy as np
import plotly.graph_objects as go

from whorl.explorer import style
from whorl.explorer.compute import Played
from whorl.explorer.style import Theme
from whorl.explorer.system import looped
from whorl.explorer.views import views

Polygons = tuple[list[Any], list[Any]]  # across and up, one after the other with gaps between
GAP = 0.14  # between nodes, in units of the whole flow
HALF = 0.045  # half the thickness of a node
THINNEST = 5e-4  # a stream that no screen can show is left out
BEND = np.linspace(0, 1, 12)
MARGIN = {"l": 10, "r": 10, "t": 24, "b": 26}
WIDEST, WIDE = 14.0, 46.0  # of a graph's edge that carries most, and of a sink that takes all


@views.register("network", label="Network", order=1)
def figure(run: Played, moment: int, theme: Theme) -> go.Figure:
    """The guided learner at one moment."""
    if run.looped:
        return loops(run, moment, theme)
    return streams(run.layers, run.flows, run.target, moment, theme)


def loops(run: Played, moment: int, theme: Theme) -> go.Figure:
    """A graph at one moment: every edge as wide as the flow of the watched sample along it.

    The ring lies in the middle, the sources left of it and the sinks, with the target as rings,
    right of it.
    """
    graph = looped(run.state)
    ring = run.state.hidden
    turn = np.linspace(0.5, 2.5, ring, endpoint=False) * np.pi
    across = np.concatenate([[-1.0] * 3, 0.55 * np.cos(turn), [1.0] * 3])
    up = np.concatenate([[0.8, 0.0, -0.8], np.sin(turn), [0.8, 0.0, -0.8]])
    # An edge that carries nothing is a thin line all the same.
    widths = 1 + WIDEST * np.sqrt(run.flows[1] / run.flows[1].max())
    traces, arrows = [], []
    for number, (tail, head) in enumerate(graph.wiring.ends.T):
        x, y, angle = bow(across[[tail, head]], up[[tail, head]])
        arrows.append((x[7], y[7], angle))
        inside = max(tail, head) < 3 + ring and tail >= 3
        colour, width = theme.turning if inside else theme.native, float(widths[moment, number])
        meta = {"as": {"line.width": style.packed(widths[:, number])}}
        traces.append(style.line(colour, width, x=x, y=y, opacity=0.6, meta=meta))
    x, y, angle = map(list, zip(*arrows, strict=True))
    heads = {"symbol": "triangle-right", "angle": angle}
    traces.append(style.dots(theme.ink, 9, x=x, y=y, marker=heads))
    traces.append(style.dots(theme.ink, 16, x=across, y=up))
    traces += _sinks(run, across[-3:] + 0.2, up[-3:], moment, theme)
    notes = [_label("input", -1, 1, theme), _label("output", 1, 1, theme)]
    notes.append(_label("target", 1.2, 0, theme, color=theme.turning))
    still = {"visible": False, "fixedrange": True}
    return style.figure(
        traces,
        theme,
        xaxis=still | {"range": [-1.2, 1.42]},
        yaxis=still | {"range": [-1.15, 1.15]},
        margin=MARGIN,
        annotations=notes,
    )


def _sinks(
    run: Played, across: np.ndarray, up: np.ndarray, moment: int, theme: Theme
) -> list[dict[str, Any]]:
    """Areas as shares: the outlined target, and inside it what arrives."""
    ring = {"symbol": "circle-open", "line": {"width": 2}}
    aims = WIDE * np.sqrt(run.target)
    traces = [style.dots(theme.turning, aims, x=across, y=up, marker=ring)]
    for sink in range(3):
        sizes = WIDE * np.sqrt(run.learner[:, sink])
        meta = {"as": {"marker.size": style.packed(sizes)}}
        size, x, y = float(sizes[moment]), [across[sink]], [up[sink]]
        traces.append(style.dots(theme.ink, size, x=x, y=y, meta=meta))
    return traces


def bow(x: np.ndarray, y: np.ndarray, bend: float = 0.5) -> tuple[np.ndarray, np.ndarray, float]:
    """An edge bent to its left, so that there and back lie apart, and the angle of its arrow."""
    (dx, dy), lift = (x[1] - x[0], y[1] - y[0]), bend * BEND * (1 - BEND)
    angle = -np.degrees(np.arctan2(dy, dx))
    return x[0] + BEND * dx - lift * dy, y[0] + BEND * dy + lift * dx, float(angle)


def streams(
    layers: list[np.ndarray],
    flows: list[np.ndarray],
    target: np.ndarray | None,
    moment: int,
    theme: Theme,
) -> go.Figure:
    """The network at one moment; the arrays have all moments along their first axis."""
    sources = max(layer.shape[2] for layer in layers)
    wide, nodes = shapes(
        [layer[moment] for layer in layers], [flow[moment] for flow in flows], sources
    )
    moving = {
        "numbers": style.packed(
            np.concatenate([array.reshape(len(array), -1) for array in (*flows, *layers)], axis=1)
        ),
        "widths": [flow.shape[1] for flow in flows],
        "gap": GAP,
        "half": HALF,
        "sources": sources,
    }
    traces = [
        _area(x, y, theme.streams[number], opacity=0.5, meta={"stream": number})
        for number, (x, y) in enumerate(wide)
    ]
    traces.append(_area(*nodes, theme.ink, meta={"nodes": moving}))
    notes = _labels(layers, theme)
    if target is not None:
        x, y = _boxes(len(layers) + 0.17, target)
        traces.append(style.line(theme.turning, 2, x=np.array(x), y=np.array(y)))
        notes.append(_label("target", len(layers) + 0.17, 0, theme, color=theme.turning))
    tallest = 1 + GAP * (max(layer.shape[1] for layer in layers) - 1)
    still = {"visible": False, "fixedrange": True}
    return style.figure(
        traces,
        theme,
        xaxis=still | {"range": [-0.22, len(layers) + 0.42]},
        yaxis=still | {"range": [-tallest / 2 - 0.04, tallest / 2 + 0.04]},
        margin=MARGIN,
        annotations=notes,
    )


def _area(x: list[Any], y: list[Any], colour: str, **more: Any) -> dict[str, Any]:
    fill = {"fill": "toself", "fillcolor": colour}
    return style.line(colour, 0, x=np.array(x), y=np.array(y), **fill, **more)


def shapes(
    layers: list[np.ndarray], flows: list[np.ndarray], sources: int
) -> tuple[list[Polygons], Polygons]:
    """Polygons of the streams of every source, and of all nodes; the page's script draws the same."""
    streams: list[Polygons] = [([], []) for _ in range(sources)]
    nodes: Polygons = ([], [])
    for number, flow in enumerate(flows):
        x, y = _boxes(number, flow)
        nodes[0].extend(x)
        nodes[1].extend(y)
    for number, (layer, flow) in enumerate(zip(layers, flows, strict=False)):
        leaving, arriving = _tops(flow), _tops(flows[number + 1])
        for column in range(layer.shape[1]):
            for row in range(layer.shape[0]):
                width = layer[row, column] * flow[column]
                if width > THINNEST:
                    x, y = _stream(number, leaving[column], arriving[row], width)
                    streams[column][0].extend(x)
                    streams[column][1].extend(y)
                leaving[column] -= width
                arriving[row] -= width
    return streams, nodes


def _stream(number: int, start: float, end: float, width: float) -> tuple[list, list]:
    """One stream from layer `number` to the next, its upper edge from `start` to `end`."""
    along = number + HALF + (1 - 2 * HALF) * BEND
    upper = start + (end - start) * BEND**2 * (3 - 2 * BEND)
    return [*along, *along[::-1], np.nan], [*upper, *(upper - width)[::-1], np.nan]


def _tops(flow: np.ndarray) -> np.ndarray:
    """The upper ends of the nodes of a layer, the first node on top, the layer centred."""
    whole = 1 + GAP * (len(flow) - 1)
    return whole / 2 - np.concatenate([[0.0], np.cumsum(flow[:-1] + GAP)])


def _boxes(at: float, flow: np.ndarray) -> tuple[list, list]:
    x, y = [], []
    for top, height in zip(_tops(flow), flow, strict=True):
        x += [at - HALF, at + HALF, at + HALF, at - HALF, at - HALF, np.nan]
        y += [top, top, top - height, top - height, top, np.nan]
    return x, y


def _labels(layers: list[np.ndarray], theme: Theme) -> list[dict]:
    ends = [_label("input", 0, 1, theme), _label("output", len(layers), 1, theme)]
    return ends[: 1 if layers[0].shape[2] == 1 else 2]


def _label(text: str, x: float, y: float, theme: Theme, color: str = "") -> dict:
    plain = {"text": text, "x": x, "y": y, "xref": "x", "yref": "paper", "showarrow": False}
    plain |= {
        "yanchor": "bottom" if y else "top",
        "font": {"size": 12, "color": color or theme.soft},
    }
    side, shift = ("left", -12) if text == "input" else ("right", 16)
    return plain | {"xanchor": side, "xshift": shift}
