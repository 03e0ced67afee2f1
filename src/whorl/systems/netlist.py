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

Lines that only tell SPICE what to do (`.options`, `.tran`, `.control` to `.endc` and the like) are
skipped, and the circuit shows them as notes. It keeps the names of nodes and elements, and
`to_netlist` writes them again.
"""

import re
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Array, Float

from whorl import _check
from whorl._check import Numbers
from whorl.systems.circuit import ROOM, Circuit, Diode, Law, Names

FACTORS = {"t": 1e12, "g": 1e9, "meg": 1e6, "k": 1e3, "m": 1e-3, "u": 1e-6, "n": 1e-9}
FACTORS |= {"p": 1e-12, "f": 1e-15, "mil": 25.4e-6, "": 1.0}
VALUE = re.compile(r"([-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d{1,3})?)(t|g|meg|mil|k|m|u|n|p|f|)[a-z]*")
PRINT = re.compile(r"([vi])\(\s*([^\s()]+)\s*\)")
LONGEST, WORD = 10**7, 100  # characters of a netlist and of a number
PARTS, KINDS = 10**5, 32  # elements of a netlist, and idealities among its diodes
FILES = (".cir", ".ckt", ".net", ".sp", ".spi", ".spice")
GROUND = ("0", "gnd")
# What SPICE is to do, and no part of the circuit. `.temp` and `.include` are not among them.
SKIPPED = frozenset(
    [
        ".ac",
        ".dc",
        ".disto",
        ".four",
        ".ic",
        ".meas",
        ".measure",
        ".nodeset",
        ".noise",
        ".op",
        ".option",
        ".options",
        ".plot",
        ".probe",
        ".pz",
        ".save",
        ".sens",
        ".tf",
        ".title",
        ".tran",
        ".width",
    ]
)


class Line(NamedTuple):
    """One statement, with what continues it."""

    number: int
    raw: str

    @property
    def text(self) -> str:
        """In lower case, in which names are compared."""
        return self.raw.lower()

    @property
    def words(self) -> list[str]:
        """Its words, in lower case."""
        return self.text.split()


class Part(NamedTuple):
    """One element of a netlist."""

    line: int
    name: str
    ends: tuple[str, str]
    value: str
    spelt: tuple[str, str, str]  # name and ends as they were written


def from_netlist(
    text: str | PathLike[str],
    *,
    mobility: str | Law = "flat",
    rates: Numbers | Mapping[str, float] = 1.0,
) -> tuple[Circuit, Float[Array, "1 in"]]:
    r"""A circuit and its inputs from a SPICE-like netlist.

    Args:
        text: The netlist, or the path of its file: a title, then lines R, V, I and D, `.model` and
            `.print`.
        mobility: How a conductance answers a slope, as for `Circuit`.
        rates: How fast conductances may move: one number, one per line R or D, or numbers by the
            names of elements; those that are not named have the rate 1.

    Returns:
        The circuit, with the sources V and I in the order of their lines, and their values as one
        row of inputs. `circuit.names` holds the names of the netlist, and which lines were skipped.

    Raises:
        ValueError: Where a line cannot be read, with its number, or the file cannot be read.

    Examples:
        >>> text = "divider\nV1 a 0 1\nR1 a b 1k\nR2 b 0 3k\n.print v(b)\n.end"
        >>> print(wh.predict(*wh.from_netlist(text)))
        [[0.75]]
    """
    lines, notes = _lines(_text(text))
    parts = [_part(line) for line in lines if line.text[0] in "rvid"]
    found = [line for line in lines if line.words[0] == ".model"]
    models = dict(_model(line) for line in found)
    _refuse_twice([(one.line, one.name) for one in parts])
    _refuse_twice([(line.number, line.words[1]) for line in found])
    _refuse_many(parts, models)
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
    spelt = {
        end: word
        for one in passive[::-1]
        for end, word in zip(one.ends, one.spelt[1:], strict=True)
    }
    held = {one.ends[0]: one.spelt[0] for one in parts if one.name[0] == "v"}
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
        mobility=mobility,
        rates=_rates(rates, [one.name for one in passive]),
        names=Names(
            tuple(spelt[node] for node in place),
            tuple(one.spelt[0] for one in passive),
            tuple(one.spelt[0] for one in sources),
            tuple(held[node] for node in outputs) if meters else (),
            tuple(notes),
        ),
    )
    return circuit, circuit.checked_inputs(np.array([[value for _, value in driven]]))


def to_netlist(circuit: Circuit, inputs: Numbers, *, title: str = "a circuit of whorl") -> str:
    """The netlist of a circuit at one row of inputs, which SPICE solves for its operating point.

    Args:
        circuit: The circuit; its elements must be resistors and diodes.
        inputs: One row, `(1, in)`.
        title: The first line.

    Returns:
        The text, with the circuit's names if it has any. Otherwise node k is called nk, and every
        ground 0.

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
    names = circuit.names or _numbered(circuit)
    nodes = ["0" if at in circuit.ground else name for at, name in enumerate(names.nodes)]
    diodes = {place: one for one, places in circuit.elements for place in places}
    lines = [" ".join(_check.plain(title).split()) or "untitled"]
    sizes = np.asarray(circuit.conductances, dtype=float).tolist()
    ends = np.asarray(circuit.edges).tolist()
    for number, (name, (one, other), size) in enumerate(zip(names.edges, ends, sizes, strict=True)):
        if number not in diodes:
            lines.append(f"{name} {nodes[one]} {nodes[other]} {1 / size!r}")
            continue
        if not isinstance(diode := diodes[number], Diode):
            raise ValueError(
                f"elements must be resistors and diodes to be written, but edge {number} is neither"
            )
        about = f"IS={size * diode.thermal!r} N={diode.thermal / ROOM!r}"
        lines += [
            f"{name} {nodes[one]} {nodes[other]} m{number}",
            f".model m{number} D({about})",
        ]
    driven = zip(names.sources, circuit.sources, circuit.drive, row[0].tolist(), strict=True)
    for name, node, word, value in driven:
        places = f"{nodes[node]} 0" if word == "voltages" else f"0 {nodes[node]}"
        lines.append(f"{name} {places} {float(value)!r}")
    if circuit.reading == "currents":
        read = zip(names.meters, circuit.sinks, strict=True)
        lines += [f"{name} {nodes[node]} 0 0" for name, node in read]
        shown = [f"i({name.lower()})" for name in names.meters]
    else:
        shown = [f"v({nodes[node]})" for node in circuit.sinks]
    return "\n".join([*lines, f".print {' '.join(shown)}", ".end"])


