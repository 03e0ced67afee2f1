"""What the page shows, as one frozen value: to and from the address, JSON, and nothing else.

A state is data: numbers inside limits, words from a list, three shares. Whatever comes from an
address or a file passes through `from_query` or `from_json`, and a refusal reads like every other
of the library: *argument* must *rule*, but *value*. The limits are also what keeps one visitor from
asking for more work than a moment's. Laws, policies and gates are those of the registry; what they
bring along of parameters is kept in `more`.
"""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any
from urllib.parse import parse_qsl, urlencode

from whorl.feedback import ALPHA, LEAK, OMEGA
from whorl.learning.policy import SCALE
from whorl.registry import Entry, Number, Registry, gates, laws, policies

MAX_DEPTH = 6
MAX_EPOCHS = 30
SAMPLES = 6
NETWORKS = 300
Shares = tuple[float, float, float]


@dataclass(frozen=True)
class Whole:
    """A whole number from `low` to `high`."""

    label: str
    low: int
    high: int
    note: str = ""

    def checked(self, name: str, value: Any) -> int:
        if (
            isinstance(value, bool)
            or not isinstance(value, int)
            or not self.low <= value <= self.high
        ):
            raise ValueError(
                f"{name} must be a whole number from {self.low} to {self.high}, but it is {value!r}"
            )
        return value

    def read(self, name: str, text: str) -> int:
        return self.checked(name, int(text) if re.fullmatch(r"-?[0-9]{1,9}", text) else text)

    def write(self, value: int) -> str:
        return str(value)


@dataclass(frozen=True)
class Real:
    """A real number from `low` to `high`; `step` is how finely the page moves it."""

    label: str
    low: float
    high: float
    step: float
    note: str = ""

    def checked(self, name: str, value: Any) -> float:
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not self.low <= value <= self.high
        ):
            raise ValueError(
                f"{name} must be a number from {self.low:g} to {self.high:g}, but it is {value!r}"
            )
        return float(value)

    def read(self, name: str, text: str) -> float:
        return self.checked(name, _number(text))

    def write(self, value: float) -> str:
        return _decimal(value)


@dataclass(frozen=True)
class Choice:
    """One word of a list, each with what it is called on the page, or of a registry."""

    label: str
    among: tuple[tuple[str, str], ...] | Registry[Entry]
    note: str = ""

    @property
    def words(self) -> tuple[tuple[str, str], ...]:
        if isinstance(self.among, tuple):
            return self.among
        return tuple((one.name, one.label) for one in self.among.entries(where="explorer"))

    def checked(self, name: str, value: Any) -> str:
        if isinstance(self.among, Registry):
            return self.among.get(value, where="explorer").name
        known = [word for word, _ in self.among]
        if not isinstance(value, str) or value not in known:
            raise ValueError(f"{name} must be one of {', '.join(known)}, but it is {value!r}")
        return value

    def read(self, name: str, text: str) -> str:
        return self.checked(name, text)

    def write(self, value: str) -> str:
        return value


@dataclass(frozen=True)
class Parts:
    """Three positive numbers; only their proportions count."""

    label: str
    note: str = ""

    def checked(self, name: str, value: Any) -> Shares:
        given = tuple(value) if isinstance(value, tuple | list) else ()
        sound = len(given) == 3 and all(
            isinstance(one, int | float) and not isinstance(one, bool) for one in given
        )
        if not sound or not all(0 < one <= 1e6 for one in given) or min(given) < 1e-4 * sum(given):
            raise ValueError(
                f"{name} must be three positive numbers, none below 1e-4 of their sum, but it is "
                f"{value!r}"
            )
        one, two, three = (float(part) for part in given)
        return one, two, three

    def read(self, name: str, text: str) -> Shares:
        numbers = tuple(_number(part.strip()) for part in text.split(","))
        return self.checked(
            name, numbers if all(isinstance(one, float) for one in numbers) else text
        )

    def write(self, value: Shares) -> str:
        return ",".join(map(_decimal, value))


Kind = Whole | Real | Choice | Parts


def _setting(default: Any, kind: Kind) -> Any:
    return field(default=default, metadata={"kind": kind})


def _slider(one: Number, note: str = "") -> Real:
    low, high, step = one.slider or (one.low, one.high, (one.high - one.low) / 100)
    return Real(one.label or one.name, low, high, step, note or one.help)


