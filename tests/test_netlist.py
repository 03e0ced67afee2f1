"""Netlists: read, written, refused, and compared with ngspice where it is installed."""

import re
import shutil
import subprocess
import time

import jax.numpy as jnp
import numpy as np
import pytest

import whorl as wh
from whorl.systems.circuit import ROOM

DIVIDER = "divider\nV1 a 0 1\nR1 a b 1k\nR2 b 0 3k\n.print v(b)\n.end"


# ngspice has the constants of CODATA 2014; whorl those of 2018, which are exact.
THEIRS = 1.38064852e-23 * 300.15 / 1.6021766208e-19


def drawn(seed, **laws):
    """A random circuit with resistors, diodes in every second, voltages and currents."""
    draws = np.random.default_rng(seed)
    nodes, (diode,) = (6, 11)[seed // 2 % 2], laws.values() or (wh.Diode(1.5 * ROOM),)
    edges = [(node, int(draws.integers(node))) for node in range(1, nodes)]
    read = "currents" if seed // 4 % 2 else "voltages"
    held = {0, 1} | ({nodes - 2, nodes - 1} if read == "currents" else set())
    while len(edges) < 2 * nodes:
        ends = tuple(map(int, draws.integers(nodes, size=2)))
        # Between two ideal sources a diode would carry any current at all.
        if ends[0] != ends[1] and not held.issuperset(ends):
            edges.append(ends)
    sizes = 1e-3 * np.exp(draws.standard_normal(len(edges)))
    elements = {}
    if seed % 2:
        # The tree stays resistive, so that no node hangs on a diode that blocks.
        elements = dict.fromkeys(range(2 * nodes - 3, 2 * nodes), diode)
        sizes[-3:] = 10.0 ** draws.uniform(-12, -8, 3) / (1.5 * THEIRS)
    circuit = wh.Circuit(
        edges,
        sizes,
        sources=[1, 2],
        outputs=[nodes - 2, nodes - 1],
        ground=[0],
        drive=["voltages", "currents"],
        read=read,
        elements=elements,
    )
    return circuit, np.array([[draws.uniform(-5, 5), 1e-3 * draws.uniform(-5, 5)]])


def spice_diode(drop):
    """The diode of SPICE: Shockley's law down to three thermal voltages, and behind it a cubic
    that meets it with the same slope.
    """
    size = drop / (1.5 * THEIRS)
    cubic = -1 - (3 / (np.e * jnp.minimum(size, -3.0))) ** 3
    return jnp.where(size < -3, 1.5 * THEIRS * cubic, wh.Diode(1.5 * THEIRS).current(drop))


def spice(text):
    """The operating point that ngspice prints, in the order of the netlist."""
    text = re.sub(r"IS=(\S+) N=\S+\)", r"IS=\1 N=1.5)", text)
    wanted = re.findall(r"[vi]\([^)]*\)", text.splitlines()[-2])
    deck = text.removesuffix(".end").replace(".print", "*")
    deck += (
        "\n.options gmin=1e-20 reltol=1e-13 abstol=1e-18 vntol=1e-15\n.control\nset numdgt=15\nop\n"
    )
    deck += "".join(f"print {one}\n" for one in wanted) + ".endc\n.end\n"
    done = subprocess.run(
        ["ngspice", "-b"], input=deck, capture_output=True, text=True, check=False
    )
    said = dict(re.findall(r"^([vi]\([^)]*\)) = (\S+)", done.stdout, flags=re.M))
    return np.array([float(said[one]) for one in wanted])


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("ngspice") is None, reason="ngspice is not installed")
@pytest.mark.parametrize("seed", range(50))
def test_ngspice_finds_the_same_operating_point(seed):
    written, inputs = drawn(seed, law=wh.Diode(1.5 * THEIRS))
    theirs = spice(wh.to_netlist(written, inputs))
    circuit, _ = drawn(seed, law=spice_diode)
    ours = np.asarray(wh.predict(circuit, inputs))[0]
    largest = float(np.abs(circuit.settle(jnp.asarray(inputs), jnp.zeros((1, 2)))).max())
    scale = largest if circuit.reading == "voltages" else largest * 1e-2
    np.testing.assert_allclose(ours, theirs, rtol=1e-13, atol=1e-13 * scale)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("seed", [0, 1])
def test_a_circuit_comes_back_from_its_netlist(seed):
    circuit, inputs = drawn(seed)
    again, same = wh.from_netlist(wh.to_netlist(circuit, inputs))
    np.testing.assert_array_equal(inputs, same)
    assert (again.drive, again.reading) == (circuit.drive, circuit.reading)
    np.testing.assert_allclose(
        wh.predict(again, same), wh.predict(circuit, inputs), rtol=1e-9, atol=1e-12
    )


def test_tabs_part_words_and_a_mil_is_a_thousandth_of_an_inch():
    circuit, inputs = wh.from_netlist(DIVIDER.replace(" ", "\t").replace("1k", "1000mil"))
    expected = 3e3 / (3e3 + 25.4e-3)
    assert float(wh.predict(circuit, inputs)[0, 0]) == pytest.approx(expected, rel=1e-15)


