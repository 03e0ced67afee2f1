"""The kind of rules.

Circuits by Kirchhoff's laws: node voltages from an LU solve of the whole grounded Laplacian, the
slope of an edge as the product of two drops, and loops as products of slopes. Layered networks by
the sum over layers. Nothing is differentiated.
"""

import numpy as np

from whorl_audit import draws, spec
from whorl_audit.expect import computed, drawn, largest, number, numbers, rows, summed, whole
from whorl_audit.keys import grid, interleave, layered
from whorl_audit.kinds import Kind
from whorl_audit.types import Array, Columns, Expected, Parameters, Table, Tables

WAYS = ("one-sided", "centred")
SURE = 1e-12


def keys(p: Parameters) -> dict[str, Table]:
    """The keys of every table."""
    counted = range(p["circuits"])
    betas = np.asarray(p["betas"], float)
    places = grid(family=range(p["families"]), depth=p["depths"], beta=betas)
    several = [grid(nodes=[n], circuit=counted, edge=range(2 * n + 1)) for n in p["sizes"]]
    nudges = np.asarray(p["nudges"], float)
    return {
        "edges": {name: np.concatenate([one[name] for one in several]) for name in several[0]},
        "loops": grid(nodes=p["sizes"], circuit=counted, row=range(3), column=range(3)),
        "nudges": grid(nodes=p["sizes"], circuit=counted, way=WAYS, nudge=nudges),
        "circuits": grid(nodes=p["sizes"], circuit=counted),
        "weights": layered(places),
        "network_loops": grid(
            family=range(p["families"]),
            depth=p["depths"],
            beta=betas,
            row=range(3),
            column=range(3),
        ),
        "networks": places,
    }


def sizes(p: Parameters) -> dict[str, int]:
    """The rows of the longest tables."""
    return {
        "edges": p["circuits"] * sum(2 * nodes + 1 for nodes in p["sizes"]),
        "weights": p["families"] * len(p["betas"]) * 9 * sum(p["depths"]),
    }


# Circuits.


def _circuit(seed: int, number: int, nodes: int, spread: float) -> dict[str, Array]:
    """A ring in random order, then more edges between different nodes, and conductances."""
    rng = draws.stream(seed, number, 9, nodes)
    ring = rng.permutation(nodes)
    ends = [[int(ring[k]), int(ring[(k + 1) % nodes])] for k in range(nodes)]
    while len(ends) <= 2 * nodes:
        pair = [int(end) for end in rng.integers(0, nodes, 2)]
        if pair[0] != pair[1]:
            ends.append(pair)
    logs = rng.standard_normal((2, len(ends)))
    forth, back = np.exp(spread * logs)
    return {"ends": np.array(ends), "forth": forth, "back": back, "targets": rng.uniform(0, 1, 3)}


def _potentials(ends: Array, sizes: Array, nodes: int, held: Array, fed: Array) -> Array:
    """Voltages `(nodes, cases)` from those of nodes 0 and 1 and currents fed into the others."""
    matrix = np.zeros((nodes, nodes))
    for (one, other), size in zip(ends, sizes, strict=True):
        matrix[one, one] += size
        matrix[other, other] += size
        matrix[one, other] -= size
        matrix[other, one] -= size
    matrix[:2] = np.eye(nodes)[:2]  # these two are known
    return np.linalg.solve(matrix, np.concatenate([held, fed]))


def _unit(ends: Array, sizes: Array, nodes: int) -> Array:
    """Voltages per unit current fed into each output, the last three nodes."""
    fed = np.zeros((nodes - 2, 3))
    fed[-3:] = np.eye(3)
    return _potentials(ends, sizes, nodes, np.zeros((2, 3)), fed)