@dataclass(frozen=True)
class State:
    """Everything the page shows. Two equal states make two equal pages.

    Examples:
        >>> from whorl.explorer import State
        >>> State(depth=4).to_query()
        'depth=4'
    """

    claim: str = _setting(
        "turn",
        Choice(
            "Claim",
            (
                ("turn", ""),
                ("cycle", ""),
                ("spectral", ""),
                ("helps", ""),
                ("hurts", ""),
                ("drift", ""),
                ("propagation", ""),
                ("coupled", ""),
                ("alignment", ""),
                ("critical", ""),
            ),
            "which story is told; it changes no number",
        ),
    )
    system: str = _setting(
        "family",
        Choice(
            "System",
            (
                ("family", "random network"),
                ("graph", "looped graph"),
                ("column", "one column"),
                ("rps", "rock–paper–…"),
                ("circuit", "circuit"),
                ("held", "held network"),
            ),
            "what learns: ṗ = Q(p)s in every column; a held network stands still",
        ),
    )
    depth: int = _setting(
        3, Whole("Depth", 1, MAX_DEPTH, "L, the trainable layers: F = P⁽ᴸ⁾ ⋯ P⁽¹⁾x")
    )
    width: int = _setting(
        3, Whole("Width", 2, 6, "nodes of a hidden layer; inputs and outputs are three")
    )
    imbalance: float = _setting(
        1.0,
        Real(
            "Imbalance β",
            0.0,
            10.0,
            0.1,
            "β, how unequal the routes start: columns are softmax(β × normal numbers); 0: all"
            " alike",
        ),
    )
    floor: float = _setting(
        0.1,
        Real(
            "Floor",
            0.0,
            0.9,
            0.01,
            "f, the share of each column that is spread evenly: p = (1 − f) softmax + f/width",
        ),
    )
    seed: int = _setting(
        15,
        Whole(
            "Seed",
            0,
            9999,
            "of columns, data, order and fair turns; the same seed gives the same run",
        ),
    )
    start: Shares = _setting(  # noqa: RUF009
        (1.0, 1.0, 8.0),
        Parts(
            "Start",
            "p at the start: three positive parts, such as 1,1,8; only their proportions count",
        ),
    )
    target: Shares = _setting(  # noqa: RUF009
        (3.0, 4.0, 3.0),
        Parts("Target", "y: three positive parts, such as 3,4,3; only their proportions count"),
    )
    rule: str = _setting(
        "equilibrium_propagation",
        Choice(
            "Rule",
            (
                ("equilibrium_propagation", "equilibrium propagation"),
                ("coupled_learning", "coupled learning"),
                ("feedback_alignment", "feedback alignment"),
            ),
            "how the circuit turns residuals into motion of its conductances",
        ),
    )
    law: str = _setting(
        "rotational",
        Choice("Law", laws, "the boundary law B: from the error e to the potential v = Be"),
    )
    leak: float = _setting(0.0, _slider(LEAK, "μ in v = (K + μ)⁻¹e; 0: the exact repair"))
    alpha: float = _setting(1.0, _slider(ALPHA, "α: how fast the error falls, ė = −(αP + ΩC)e"))
    omega: float = _setting(3.0, _slider(OMEGA, "Ω: how fast the error turns, ė = −(αP + ΩC)e"))
    policy: str = _setting(
        "adaptive", Choice("Policy", policies, "how far to step, and how much to turn")
    )
    gate: str = _setting(
        "always", Choice("Gate", gates, "when a turn is taken: by curvature, where χ > 1")
    )
    turn: str = _setting(
        "plus",
        Choice(
            "Turn",
            (
                ("fair", "fair coin"),
                ("plus", "always +"),
                ("minus", "always −"),
                ("alternating", "alternating"),
            ),
            "σ, the sense of each turn: +1 or −1",
        ),
    )
    scale: float = _setting(
        0.1,
        _slider(
            SCALE, "s: the step is s over the range of the score, so that no share moves by more"
        ),
    )
    epochs: int = _setting(
        30, Whole("Epochs", 1, MAX_EPOCHS, "passes over the six samples: six updates each")
    )
    shown: str = _setting(
        "one",
        Choice(
            "Learns",
            (("all", "all samples"), ("one", "watched only")),
            "whose errors drive the learning",
        ),
    )
    sample: int = _setting(1, Whole("Watched", 1, SAMPLES, "the sample that the views follow"))
    frame: int = _setting(0, Whole("Update", 0, SAMPLES * MAX_EPOCHS))
    # what a law or a policy brings, by name and value, where it is not as by default
    more: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        for name, kind in KINDS.items():
            object.__setattr__(self, name, kind.checked(name, getattr(self, name)))
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
        return {name: getattr(self, name) for name in KINDS} | dict(self.more)

    @property
    def hidden(self) -> int:
        """The width of the hidden layers, or the nodes of a graph's ring; a single layer has none,
        and counts as three wide.
        """
        if self.system == "graph":
            return self.width + 1
        return self.width if self.depth > 1 and self.system in ("family", "held") else 3

    def still(self) -> "State":
        """The same run, whatever moment of it is looked at and whatever is told about it."""
        return replace(self, frame=0, claim=DEFAULTS["claim"])

    def opening(self) -> "State":
        """The same network before its first update.

        What has no say in it is as on the opening page.
        """
        return State(
            **{
                name: getattr(self, name)
                for name in ("system", "depth", "width", "imbalance", "floor", "seed", "start")
            }
        )

    def to_query(self) -> str:
        """The address of this state: only what differs from the opening one."""
        changed = {
            name: kind.write(getattr(self, name))
            for name, kind in KINDS.items()
            if getattr(self, name) != DEFAULTS[name]
        }
        changed |= {name: _decimal(value) for name, value in self.more}
        return urlencode(changed, safe=",")

    def to_json(self) -> str:
        """All settings, readable."""
        return json.dumps({"whorl": "explorer", **self.settings}, indent=2) + "\n"


