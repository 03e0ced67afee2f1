"""What the page shows, as one frozen value: to and from the address, JSON, and nothing else.

A state is data: numbers inside limits, words from a list, three shares. Whatever comes from an
address passes through `from_query`, and a refusal reads like every other of the library:
*argument* must *rule*, but *value*. The limits also bound what one change can ask for. Laws,
policies, gates and rules are those of the registry, with their numbers; numbers for which the page
has no setting of its own are kept in `more`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any
from urllib.parse import parse_qsl, urlencode

from whorl.feedback import ALPHA, LEAK, OMEGA
from whorl.fields import Field, decimal
from whorl.learning.policy import SCALE
from whorl.registry import Entry, Registry, gates, laws, policies, rules

MAX_DEPTH = 6
MAX_EPOCHS = 30
SAMPLES = 6
NETWORKS = 300
LONGEST = 2000  # letters of an address
Shares = tuple[float, float, float]


def _setting(default: Any, one: Field) -> Any:
    return field(default=default, metadata={"field": one})


def _slid(one: Field, note: str = "") -> Field:
    """A parameter of an entry within the range of its control, as the page asks for it."""
    low, high, step = one.slider or (one.low, one.high, one.step)
    return replace(
        one,
        default=None,
        low=low,
        high=high,
        slider=(low, high, step),
        label=one.label or one.name.capitalize(),
        help=note or one.help,
    )


def _word(label: str, among: Any, note: str = "") -> Field:
    return Field("", type="choice", among=among, where="explorer", label=label, help=note)


def _number(label: str, low: float, high: float, step: float, note: str = "") -> Field:
    kind = "whole" if isinstance(step, int) else "number"
    return Field(
        "", low=low, high=high, type=kind, slider=(low, high, step), label=label, help=note
    )


def _parts(label: str, note: str) -> Field:
    return Field("", type="proportions", label=label, help=note)


SYSTEMS = (
    ("family", "random network"),
    ("graph", "looped graph"),
    ("column", "one column"),
    ("rps", "rock–paper–…"),
    ("circuit", "circuit"),
    ("held", "held network"),
)
TURNS = (
    ("fair", "fair coin"),
    ("plus", "always +"),
    ("minus", "always −"),
    ("alternating", "alternating"),
)
LEARNS = (("all", "all samples"), ("one", "watched only"))
IMBALANCE = "β, how unequal the routes start: columns are softmax(β × normal numbers); 0: all alike"
FLOOR = "f, the share of each column that is spread evenly: p = (1 − f) softmax + f/width"
SEED = "of columns, data, order and fair turns; the same seed gives the same run"
RULE = "how the circuit turns residuals into motion of its conductances"
PARTS = "three positive parts, of which only the proportions count, such as"
STEP = "s: the step is s over the range of the score, so that no share moves by more"


@dataclass(frozen=True)
class State:
    """Everything the page shows. Two equal states make two equal pages.

    Examples:
        >>> from whorl.explorer import State
        >>> State(depth=4).to_query()
        'depth=4'
    """

    system: str = _setting(
        "family",
        _word(
            "System", SYSTEMS, "what learns: ṗ = Q(p)s in every column; a held network stands still"
        ),
    )
    depth: int = _setting(
        3, _number("Depth", 1, MAX_DEPTH, 1, "L, the trainable layers: F = P⁽ᴸ⁾ ⋯ P⁽¹⁾x")
    )
    width: int = _setting(
        3, _number("Width", 2, 6, 1, "nodes of a hidden layer; inputs and outputs are three")
    )
    imbalance: float = _setting(1.0, _number("Imbalance β", 0.0, 10.0, 0.1, IMBALANCE))
    floor: float = _setting(0.1, _number("Floor", 0.0, 0.9, 0.01, FLOOR))
    seed: int = _setting(15, _number("Seed", 0, 9999, 1, SEED))
    start: Shares = _setting(  # noqa: RUF009
        (1.0, 1.0, 8.0), _parts("Start", f"p at the start: {PARTS} 1,1,8")
    )
    target: Shares = _setting((3.0, 4.0, 3.0), _parts("Target", f"y: {PARTS} 3,4,3"))  # noqa: RUF009
    rule: str = _setting("equilibrium_propagation", _word("Rule", rules, RULE))
    law: str = _setting(
        "rotational",
        _word("Law", laws, "the boundary law B: from the error e to the potential v = Be"),
    )
    leak: float = _setting(0.0, _slid(LEAK, "μ in v = (K + μ)⁻¹e; 0: the exact repair"))
    alpha: float = _setting(1.0, _slid(ALPHA, "α: how fast the error falls, ė = −(αP + ΩC)e"))
    omega: float = _setting(3.0, _slid(OMEGA, "Ω: how fast the error turns, ė = −(αP + ΩC)e"))
    policy: str = _setting(
        "adaptive", _word("Policy", policies, "how far to step, and how much to turn")
    )
    gate: str = _setting(
        "always", _word("Gate", gates, "when a turn is taken: by curvature, where χ > 1")
    )
    turn: str = _setting("plus", _word("Turn", TURNS, "σ, the sense of each turn: +1 or −1"))
    scale: float = _setting(0.1, _slid(SCALE, STEP))
    epochs: int = _setting(
        30, _number("Epochs", 1, MAX_EPOCHS, 1, "passes over the six samples: six updates each")
    )
    shown: str = _setting("one", _word("Learns", LEARNS, "whose errors drive the learning"))
    sample: int = _setting(1, _number("Watched", 1, SAMPLES, 1, "the sample that the views follow"))
    frame: int = _setting(0, _number("Update", 0, SAMPLES * MAX_EPOCHS, 1))
    # further numbers that entries take, by name and value, where they are not as by default
    more: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        for name, one in SETTINGS.items():
            object.__setattr__(self, name, one.check(getattr(self, name), name))
        if self.more:
            object.__setattr__(self, "more", _changed(dict(self.more)))
        if self.frame > self.updates:
            raise ValueError(
                f"frame must be a whole number from 0 to {self.updates}, six per epoch, but it is "
                f"{self.frame}"
            )

    @property
    def updates(self) -> int:
        """Updates from the start to the end."""
        return SAMPLES * self.epochs

    @property
    def turns(self) -> bool:
        """Whether the law can turn at all."""
        return "omega" in laws.get(self.law).defaults

    @property
    def settings(self) -> dict[str, Any]:
        """Every setting by name, for the factories of the registry."""
        return {name: getattr(self, name) for name in SETTINGS} | dict(self.more)

    @property
    def hidden(self) -> int:
        """The width of the hidden layers, or the nodes of a graph's ring; 3 without either."""
        if self.system == "graph":
            return self.width + 1
        return self.width if self.depth > 1 and self.system in ("family", "held") else 3

    def still(self) -> "State":
        """The same run, whatever moment of it is looked at."""
        return replace(self, frame=0)

    def opening(self) -> "State":
        """The same network before its first update; other settings are as by default."""
        names = ("system", "depth", "width", "imbalance", "floor", "seed", "start")
        return State(**{name: getattr(self, name) for name in names})

    def to_query(self) -> str:
        """The address of this state: only what differs from the opening one."""
        changed = {
            name: one.write(getattr(self, name))
            for name, one in SETTINGS.items()
            if getattr(self, name) != DEFAULTS[name]
        }
        changed |= {name: decimal(value) for name, value in self.more}
        return urlencode(changed, safe=",")

    def to_json(self) -> str:
        """All settings, readable."""
        return json.dumps({"whorl": "explorer", **self.settings}, indent=2) + "\n"


