"""Circuits as text: the lines R, V, I and D of SPICE, read and written, never executed.

The first line is a title, `*` begins a comment, `+` continues a line, letters mean the same in both
cases, and a value may end in one of SPICE's factors (`4.7k`, `1meg`). Node 0 (or gnd) is the
ground.

| line | meaning |
|---|---|
| `R1 a b 100` | a resistor in ohms |
| `D1 a b small` | a diode from a to b, of a model |
| `.model small D(IS=1e-9 N=1.5)` | its saturation current and ideality, at 27 degrees Celsius |
| `V1 a 0 5` | holds node a at a voltage; one end is at node 0 |
| `I1 0 a 1m` | feeds a current into node a; one end is at node 0 |
| `.print v(a) v(b)` | the voltages that are read |
| `.print i(V2) i(V3)` | the currents that are read, into nodes that sources of 0 volts hold |
"""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Array, Float

from whorl import _check
from whorl._check import Numbers
from whorl.systems.circuit import ROOM, Circuit, Diode

FACTORS = {"t": 1e12, "g": 1e9, "meg": 1e6, "k": 1e3, "m": 1e-3, "u": 1e-6, "n": 1e-9}
FACTORS |= {"p": 1e-12, "f": 1e-15, "mil": 25.4e-6, "": 1.0}
VALUE = re.compile(r"([-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d{1,3})?)(t|g|meg|mil|k|m|u|n|p|f|)[a-z]*")
MODEL = re.compile(r"\.model\s+(\S+)\s+d\s*(?:\((.*)\)|(.*))")
PRINT = re.compile(r"([vi])\(\s*([^\s()]+)\s*\)")
LONGEST = 10**7  # characters
GROUND = ("0", "gnd")


class Part(NamedTuple):
    """One element of a netlist."""

    line: int
    name: str
    ends: tuple[str, str]
    value: str


def from_netlist(text: str) -> tuple[Circuit, Float[Array, "1 in"]]:
    r"""A circuit and its inputs from a SPICE-like netlist.

    Args:
        text: The netlist: a title, then lines R, V, I and D, `.model` and `.print`.

    Returns:
        The circuit, with the sources V and I in the order of their lines, and their values as one
        row of inputs.

    Raises:
        ValueError: Where a line cannot be read, with its number.

    Examples:
        >>> text = "divider\nV1 a 0 1\nR1 a b 1k\nR2 b 0 3k\n.print v(b)\n.end"
        >>> print(wh.predict(*wh.from_netlist(text)))
        [[0.75]]
    """
    if not isinstance(text, str) or len(text) > LONGEST:
        raise ValueError(
            f"text must be a netlist of at most {LONGEST} characters, but it is "
            f"{_check.shown(text)}"
        )
    lines = list(_lines(text))
    parts = [_part(number, line) for number, line in lines if line[0] in "rvid"]
    models = dict(_model(number, line) for number, line in lines if line.startswith(".model"))
    _refuse_twice([(number, line.split()[0]) for number, line in lines if line[0] != "."])
    named = [(number, line.split()) for number, line in lines if line.startswith(".model")]
    _refuse_twice([(number, words[1]) for number, words in named])
    if not (passive := [one for one in parts if one.name[0] in "rd"]):
        raise ValueError("the netlist must have a line R or D after its title, but it has none")
    place: dict[str, int] = {}
    for one in passive:
        for end in one.ends:
            place.setdefault(end, len(place))
    read, outputs = _printed(lines, parts, place)
    meters = outputs if read == "currents" else {}
    sources = [one for one in parts if one.name[0] in "vi" and _driven(one)[0] not in meters]
    if not sources:
        raise ValueError("the netlist must have a line V or I that drives a node, but it has none")
    _refuse_shared(sources, outputs, place)
    _refuse_floating(passive, [one.ends for one in sources if one.name[0] == "v"], meters)
    driven = [_driven(one) for one in sources]
    circuit = Circuit(
        np.array([[place[end] for end in one.ends] for one in passive]),
        np.array([_conductance(one, models) for one in passive]),
        sources=[place[node] for node, _ in driven],
        outputs=[place[node] for node in outputs],
        ground=[place["0"]] if "0" in place else [],
        drive=["voltages" if one.name[0] == "v" else "currents" for one in sources],
        read=read,
        elements={
            number: Diode(models[one.value][1])
            for number, one in enumerate(passive)
            if one.name[0] == "d"
        },
    )
    return circuit, circuit.checked_inputs(np.array([[value for _, value in driven]]))


