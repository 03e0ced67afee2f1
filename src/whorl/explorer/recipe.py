"""The Python that remakes a state: a script of checked numbers and words of a list."""

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from whorl.explorer import wires
from whorl.explorer.state import MAX_EPOCHS, SAMPLES, State
from whorl.explorer.system import acting, looped, turns_through, widths
from whorl.registry import Entry, Registry, laws, policies, rules

HEAD = '''"""Remakes what the explorer of whorl showed."""

import jax
import numpy as np

jax.config.update("jax_enable_x64", True)

import whorl as wh
'''


TASK = "task = wh.Task.random(3, 3, seed=data)\ninputs, targets = task.inputs, task.targets\n"


def python(state: State) -> str:
    """A script that needs nothing but whorl."""
    if state.system == "rps":
        return HEAD + _cycle(state)
    if state.system == "circuit":
        return HEAD + _circuit(state)
    if state.system == "held":
        return HEAD + _data(state).partition("\n\n")[2] + _held(state)
    return "\n".join([HEAD + _data(state), _rules(state), _run(state)])


def _parts(parts: tuple[float, float, float]) -> str:
    return f"np.array({list(parts)!r}) / {sum(parts)!r}"


def _data(state: State) -> str:
    streams = f"columns, data, order, turns = np.random.default_rng({state.seed}).spawn(4)\n"
    if state.system == "column":
        column = f"net = wh.Network([({_parts(state.start)})[:, None]])  # one column that all the flow enters\n"
        repeated = f"np.tile({_parts(state.target)}, ({SAMPLES}, 1))"
        return f"from whorl.learning import schedule\n\n{streams}{column}inputs, targets = np.ones(({SAMPLES}, 1)), {repeated}\n"
    if state.system == "graph":
        graph = looped(state)
        shares = np.asarray(graph.shares).tolist()
        inner = len(graph.nodes) - 3
        ends = f"sources={list(graph.nodes[:3])!r}, sinks={list(graph.nodes[inner:])!r}"
        made = f"net = wh.Graph(\n    {graph.edges!r},\n    {shares!r},\n    {ends},\n)\n"
        return f"from whorl.learning import schedule\n\n{streams}{made}{TASK}"
    made = f"net = wh.Network.random({widths(state)!r}, imbalance={state.imbalance!r}, floor={state.floor!r}, seed=columns)\n"
    return f"from whorl.learning import schedule\n\n{streams}{made}{TASK}"


def _rules(state: State) -> str:
    last = state.updates
    order = (
        f"schedule.permuted({SAMPLES}, {MAX_EPOCHS}, order)[:{last}]"
        if state.shown == "all"
        else f"np.full({last}, {state.sample - 1})"
    )
    senses = {
        "fair": f"schedule.fair_turns({SAMPLES * MAX_EPOCHS}, turns)[:{last}]",
        "plus": f"np.ones({last}, dtype=int)",
        "minus": f"-np.ones({last}, dtype=int)",
        "alternating": f"(-1) ** np.arange({last})",
    }[state.turn]
    omega = state.omega if state.turns else 0.0
    settings = state.settings | {"omega": omega}
    lines = [
        f"samples = {order}",
        f"senses = {senses}",
        f"law = {_law(state)}",
        f"policy = {_made(policies, state.policy, settings, law='law')}",
    ]
    return "\n".join(lines) + "\n"


def _law(state: State) -> str:
    base = _made(laws, acting(state), state.settings)
    if turns_through(laws.get(state.law)):
        return _made(laws, state.law, state.settings, base=base)
    if state.turns:
        return base
    turned = f"wh.rotational(alpha=1.0, omega=0.0, base={base})"
    return f"{turned}  # a spectral law: it does not turn"


def _made(among: Registry[Entry], name: str, settings: Mapping[str, Any], **objects: str) -> str:
    """What makes an entry: a public function of whorl, or anything else through the registry.

    The function has arguments, the registry has parameters, and their names may differ.
    """
    entry = among.get(name)
    called = getattr(entry.factory, "__name__", "")
    public = getattr(sys.modules["whorl"], called, None) is entry.factory
    names = {one.name: one.argument or one.name for one in entry.parameters} if public else {}
    given = {names.get(key, key): repr(value) for key, value in entry.takes(settings).items()}
    text = ", ".join(f"{key}={value}" for key, value in (given | objects).items())
    if public:
        return f"wh.{called}({text})"
    return f"wh.registry.{among.group.partition('.')[2]}.get({name!r}).make({text})"


def _run(state: State) -> str:
    now = (
        "jax.tree.map(lambda leaf: leaf[frame], pair.states[0])"
        if state.system == "graph"
        else "wh.Network([layer[frame] for layer in pair.states[0].layers])"
    )
    return f"""pair = wh.train(net, inputs, targets, policy=policy, schedule=samples, turns=senses, stride=1)
print(pair)

frame = min({state.frame}, pair.made)
now = {now}
print(wh.certify(wh.closed_loop(wh.response(now, inputs, selected={state.sample - 1}), law)))
print(wh.curvature(now, inputs, targets, selected={state.sample - 1}, law=law))
"""


def _cycle(state: State) -> str:
    return f"""import scipy.integrate

from whorl.simplex import velocity

start = {_parts(state.start)}
motion = jax.jit(lambda p: velocity(p, wh.rock_paper_scissors((p,))[0]))
times = 0.2 * np.arange({state.updates + 1})
orbit = scipy.integrate.solve_ivp(lambda _, p: np.asarray(motion(p)), (0, times[-1]), start, "DOP853", times, rtol=1e-9, atol=1e-12).y.T
print("product of the shares, first and last:", orbit[0].prod(), orbit[-1].prod())
print(wh.integrability(wh.rock_paper_scissors, (start,)))
"""


def _held(state: State) -> str:
    return f"""
K = wh.response(net, inputs, selected={state.sample - 1})
angle = np.radians({90 * state.frame / state.updates!r})
law = wh.rotational(np.cos(angle), np.sin(angle), base=wh.direct())
print(wh.certify(wh.closed_loop(K, law)))
print(wh.rate_bounds(K))
print(wh.certify(wh.closed_loop(K, wh.critical())))
"""


def _circuit(state: State) -> str:
    circuit = wires.drawn(state.seed)
    rule = _made(rules, state.rule, state.settings)
    return f"""edges = {np.asarray(circuit.edges).tolist()!r}
conductances = {np.asarray(circuit.conductances).tolist()!r}
circuit = wh.Circuit(
    edges, conductances, sources={list(circuit.sources)!r}, outputs={list(circuit.sinks)!r},
    drive="currents", read="currents",
)
print(wh.certify(wh.closed_loop(circuit, [[1.0]], {rule})))
"""
