"""The page as HTML: a native form made from the settings, the presets, and places for the views.

The address is checked here, so that a broken one is answered by a sentence and the opening state.
"""

from typing import Any

from whorl import _html
from whorl.explorer import views
from whorl.explorer.presets import PRESETS
from whorl.explorer.state import (
    DEFAULTS,
    SAMPLES,
    SETTINGS,
    State,
    brought,
    from_query,
)
from whorl.explorer.system import turns_through
from whorl.fields import LISTS, Field
from whorl.registry import Entry, Registry, laws, policies, rules

GROUPS = (
    ("System", ("system", "depth", "width", "imbalance", "floor", "seed", "start", "target"), ()),
    ("Feedback", ("rule", "law", "leak", "alpha", "omega"), (laws, rules)),
    ("Learning", ("policy", "gate", "turn", "scale", "epochs", "shown", "sample"), (policies,)),
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
            groups=[(group[0], _controls(*group[1:], state)) for group in GROUPS],
            views=_places(),
            portions={view.place: view.portion for view in reversed(views.listed())},
            state=state,
            refusal=refusal,
            samples=SAMPLES,
        )
    )


def _controls(
    fields: tuple[str, ...], bringing: tuple[Registry[Entry], ...], state: State
) -> list[dict[str, Any]]:
    """The settings of a group: ours, and those that entries of other packages bring."""
    ours = [_control(one, SETTINGS[one], state.settings[one], DEFAULTS[one]) for one in fields]
    return ours + [
        _control(one, field, state.settings.get(one, default), default)
        for one, (field, default) in brought(*bringing).items()
    ]


def _control(name: str, one: Field, given: Any, usual: Any) -> dict[str, Any]:
    """One setting: what it is, its value, and the form in which it is asked for."""
    options = []
    if one.type == "choice":
        form, options = "select", [(*word, *_about(one, word[0])) for word in one.options]
    elif one.type in LISTS:
        form = "text"
    else:
        form = "number" if one.high is None or one.high > 1000 else "range"
    return {
        "name": name,
        "field": one,
        "value": one.write(given),
        "default": one.write(usual),
        "form": form,
        "options": options,
    }


def _about(one: Field, word: str) -> tuple[str, str]:
    """What a word of a registry is, and the settings that it affects.

    A law that turns acts through the leaky one.
    """
    if not isinstance(one.among, Registry):
        return "", ""
    entry = one.among.get(word)
    return entry.help.replace("`", ""), " ".join(
        [*entry.defaults, *["leak"] * turns_through(entry)]
    )


def _places() -> dict[str, str]:
    """The places of the views in their order, each with the title that it has at first."""
    systems = (*views.ELSEWHERE, "family")
    titles = {view.place: view.label for one in systems for view in views.of(one)}
    return {view.place: titles[view.place] for view in views.listed()}
