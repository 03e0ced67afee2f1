"""The views: one file each, whose pure function makes a Plotly figure and says where it belongs.

A view is found by its file in this folder, or by an entry point in the group `whorl.views` of
another package; nothing else names it. It looks at one of six subjects, and is given that subject,
the moment and the theme.

| subject | what it is | where there is one |
|---|---|---|
| `run` | `compute.Played`: both learners, update by update | random network, one column |
| `orbit` | `cycle.Orbit`: the column's orbit | rock, paper, scissors |
| `instant` | `moment.Moment`: what is computed at the moment alone | as `run` |
| `wires` | `wires.Wires`: a circuit under a rule | circuit |
| `held` | `held.Held`: a response that stands still | held network |
| `family` | `many.Many`: three hundred networks | everywhere |
"""

from dataclasses import dataclass

from whorl.fields import choice
from whorl.registry import Entry, Registry

SUBJECTS = ("run", "orbit", "instant", "family", "wires", "held")
# What there is to look at in a system that does not learn update by update.
ELSEWHERE = {"rps": ("orbit",), "circuit": ("wires",), "held": ("held",)}


@dataclass(frozen=True)
class View(Entry):
    """What the page knows of a view."""

    order: int = 100  # its place on the page; views of one place share it
    subject: str = "run"
    first: bool = False  # whether it is drawn before the others of its subject
    place: str = ""  # the place on the page, if not one of its own

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "place", self.place or self.name)
        choice(f"the subject of view {self.name!r}", self.subject, SUBJECTS)

    @property
    def portion(self) -> str:
        """The portion of an answer that it comes in."""
        if self.subject in ("instant", "family"):
            return self.subject
        return "paths" if self.first else "picture"


views: Registry[View] = Registry("view", "whorl.views", View, where=("explorer",), home=__name__)


def listed() -> list[View]:
    """All views in the order of the page."""
    return sorted(views, key=lambda view: view.order)


def of(system: str, portion: str = "") -> list[View]:
    """The views of a portion, or all, for one kind of system."""
    here = subjects(system)
    return [one for one in listed() if one.subject in here and portion in ("", one.portion)]


def subjects(system: str) -> tuple[str, ...]:
    """What there is to look at; the first of them has the moments."""
    return ELSEWHERE.get(system, ("run", "instant", "family"))