def _numbered(circuit: Circuit) -> Names:
    """Names for a circuit that has none."""
    diodes = {place for _, places in circuit.elements for place in places}
    letters = {"voltages": "V", "currents": "I"}
    return Names(
        tuple(f"n{node}" for node in range(circuit.nodes)),
        tuple(f"{'D' if at in diodes else 'R'}{at}" for at in range(len(circuit.edges))),
        tuple(f"{letters[word]}{number}" for number, word in enumerate(circuit.drive)),
        tuple(f"Vout{number}" for number in range(len(circuit.sinks))),
    )


def _text(given: Any) -> str:
    """The netlist, read from its file where a path is given."""
    path = isinstance(given, PathLike)
    if isinstance(given, str) and "\n" not in given and "\r" not in given:
        path = given.strip().lower().endswith(FILES)
    if path:
        try:
            file = Path(given)
            # A device would never end.
            if file.exists() and not file.is_file():
                raise ValueError(f"text must name a file, but {_check.shown(str(given))} is none")
            with file.open("rb") as stream:
                given = stream.read(LONGEST + 1).decode("utf-8", "replace")
        except OSError as error:
            raise ValueError(
                "text must be a netlist or the path of one that can be read, but of "
                f"{_check.shown(str(given))} the system says: {error.strerror}"
            ) from None
    if not isinstance(given, str) or len(given) > LONGEST:
        raise ValueError(
            f"text must be a netlist of at most {LONGEST} characters, but it is "
            f"{_check.shown(given)}"
        )
    return given


def _lines(text: str) -> tuple[list[Line], list[str]]:
    """Statements with the numbers of their first lines, and notes on those that are skipped."""
    found: list[tuple[int, list[str]]] = []
    block = 0  # the line of a `.control` that no `.endc` has ended yet
    notes = []
    for number, raw in enumerate(text.splitlines()[1:], start=2):
        line = raw.split(";", 1)[0].split("$ ", 1)[0].strip()
        word = line.split(None, 1)[0].lower() if line else "*"
        if block:
            block = 0 if word == ".endc" else block
        elif line.startswith("+"):
            if not found:
                raise ValueError(f"line {number} must continue a line, but there is none before it")
            found[-1][1].append(line[1:].strip())
        elif word == ".control":
            block = number
            notes.append(f"line {number}, .control to .endc")
        elif word == ".end":
            break
        elif not word.startswith("*"):
            known = word in SKIPPED or word in (".model", ".print")
            if word[0] not in "rvid" and not known:
                raise ValueError(
                    f"line {number} must begin with R, V, I, D, .model, .print or .end, but it is "
                    f"{_check.shown(raw.strip())}"
                )
            found.append((number, [line]))
    lines = [Line(number, " ".join(pieces)) for number, pieces in found]
    skipped = [line for line in lines if line.words[0] in SKIPPED]
    notes += [f"line {line.number}, {line.words[0]}" for line in skipped]
    return [line for line in lines if line.words[0] not in SKIPPED], notes


