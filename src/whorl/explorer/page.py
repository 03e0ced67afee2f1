"""The page itself, as HTML.

A native form made from the settings, the presets, and empty places for the views.

Everything that is written into it is a constant of this package or passes through `escape`. The
address is checked here once, so that a broken one is answered by a sentence and the opening state.
"""

import functools
from html import escape
from importlib import resources
from string import Template
from typing import Any

from whorl.explorer import views
from whorl.explorer.presets import PRESETS, Preset
from whorl.explorer.state import (
    DEFAULTS,
    KINDS,
    SAMPLES,
    Choice,
    Kind,
    Parts,
    State,
    brought,
    from_query,
)
from whorl.registry import Entry, Registry, laws, policies

GROUPS = (
    ("System", ("system", "depth", "width", "imbalance", "floor", "seed", "start", "target"), ()),
    ("Feedback", ("law", "leak", "alpha", "omega"), (laws,)),
    ("Learning", ("policy", "gate", "turn", "scale", "epochs", "shown", "sample"), (policies,)),
)


def html(query: str) -> str:
    """The page for an address."""
    try:
        state, refusal = (from_query(query) if query else PRESETS[0].state), ""
    except ValueError as broken:
        state, refusal = State(), str(broken)
    return _template().substitute(
        presets="".join(_preset(preset) for preset in PRESETS),
        stories="".join(_story(preset) for preset in PRESETS),
        controls="".join(_group(*group, state) for group in GROUPS),
        views="".join(_view(place, title) for place, title in _places().items()),
        address=escape(state.to_query()),
        refusal=escape(refusal),
        updates=state.updates,
        frame=state.frame,
        samples=SAMPLES,
        back=_icon("M4 3h2.5v10H4zM13 3v10L7 8z"),
        play=_icon("M4 2.5v11l9-5.5z", "start")
        + _icon("M3.500 3h3v10h-3zM9.500 3h3v10h-3z", "pause"),
        ahead=_icon("M9.500 3H12v10H9.500zM3 3v10l6-5z"),
    )


@functools.cache
def _template() -> Template:
    return Template(
        (resources.files("whorl.explorer") / "assets" / "page.html").read_text(encoding="utf-8")
    )


def _icon(path: str, name: str = "") -> str:
    shape = f'<path d="{path}" fill="currentColor"/>'
    return f'<svg class="{name}" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" focusable="false">{shape}</svg>'


def _preset(preset: Preset) -> str:
    where = f'data-preset="{preset.name}" data-address="{escape(preset.state.to_query())}"'
    return f'<button type="button" class="preset" {where} aria-pressed="false">{escape(preset.title)}</button>'


def _story(preset: Preset) -> str:
    return f'<div class="story" data-story="{preset.name}" hidden><p>{escape(preset.story)}</p><p class="equation">{preset.equation}</p></div>'


def _group(
    name: str, fields: tuple[str, ...], bringing: tuple[Registry[Entry], ...], state: State
) -> str:
    rows = "".join(_control(one, KINDS[one], state.settings[one], DEFAULTS[one]) for one in fields)
    rows += "".join(
        _control(one, kind, state.settings.get(one, default), default)
        for one, (kind, default) in brought(*bringing).items()
    )
    return f"<fieldset><legend>{escape(name)}</legend>{rows}</fieldset>"


def _control(name: str, kind: Kind, given: Any, usual: Any) -> str:
    value, default = kind.write(given), kind.write(usual)
    tip = f' title="{escape(kind.note)}"' if kind.note else ""
    common = f'id="c-{name}" name="{name}" data-default="{default}"'
    if isinstance(kind, Choice):
        options = "".join(
            f'<option value="{word}" data-uses="{_uses(kind, word)}"{" selected" * (word == value)}>'
            f"{escape(label)}</option>"
            for word, label in kind.words
        )
        body = f"<select {common}>{options}</select>"
    elif isinstance(kind, Parts):
        body = f'<input type="text" inputmode="decimal" autocomplete="off" spellcheck="false" {common} value="{value}">'
    else:
        step = getattr(kind, "step", 1)
        limits = f'min="{kind.low:g}" max="{kind.high:g}" step="{step:g}"'
        if kind.high > 1000:
            body = f'<input type="number" {common} {limits} value="{value}">'
        else:
            return (
                f'<label class="control slider" data-control="{name}"{tip}><span '
                f'class="name">{escape(kind.label)}</span>'
                f'<input type="range" {common} {limits} '
                f'value="{value}"><output>{value}</output></label>'
            )
    return f'<label class="control" data-control="{name}"{tip}><span class="name">{escape(kind.label)}</span>{body}</label>'


def _uses(kind: Choice, word: str) -> str:
    """The settings that an entry has a say for; a turn acts through the leaky law."""
    entry = kind.among.get(word) if isinstance(kind.among, Registry) else None
    leak = ["leak"] if word == "rotational" else []
    return " ".join([*(entry.defaults if entry else ()), *leak])


def _places() -> dict[str, str]:
    """The places of the views in their order, each with the title that it has at first."""
    titles = {view.place: view.label for rps in (True, False) for view in views.of(rps)}
    return {view.place: titles[view.place] for view in views.listed()}


def _view(name: str, title: str) -> str:
    buttons = "".join(
        f'<button type="button" class="save" data-save="{form}" aria-label="Save the view {name} '
        f'as {form.upper()}">{form.upper()}</button>'
        for form in ("svg", "png")
    )
    head = f'<header><h2 id="title-{name}">{escape(title)}</h2><span class="saves">{buttons}</span></header>'
    plot = f'<div class="plot" id="plot-{name}" role="img" aria-labelledby="title-{name}"></div>'
    return f'<section class="view" id="view-{name}" data-view="{name}" aria-labelledby="title-{name}">{head}{plot}</section>'