def test_a_netlist_means_what_spice_means():
    text = """ladder of both kinds
* a comment
V1 a gnd DC 2 ; held
I1 b 0 1m
R1 a
+ b 1K
r2 B 0 0.5meg
Vm c 0 0
R3 b c 2e3ohm
.print i(vm)
.op
.end
this is not read"""
    circuit, inputs = wh.from_netlist(text)
    np.testing.assert_array_equal(inputs, [[2.0, -1e-3]])
    middle = (2.0 / 1e3 - 1e-3) / (1 / 1e3 + 1 / 0.5e6 + 1 / 2e3)
    assert float(wh.predict(circuit, inputs)[0, 0]) == pytest.approx(middle / 2e3, rel=1e-13)


def spoilt(old, new):
    return DIVIDER.replace(old, new)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (spoilt("1k", "-1k"), "line 3 must hold a positive resistance, but it is -1000"),
        (spoilt("1k", "1e999"), "line 3 must"),
        (spoilt("1k", "0"), "line 3 must hold a positive resistance, but it is 0"),
        (spoilt("1k", "k"), "line 3 must hold a number, but it is 'k'"),
        (spoilt("R1 a b", "R1 a a"), "line 3 must join two different nodes, but both are a"),
        (spoilt("R1 a b 1k", "R1 a b"), "line 3 must hold a name, two nodes and a value"),
        (spoilt("R1 a b 1k", "Q1 a b 1k"), "line 3 must begin with R, V, I, D, .model, .print or"),
        (spoilt("R2 b", "r1 b"), "line 4 must have a name of its own, but r1 stands on line 3"),
        (
            spoilt("R2", ".model m D(IS=1)\n.model M D(IS=2)\nR2"),
            "line 5 must have a name of its own, but m stands on line 4",
        ),
        (spoilt("V1 a 0 1", "V1 a b 1"), "line 2 must have one end at node 0"),
        (spoilt("V1 a 0 1", "V1 z 0 1"), "line 2 must drive a node of a line R or D, but z is on"),
        (
            spoilt("R1 a b 1k", "D1 a b dm"),
            "line 3 must name a model of the netlist, but it is 'dm'",
        ),
        (spoilt("R1", ".model x D(RS=1)\nR1"), "line 3 must give IS and N only, but it gives rs"),
        (spoilt("R1", ".model x D(IS=0)\nR1"), "line 3 must give positive IS and N"),
        (spoilt("R1", ".model x NPN(IS=1)\nR1"), r"line 3 must be a model D\(IS=... N=...\)"),
        (spoilt("v(b)", "v(z)"), "line 5 must print nodes of the netlist, but z is none"),
        (spoilt("v(b)", "i(v1)"), "line 5 must print currents of sources of 0 volts"),
        (spoilt("v(b)", "v(b) i(v1)"), "must print voltages or currents, but it prints both"),
        (spoilt(".print v(b)\n", ""), "the netlist must say what is read"),
        (spoilt("R2 b 0 3k", ".include /etc/passwd"), "line 4 must begin with R, V, I, D"),
        ("title\n+ R1 a b 1", "line 2 must continue a line, but there is none before it"),
        (spoilt("1k", "1e-320"), "line 3 must hold a resistance whose inverse is finite"),
        (spoilt("R2", "V2 a 0 2\nR2"), "line 4 must drive a node of its own, but line 2 drives a"),
        (spoilt("R2", "I2 0 a 2\nR2"), "line 4 must drive a node of its own, but line 2 drives a"),
        (spoilt("R2", "R3 c d 1\nR2"), "line 4 must lead to node 0 or .* does from c"),
        (spoilt("v(b)", "v(a)"), "line 5 must print nodes that settle, but a is driven by line 2"),
        (spoilt("v(b)", "v(gnd)"), "line 5 must print nodes that settle, but 0 is the ground"),
        (spoilt("v(b)", "v(b) v(b)"), "line 5 must print each node once, but b comes twice"),
        (spoilt("v(b)", "v(b) w(a)"), r"line 5 must print v\(node\) or .*, but it has 'w\(a\)'"),
        (spoilt("V1 a 0 1\n", ""), "the netlist must have a line V or I that drives a node"),
        ("title only", "the netlist must have a line R or D after its title, but it has none"),
        (3, "text must be a netlist of at most"),
    ],
)
@pytest.mark.usefixtures("as_users_call_it")
def test_a_bad_netlist_is_refused_in_one_sentence(text, message):
    with pytest.raises(ValueError, match=message) as refusal:
        wh.from_netlist(text)
    assert "\n" not in str(refusal.value)


def test_values_are_read_with_their_units():
    sizes = {"1k": 1e3, "1Meg": 1e6, "2u": 2e-6, "2\u00b5": 2e-6, "3.3kohm": 3.3e3, "5M": 5e-3}
    for text, ohms in sizes.items():
        circuit, _ = wh.from_netlist(DIVIDER.replace("1k", text))
        assert float(1 / circuit.conductances[0]) == pytest.approx(ohms, rel=1e-15)