def _refuse_many(parts: list[Part], models: dict[str, tuple[float, float]]) -> None:
    """Refuse what would take minutes to compile or gigabytes to solve."""
    if len(parts) > PARTS:
        raise ValueError(f"the netlist must have at most {PARTS} elements, but it has {len(parts)}")
    used = {models[one.value][1] for one in parts if one.name[0] == "d" and one.value in models}
    if len(used) > KINDS:
        raise ValueError(
            f"the diodes must have at most {KINDS} different N, but they have {len(used)}"
        )


def _rates(rates: Any, names: list[str]) -> Any:
    """Rates in the order of the elements."""
    if not isinstance(rates, Mapping):
        return rates
    given = {str(name).lower(): value for name, value in rates.items()}
    if strange := set(given) - set(names):
        raise ValueError(
            f"rates must be of elements R and D of the netlist, but {min(strange)} is none"
        )
    return [_check.number(f"the rate of {one}", given.get(one, 1.0), least=0.0) for one in names]


def _refuse_twice(named: list[tuple[int, str]]) -> None:
    first: dict[str, int] = {}
    for number, name in named:
        if first.setdefault(name, number) != number:
            raise ValueError(
                f"line {number} must have a name of its own, but {name} stands on line "
                f"{first[name]} already"
            )


def _part(line: Line) -> Part:
    number, words = line.number, line.raw.split()
    if len(words) == 5 and words[0][0] in "vViI" and words[3].lower() == "dc":
        del words[3]
    if len(words) != 4:
        raise ValueError(
            f"line {number} must hold a name, two nodes and a value, but it is "
            f"{_check.shown(line.text)}"
        )
    name, *ends, value = (word.lower() for word in words)
    first, second = ("0" if end in GROUND else end for end in ends)
    if first == second:
        raise ValueError(f"line {number} must join two different nodes, but both are {first}")
    return Part(number, name, (first, second), value, (words[0], words[1], words[2]))


def _number(line: int, text: str) -> float:
    plain = text.replace("\u00b5", "u").replace("\u03bc", "u")
    # The pattern may read what does not match once per letter.
    found = VALUE.fullmatch(plain) if len(plain) <= WORD else None
    if not found:
        raise ValueError(f"line {line} must hold a number, but it is {_check.shown(text)}")
    value = float(found[1]) * FACTORS[found[2]]
    if not np.isfinite(value):
        raise ValueError(f"line {line} must hold a finite number, but it is {_check.shown(text)}")
    return value


def _model(line: Line) -> tuple[str, tuple[float, float]]:
    """Saturation current and thermal voltage of a diode model, by its name."""
    number, text = line
    apart = text.lower()
    for sign in "()=":
        apart = apart.replace(sign, f" {sign} ")
    words = apart.split()
    _, name, kind, *given = [*words, "", ""][: max(len(words), 3)]
    if given and (given[0], given[-1]) == ("(", ")"):
        given = given[1:-1]
    signs = given[1::3]
    if kind != "d" or len(given) % 3 or set(signs) - {"="} or {"(", ")"} & set(given):
        raise ValueError(
            f"line {number} must be a model D(IS=... N=...), but it is {_check.shown(line.text)}"
        )
    values = dict(zip(given[::3], given[2::3], strict=True))
    if strange := set(values) - {"is", "n"}:
        raise ValueError(f"line {number} must give IS and N only, but it gives {min(strange)}")
    current, ideality = (
        _number(number, values.get("is", "1e-14")),
        _number(number, values.get("n", "1")),
    )
    if not (current > 0 and ideality > 0):
        raise ValueError(
            f"line {number} must give positive IS and N, but it is {_check.shown(line.text)}"
        )
    return name, (current, ideality * ROOM)


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
    lines: list[Line], parts: list[Part], place: dict[str, int]
) -> tuple[str, dict[str, int]]:
    """What is read, and at which nodes, each with the line that says so."""
    shown = [
        (line.number, *one) for line in lines if line.words[0] == ".print" for one in _asked(line)
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


def _asked(line: Line) -> list[tuple[str, str]]:
    """Letters and names that a line .print holds, and nothing else."""
    text, found = line.text.partition(".print")[2].strip(), []
    place = 0
    while place < len(text):
        if seen := PRINT.match(text, place):
            found.append((seen[1], seen[2]))
            place = seen.end()
        elif text[place].isspace():
            place += 1
        else:
            word = text[place : place + WORD].split()[0]
            if word not in ("dc", "op"):
                raise ValueError(
                    f"line {line.number} must print v(node) or i(source), but it has "
                    f"{_check.shown(word)}"
                )
            place += len(word)
    return found