def _loops(one: dict[str, Array], nodes: int, nudges: Array) -> dict[str, Array]:
    """All loops of one circuit, and the biases of its nudges."""
    ends, forth = one["ends"], one["forth"]
    none = np.zeros((nodes - 2, 1))
    free = _potentials(ends, forth, nodes, np.array([[1.0], [0.0]]), none)[:, 0]
    unit, other = _unit(ends, forth, nodes), _unit(ends, one["back"], nodes)

    def drop(field: Array) -> Array:
        return field[ends[:, 0]] - field[ends[:, 1]]

    # The output's slope by a conductance is minus the product of two drops.
    slopes, astray = (-drop(free)[:, None] * drop(field) for field in (unit, other))
    impedance = unit[-3:]
    response = slopes.T @ slopes
    error = one["targets"] - free[-3:]
    limit = slopes @ error
    biases = np.empty((2, len(nudges)))
    for at, nudge in enumerate(nudges):
        seen = {}
        for way in (1.0, -1.0):
            stiffness = way * nudge / np.trace(impedance)
            force = np.linalg.solve(np.eye(3) + stiffness * impedance, stiffness * error)
            # Half the squared drop, pushed less free, without their difference cancelling.
            extra = drop(unit @ force)
            seen[way] = -extra * (drop(free) + extra / 2) / stiffness
        for place, velocity in enumerate((seen[1.0], (seen[1.0] + seen[-1.0]) / 2)):
            biases[place, at] = np.linalg.norm(velocity - limit) / np.linalg.norm(limit)
    return {
        "response": response,
        "impedance": impedance,
        "propagation": response,
        "coupled": np.linalg.solve(impedance.T, response.T).T,
        "alignment": slopes.T @ astray,
        "bias": biases,
        "stretch": np.array(np.linalg.cond(impedance)),
    }


def _of_circuits(p: Parameters) -> dict[str, Columns]:
    nudges = np.asarray(p["nudges"], float)
    made = [
        (nodes, _circuit(p["seed"], number, nodes, p["spread"]))
        for nodes in p["sizes"]
        for number in range(p["circuits"])
    ]
    seen = [_loops(one, nodes, nudges) for nodes, one in made]
    found = {name: np.array([one[name] for one in seen]) for name in seen[0]}
    stretch = (1 + found["stretch"] / 1e3)[:, None, None]
    joined = {name: np.concatenate([one[name] for _, one in made]) for name in ("forth", "back")}
    ends = np.concatenate([one["ends"] for _, one in made])
    targets = np.array([one["targets"] for _, one in made])
    return {
        "edges": {
            "from": whole(ends[:, 0]),
            "to": whole(ends[:, 1]),
            "conductance": drawn(joined["forth"]),
            "way_back": drawn(joined["back"]),
        },
        "loops": {
            name: computed(found[name], _norm(found[name])[:, None, None] * stretch)
            for name in ("response", "impedance", "propagation", "coupled", "alignment")
        },
        # A bias is a small difference of velocities, and known to their digits.
        "nudges": {"bias": computed(found["bias"], (found["bias"] + 1e-1) * stretch)},
        "circuits": {
            **{f"target_{k}": drawn(targets[:, k]) for k in range(3)},
            **{
                f"{name}_slowest": computed(
                    _slowest(found[name]), _norm(found[name]) * stretch[:, 0, 0]
                )
                for name in ("coupled", "alignment")
            },
        },
    }


# Layered networks.


def _products(layers: Array) -> list[Array]:
    """From behind each layer to the outputs."""
    onward = [np.eye(3)]
    for layer in layers[:0:-1]:
        onward.append(onward[-1] @ layer)
    return onward[::-1]


def _network(layers: Array, way: Array, inputs: Array) -> tuple[Array, Array]:
    """The response, and the loop whose potentials return through other layers."""
    flow, loops = inputs, [np.zeros((3, 3)), np.zeros((3, 3))]
    ahead, behind = _products(layers), (_products(layers), _products(way))
    for layer, onward, *backward in zip(layers, ahead, *behind, strict=True):
        spread = sum(
            flow[i] ** 2 * (np.diag(layer[:, i]) - np.outer(layer[:, i], layer[:, i]))
            for i in range(3)
        )
        for which, back in enumerate(backward):
            loops[which] = loops[which] + onward @ spread @ back.T
        flow = layer @ flow
    plane = np.eye(3) - 1 / 3
    return loops[0], plane @ loops[1] @ plane