def to_netlist(circuit: Circuit, inputs: Numbers, *, title: str = "a circuit of whorl") -> str:
    """The netlist of a circuit at one row of inputs, which SPICE solves for its operating point.

    Args:
        circuit: The circuit; its elements must be resistors and diodes.
        inputs: One row, `(1, in)`.
        title: The first line.

    Returns:
        The text. Node k is called nk, and every ground 0.

    Raises:
        ValueError: Where an element has no line in SPICE, or there is more than one row.

    Examples:
        >>> divider = wh.Circuit([[0, 1], [1, 2]], [1.0, 4.0], sources=[0], outputs=[1], ground=[2])
        >>> print(wh.to_netlist(divider, [[1.0]], title="divider"))
        divider
        R0 n0 n1 1.0
        R1 n1 0 0.25
        V0 n0 0 1.0
        .print v(n1)
        .end
    """
    _check.instance("circuit", circuit, Circuit)
    row = np.asarray(circuit.checked_inputs(inputs))
    if len(row) != 1:
        raise ValueError(f"inputs must be one row, but there are {len(row)}")
    names = ["0" if node in circuit.ground else f"n{node}" for node in range(circuit.nodes)]
    diodes = {place: one for one, places in circuit.elements for place in places}
    lines = [" ".join(_check.plain(title).split()) or "untitled"]
    sizes = np.asarray(circuit.conductances, dtype=float).tolist()
    for number, (ends, size) in enumerate(
        zip(np.asarray(circuit.edges).tolist(), sizes, strict=True)
    ):
        places = " ".join(names[end] for end in ends)
        if number not in diodes:
            lines.append(f"R{number} {places} {1 / size!r}")
            continue
        if not isinstance(diode := diodes[number], Diode):
            raise ValueError(
                f"elements must be resistors and diodes to be written, but edge {number} is neither"
            )
        about = f"IS={size * diode.thermal!r} N={diode.thermal / ROOM!r}"
        lines += [f"D{number} {places} m{number}", f".model m{number} D({about})"]
    for number, (node, word) in enumerate(zip(circuit.sources, circuit.drive, strict=True)):
        ends = f"{names[node]} 0" if word == "voltages" else f"0 {names[node]}"
        lines.append(
            f"{word[0].upper().replace('C', 'I')}{number} {ends} {float(row[0, number])!r}"
        )
    if circuit.reading == "currents":
        lines += [f"Vout{k} {names[node]} 0 0" for k, node in enumerate(circuit.sinks)]
        shown = [f"i(vout{k})" for k in range(len(circuit.sinks))]
    else:
        shown = [f"v({names[node]})" for node in circuit.sinks]
    return "\n".join([*lines, f".print {' '.join(shown)}", ".end"])


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Statements with the numbers of their first lines, in lower case."""
    waiting: list[Any] = []
    for number, raw in enumerate(text.splitlines()[1:], start=2):
        line = raw.split(";")[0].split("$ ")[0].strip().lower()
        if not line or line.startswith("*"):
            continue
        if line.startswith("+"):
            if not waiting:
                raise ValueError(f"line {number} must continue a line, but there is none before it")
            waiting[1] += " " + line[1:].strip()
            continue
        if waiting:
            yield waiting[0], waiting[1]
        waiting = [number, line]
        if line == ".end":
            return
        known = (".model", ".print", ".op", ".options")
        if line[0] not in "rvid" and line.split()[0] not in known:
            raise ValueError(
                f"line {number} must begin with R, V, I, D, .model, .print or .end, but it is "
                f"{_check.shown(raw.strip())}"
            )
    if waiting:
        yield waiting[0], waiting[1]


def _refuse_twice(named: list[tuple[int, str]]) -> None:
    first: dict[str, int] = {}
    for number, name in named:
        if first.setdefault(name, number) != number:
            raise ValueError(
                f"line {number} must have a name of its own, but {name} stands on line "
                f"{first[name]} already"
            )


def _part(number: int, line: str) -> Part:
    words = line.split()
    if len(words) == 5 and words[0][0] in "vi" and words[3] == "dc":
        del words[3]
    if len(words) != 4:
        raise ValueError(
            f"line {number} must hold a name, two nodes and a value, but it is {_check.shown(line)}"
        )
    name, first, second, value = words
    first, second = ("0" if end in GROUND else end for end in (first, second))
    if first == second:
        raise ValueError(f"line {number} must join two different nodes, but both are {first}")
    return Part(number, name, (first, second), value)


def _number(line: int, text: str) -> float:
    found = VALUE.fullmatch(text.replace("\u00b5", "u").replace("\u03bc", "u"))
    if not found:
        raise ValueError(f"line {line} must hold a number, but it is {_check.shown(text)}")
    value = float(found[1]) * FACTORS[found[2]]
    if not np.isfinite(value):
        raise ValueError(f"line {line} must hold a finite number, but it is {_check.shown(text)}")
    return value


def _model(line: int, text: str) -> tuple[str, tuple[float, float]]:
    """Saturation current and thermal voltage of a diode model, by its name."""
    found = MODEL.fullmatch(text)
    if not found:
        raise ValueError(
            f"line {line} must be a model D(IS=... N=...), but it is {_check.shown(text)}"
        )
    given = re.sub(r"\s*=\s*", "=", found[2] or found[3] or "").split()
    pairs = (word.partition("=") for word in given)
    values = {name: value for name, _, value in pairs}
    if strange := set(values) - {"is", "n"}:
        raise ValueError(f"line {line} must give IS and N only, but it gives {min(strange)}")
    current, ideality = (
        _number(line, values.get("is", "1e-14")),
        _number(line, values.get("n", "1")),
    )
    if not (current > 0 and ideality > 0):
        raise ValueError(f"line {line} must give positive IS and N, but it is {_check.shown(text)}")
    return found[1], (current, ideality * ROOM)


def _conductance(part: Part, models: dict[str, tuple[float, float]]) -> float:
    if part.name[0] == "d":
        if part.value not in models:
            raise ValueError(
                f"line {part.line} must name a model of the netlist, but it is "
                f"{_check.shown(part.value)}"
            )
        current, thermal = models[part.value]
        return current / thermal
    size = _number(part.line, part.value)
    if not size > 0:
        raise ValueError(f"line {part.line} must hold a positive resistance, but it is {size:g}")
    if not np.isfinite(1 / size):
        raise ValueError(
            f"line {part.line} must hold a resistance whose inverse is finite, but it is {size:g}"
        )
    return 1 / size


def _driven(part: Part) -> tuple[str, float]:
    """The node that a source drives, and the voltage there or the current into it."""
    first, second = part.ends
    if "0" not in part.ends:
        raise ValueError(
            f"line {part.line} must have one end at node 0, but its nodes are {first} and {second}"
        )
    value = _number(part.line, part.value)
    # A current source draws from its first node and feeds its second.
    flipped = (first == "0") == (part.name[0] == "v")
    return (second if first == "0" else first), -value if flipped else value


def _refuse_shared(sources: list[Part], outputs: dict[str, int], place: dict[str, int]) -> None:
    """Every node has one role."""
    drivers: dict[str, int] = {}
    for part in sources:
        node = _driven(part)[0]
        if node not in place:
            raise ValueError(
                f"line {part.line} must drive a node of a line R or D, but {node} is on none"
            )
        if drivers.setdefault(node, part.line) != part.line:
            raise ValueError(
                f"line {part.line} must drive a node of its own, but line {drivers[node]} drives "
                f"{node} already"
            )
    for node, line in outputs.items():
        if node == "0" or node in drivers:
            what = "is the ground" if node == "0" else f"is driven by line {drivers[node]}"
            raise ValueError(f"line {line} must print nodes that settle, but {node} {what}")


def _refuse_floating(
    passive: list[Part], held: list[tuple[str, str]], meters: dict[str, int]
) -> None:
    """Every node must be joined to one of known voltage."""
    joined: dict[str, list[str]] = {}
    for one, other in (part.ends for part in passive):
        joined.setdefault(one, []).append(other)
        joined.setdefault(other, []).append(one)
    seen = {"0", *(node for ends in held for node in ends), *meters}
    waiting = list(seen)
    while waiting:
        found = set(joined.get(waiting.pop(), [])) - seen
        seen |= found
        waiting += found
    for part in passive:
        if not seen.issuperset(part.ends):
            raise ValueError(
                f"line {part.line} must lead to node 0 or to a node that a line V holds, but no "
                f"path of lines R and D does from {part.ends[0]}"
            )


def _printed(
    lines: list[Any], parts: list[Part], place: dict[str, int]
) -> tuple[str, dict[str, int]]:
    """What is read, and at which nodes, each with the line that says so."""
    shown = [
        (number, *one)
        for number, line in lines
        if line.startswith(".print")
        for one in _asked(number, line)
    ]
    if not shown:
        raise ValueError("the netlist must say what is read, as .print v(a), but it does not")
    if len({letter for _, letter, _ in shown}) > 1:
        raise ValueError("the netlist must print voltages or currents, but it prints both")
    meters = {one.name: one for one in parts if one.name[0] == "v"}
    outputs: dict[str, int] = {}
    for number, letter, name in shown:
        node = "0" if name in GROUND else name
        if letter == "i":
            if name not in meters or _driven(meters[name])[1] != 0 or meters[name].ends[1] != "0":
                raise ValueError(
                    f"line {number} must print currents of sources of 0 volts from a node to node "
                    f"0, but {name} is none"
                )
            node = meters[name].ends[0]
        if node not in place:
            raise ValueError(f"line {number} must print nodes of the netlist, but {node} is none")
        if node in outputs:
            raise ValueError(f"line {number} must print each node once, but {node} comes twice")
        outputs[node] = number
    return ("currents" if shown[0][1] == "i" else "voltages"), outputs


def _asked(number: int, line: str) -> list[tuple[str, str]]:
    """Letters and names that a line .print holds, and nothing else."""
    rest = PRINT.sub(" ", line).split()[1:]
    if strange := [word for word in rest if word not in ("dc", "op")]:
        raise ValueError(
            f"line {number} must print v(node) or i(source), but it has {_check.shown(strange[0])}"
        )
    return PRINT.findall(line)