@pytest.mark.usefixtures("as_users_call_it")
def test_what_spice_has_no_line_for_is_not_written():
    circuit = wh.Circuit(
        [[0, 1], [1, 2]],
        [1.0, 1.0],
        sources=[0],
        outputs=[1],
        ground=[2],
        elements={1: lambda drop: drop**3 + drop},
    )
    with pytest.raises(ValueError, match="elements must be resistors and diodes to be written"):
        wh.to_netlist(circuit, [[1.0]])
    with pytest.raises(ValueError, match="inputs must be one row, but there are 2"):
        wh.to_netlist(wh.from_netlist(DIVIDER)[0], [[1.0], [2.0]])


NAMED = """title
V1 In 0 1
.options reltol=1e-3
.control
run
.endc
R_top In Mid 1k
.tran 1n 1u
Rlow Mid 0 3k
D9 Mid 0 dm
.model dm D ( IS = 1e-12 N= 1.5 )
.print v(mid)
.end"""


def test_names_are_kept_shown_and_written_again():
    circuit, inputs = wh.from_netlist(NAMED)
    assert circuit.names.nodes == ("In", "Mid", "0")
    assert circuit.names.edges == ("R_top", "Rlow", "D9")
    assert "R_top   In to Mid   0.001 S" in str(circuit)
    assert "R_top" in repr(circuit)
    text = wh.to_netlist(circuit, inputs)
    assert {"R_top In Mid 1000.0", "V1 In 0 1.0", ".print v(Mid)"} < set(text.splitlines())
    again, _ = wh.from_netlist(text)
    assert again.names == circuit.names._replace(notes=())
    run = wh.learn(circuit, inputs, [[0.5]], rule=wh.coupled_learning(), scale=0.1, schedule=[0])
    assert run.system.names == circuit.names
    meters = NAMED.replace("D9", "Vm out 0 0\nR5 Mid out 10\nD9").replace("v(mid)", "i(vm)")
    assert "Vm out 0 0" in wh.to_netlist(*wh.from_netlist(meters))


def test_what_spice_is_to_do_is_skipped_with_a_note():
    circuit, _ = wh.from_netlist(NAMED)
    assert [note.split(", ")[1] for note in circuit.names.notes] == [
        ".control to .endc",
        ".options",
        ".tran",
    ]
    assert "skipped: line 8, .tran" in str(circuit)


def test_mobility_and_rates_reach_the_circuit():
    circuit, _ = wh.from_netlist(NAMED, mobility="logarithmic", rates={"RLOW": 0.0})
    assert circuit.rates.tolist() == [1.0, 0.0, 1.0]
    assert circuit.geometries[0].law is wh.geometry.logarithmic
    assert wh.from_netlist(NAMED, rates=[1.0, 2.0, 3.0])[0].rates.tolist() == [1.0, 2.0, 3.0]
    with pytest.raises(ValueError, match=r"rates must be of elements R and D .*, but r7 is none"):
        wh.from_netlist(NAMED, rates={"r7": 1.0})


def test_a_netlist_is_read_from_its_file(tmp_path):
    path = tmp_path / "my.cir"
    path.write_text(NAMED)
    for given in (path, str(path)):
        assert wh.from_netlist(given)[0].names == wh.from_netlist(NAMED)[0].names
    for wrong in (tmp_path / "none.cir", str(tmp_path / "none.cir"), tmp_path):
        with pytest.raises(ValueError, match="text must") as refusal:
            wh.from_netlist(wrong)
        assert "\n" not in str(refusal.value)


BASE = "t\nV1 a 0 1\nR1 a b 1k\nR2 b 0 3k\n"
DIODES = "".join(f"D{i} a b m{i}\n.model m{i} D(N={1 + i * 1e-4})\n" for i in range(2000))
LONG = {
    "continued": BASE + ".print v(b)\n" + "+\n" * 200_000,
    "continued words": BASE + ".print v(b)\n" + ("+ " + "dc " * 300 + "\n") * 5000,
    "model": BASE + ".model m D(a" + " " * 500_000 + "b)\n.print v(b)",
    "model of spaces": BASE + ".model m D" + " " * 500_000 + "x\n.print v(b)",
    "prints": BASE + ".print " + "v( " * 200_000,
    "print of spaces": BASE + ".print v(" + " " * 500_000,
    "digits": BASE.replace("1k", "1" * 200_000 + "x!") + ".print v(b)",
    "models": BASE + DIODES + ".print v(b)",
    "parts": BASE + "".join(f"R{i} a b 1k\n" for i in range(3, 110_000)) + ".print v(b)",
}


@pytest.mark.parametrize("name", LONG)
def test_a_long_netlist_is_read_or_refused_in_linear_time(name):
    began = time.process_time()
    said = ""
    try:
        wh.from_netlist(LONG[name])
    except ValueError as refusal:
        said = str(refusal)
    assert "\n" not in said
    assert len(said) < 400
    assert time.process_time() - began < 5