def _of_networks(p: Parameters) -> dict[str, Columns]:
    start: dict[int, list[Array]] = {depth: [] for depth in p["depths"]}
    back: dict[int, list[Array]] = {depth: [] for depth in p["depths"]}
    seen, inputs = [], []
    for family in range(p["families"]):
        other = int(draws.stream(p["seed"], family, 10).integers(0, 2**63))
        sample = draws.task(p["seed"], family, 1.0)[0][3]
        for depth in p["depths"]:
            for beta in p["betas"]:
                layers, way = (
                    draws.softmax_layers(seed, family, depth, beta, p["floor"])
                    for seed in (p["seed"], other)
                )
                start[depth].append(layers)
                back[depth].append(way)
                seen.append(_network(layers, way, sample))
                inputs.append(sample)
    response, alignment = (np.array(side) for side in zip(*seen, strict=True))
    order = keys(p)["networks"]["depth"]
    columns = {
        "weight": drawn(interleave(order, {n: np.array(one) for n, one in start.items()})),
        "way_back": drawn(interleave(order, {n: np.array(one) for n, one in back.items()})),
    }
    loops = {"response": response, "alignment": alignment}
    rows = np.array(inputs)
    slowest = _slowest(_plane(alignment))
    return {
        "weights": columns,
        "network_loops": {
            name: computed(one, _norm(one)[:, None, None]) for name, one in loops.items()
        },
        "networks": {
            **{f"x_{k}": drawn(rows[:, k]) for k in range(3)},
            "alignment_slowest": computed(slowest, _norm(alignment)),
        },
    }


def expected(p: Parameters) -> dict[str, Columns]:
    """Every drawn and computed column of the kind."""
    return _of_circuits(p) | _of_networks(p)


# Formulas.


def _norm(matrices: Array) -> Array:
    return np.sqrt(np.square(matrices).sum(axis=(1, 2)))


def _slowest(loops: Array) -> Array:
    return np.linalg.eigvalsh((loops + loops.transpose(0, 2, 1)) / 2).min(axis=1)


def _plane(loops: Array) -> Array:
    basis = np.array([[1, -1, 0], [1, 1, -2]]) / np.sqrt([[2], [6]])
    return basis @ loops @ basis.T


def _skew(loops: Array) -> Array:
    return _norm((loops - loops.transpose(0, 2, 1)) / 2) / _norm(loops)


def _minors(loops: Array) -> Array:
    """The sum of the principal minors of size two."""
    trace = np.trace(loops, axis1=1, axis2=2)
    return (trace**2 - np.trace(loops @ loops, axis1=1, axis2=2)) / 2


def _cubic(loops: Array) -> Array:
    """The discriminant of the characteristic polynomial of a loop of size one."""
    m = loops / _norm(loops)[:, None, None]
    b, c = -np.trace(m, axis1=1, axis2=2), _minors(m)
    d = -np.einsum("ni,ni->n", m[:, 0], np.cross(m[:, 1], m[:, 2]))
    return 18 * b * c * d - 4 * b**3 * d + b**2 * c**2 - 4 * c**3 - 27 * d**2


def _quadratic(loops: Array) -> Array:
    m = loops / _norm(loops)[:, None, None]
    return np.trace(m, axis1=1, axis2=2) ** 2 - 4 * _minors(m)


def _ones(values: Array) -> Array:
    return np.ones(len(values))