SETTINGS: dict[str, Field] = {
    one.name: one.metadata["field"] for one in fields(State) if "field" in one.metadata
}
DEFAULTS: dict[str, Any] = {one.name: one.default for one in fields(State)}
FORMER = ("claim",)  # settings of older links that changed no number


def brought(*among: Registry[Entry]) -> dict[str, tuple[Field, float]]:
    """The numbers that entries take and the page has no setting for, each with its default.

    One that is called like a setting of the page is that setting.
    """
    return {
        one.name: (_slid(one), one.default)
        for entry in (entry for known in among for entry in known.entries(where="explorer"))
        for one in entry.parameters
        if one.type in ("number", "whole") and one.name not in SETTINGS
    }


def from_query(query: str) -> State:
    """The state an address names."""
    if len(query) > LONGEST:
        raise ValueError(
            f"the address must be at most {LONGEST} characters long, but it has {len(query)}"
        )
    pairs = parse_qsl(query.removeprefix("?"), keep_blank_values=True)
    pairs = [(name, text) for name, text in pairs if name not in FORMER]
    names = [name for name, _ in pairs]
    known = {name: _known("the address", name) for name in names}
    if twice := [name for name in known if names.count(name) > 1]:
        raise ValueError(f"the address must hold each setting once, but {twice[0]} is there twice")
    values: dict[str, Any] = {name: known[name].read(text, name) for name, text in pairs}
    more = tuple((name, value) for name, value in values.items() if name not in SETTINGS)
    ours = {name: value for name, value in values.items() if name in SETTINGS}
    return State(**ours, more=more)


def _known(where: str, name: str) -> Field:
    return SETTINGS[name] if name in SETTINGS else _offered(where, name)[0]


def _offered(where: str, name: str) -> tuple[Field, float]:
    offered = brought(laws, policies, rules)
    if name not in offered:
        raise ValueError(
            f"{where} must hold settings of the explorer only, but {name[:40]!r} is not one"
        )
    return offered[name]


def _changed(more: Mapping[str, Any]) -> tuple[tuple[str, float], ...]:
    """What differs from its default, in the order of the names."""
    offered = {name: _offered("more", name) for name in sorted(more)}
    values = {name: one.check(more[name]) for name, (one, _) in offered.items()}
    return tuple((name, value) for name, value in values.items() if value != offered[name][1])