KINDS: dict[str, Kind] = {
    one.name: one.metadata["kind"] for one in fields(State) if "kind" in one.metadata
}
DEFAULTS: dict[str, Any] = {one.name: one.default for one in fields(State)}


def brought(*among: Registry[Entry]) -> dict[str, tuple[Real, float]]:
    """The parameters that laws or policies of other packages bring, each with its default.

    One that is called like a setting of the page is that setting.
    """
    return {
        one.name: (_slider(one), one.default)
        for entry in (entry for known in among for entry in known.entries(where="explorer"))
        for one in entry.parameters
        if isinstance(one, Number) and one.name not in KINDS
    }


def from_query(query: str) -> State:
    """The state an address names."""
    if len(query) > 2000:
        raise ValueError(
            f"the address must be at most 2000 characters long, but it has {len(query)}"
        )
    pairs = parse_qsl(query.removeprefix("?"), keep_blank_values=True)
    names = [name for name, _ in pairs]
    kinds = {name: _kind("the address", name) for name in names}
    if twice := [name for name in kinds if names.count(name) > 1]:
        raise ValueError(f"the address must hold each setting once, but {twice[0]} is there twice")
    return _made({name: kinds[name].read(name, text) for name, text in pairs})


def from_json(text: str) -> State:
    """The state a downloaded file holds."""
    try:
        given = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as broken:
        raise ValueError(f"the file must be JSON, but it cannot be read: {broken}") from broken
    if not isinstance(given, Mapping) or given.get("whorl") != "explorer":
        raise ValueError(
            'the file must hold a state of the explorer, "whorl": "explorer", but it does not'
        )
    kinds = {name: _kind("the file", name) for name in given if name != "whorl"}
    return _made({name: kind.checked(name, given[name]) for name, kind in kinds.items()})


def _made(values: dict[str, Any]) -> State:
    more = tuple((name, value) for name, value in values.items() if name not in KINDS)
    return State(**{name: values[name] for name in values.keys() & KINDS.keys()}, more=more)


def _kind(where: str, name: str) -> Kind:
    return KINDS[name] if name in KINDS else _offered(where, name)[0]


def _offered(where: str, name: str) -> tuple[Real, float]:
    offered = brought(laws, policies)
    if name not in offered:
        raise ValueError(
            f"{where} must hold settings of the explorer only, but {name[:40]!r} is not one"
        )
    return offered[name]


def _changed(more: Mapping[str, Any]) -> tuple[tuple[str, float], ...]:
    """What differs from its default, in the order of the names."""
    offered = {name: _offered("more", name) for name in sorted(more)}
    values = {name: kind.checked(name, more[name]) for name, (kind, _) in offered.items()}
    return tuple((name, value) for name, value in values.items() if value != offered[name][1])


def _decimal(value: float) -> str:
    return f"{value:.15g}" if float(f"{value:.15g}") == value else repr(value)


def _number(text: str) -> float | str:
    """A plain decimal number, or the text itself, to be refused by whoever asked."""
    if (
        not re.fullmatch(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]{1,3})?", text)
        or len(text) > 40
    ):
        return text
    value = float(text)
    return value if math.isfinite(value) else text