def _judged(tables: Tables, p: Parameters) -> Columns:
    table, loops = tables["circuits"], tables["loops"]
    of = {
        name: loops[name].reshape(-1, 3, 3)
        for name in ("response", "impedance", "propagation", "coupled", "alignment")
    }
    bias = tables["nudges"]["bias"].reshape(-1, 2, len(p["nudges"]))
    last, before = float(p["nudges"][-1]), float(p["nudges"][-2])
    slopes = np.log(bias[:, :, -2] / bias[:, :, -1]) / np.log(before / last)
    found: Columns = {}
    for name in ("propagation", "coupled", "alignment"):
        found[f"{name}_skew"] = summed(_skew(of[name]), _ones(table["nodes"]))
    apart = of["coupled"] @ of["impedance"] - of["response"]
    found["identity"] = summed(
        _norm(apart) / _norm(of["response"]),
        _norm(of["coupled"]) * _norm(of["impedance"]) / _norm(of["response"]),
    )
    bent = {name: _cubic(of[name]) for name in ("coupled", "alignment")}
    for name, values in bent.items():
        found[f"{name}_discriminant"] = summed(values, _ones(values))
    for name in bent:
        found[f"{name}_rises"] = whole(table[f"{name}_slowest"] / _norm(of[name]) < -SURE)
    for name, values in bent.items():
        found[f"{name}_turns"] = whole(values < -SURE)
    for place, name in enumerate(("one_sided_slope", "centred_slope")):
        found[name] = summed(slopes[:, place])
    return found


def _networks(tables: Tables, p: Parameters) -> Columns:
    del p
    table, loops = tables["networks"], tables["network_loops"]
    response, alignment = (loops[name].reshape(-1, 3, 3) for name in ("response", "alignment"))
    bent = _quadratic(alignment)
    return {
        "response_skew": summed(_skew(response), _ones(bent)),
        "alignment_skew": summed(_skew(alignment), _ones(bent)),
        "alignment_discriminant": summed(bent, _ones(bent)),
        "alignment_rises": whole(table["alignment_slowest"] / _norm(alignment) < -SURE),
        "alignment_turns": whole(bent < -SURE),
    }


def _spread(name: str, values: Array) -> dict[str, Expected]:
    ends = {"min": values.min(), "median": np.median(values), "max": values.max()}
    return numbers({f"{name}.{end}": value for end, value in ends.items()})


def statistics(tables: Tables, p: Parameters) -> dict[str, Expected]:
    """Every statistic of the kind."""
    table, nets = tables["circuits"], tables["networks"]
    found = rows(tables, "circuits", "networks")
    found |= largest(tables, "circuits", "propagation_skew", "identity")
    for name in ("coupled", "alignment"):
        found |= _spread(f"{name}.skew", table[f"{name}_skew"])
        counts = {"turning": "turns", "rising": "rises"}
        found |= numbers({f"{name}.{a}": table[f"{name}_{b}"].sum() for a, b in counts.items()})
        least = table[f"{name}_discriminant"].min()
        found[f"{name}.discriminant.min"] = number(least, 1.0)
    for nodes in p["sizes"]:
        here = table["nodes"] == nodes
        found |= numbers(
            {
                f"coupled.skew.median.nodes{nodes}": np.median(table["coupled_skew"][here]),
                f"coupled.rising.nodes{nodes}": table["coupled_rises"][here].sum(),
                f"alignment.turning.nodes{nodes}": table["alignment_turns"][here].sum(),
            }
        )
    for name in ("one_sided", "centred"):
        found |= _spread(f"{name}.slope", table[f"{name}_slope"])
    found |= largest(tables, "networks", "response_skew")
    found |= _spread("networks.skew", nets["alignment_skew"])
    counts = {"networks.turning": "alignment_turns", "networks.rising": "alignment_rises"}
    return found | numbers({name: nets[column].sum() for name, column in counts.items()})


KIND = Kind(
    spec=spec.beside(__file__),
    keys=keys,
    sizes=sizes,
    expected=expected,
    derived={"circuits": _judged, "networks": _networks},
    statistics=statistics,
    roundoff={
        "propagation_skew.max": None,
        "identity.max": None,
        "response_skew.max": None,
    },
)
