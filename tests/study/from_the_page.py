"""Tables redone by somebody who has docs/studies.md, a design and NumPy, and nothing else.

Written from the words of the page, section by section, and kept apart from whorl and from
whorl_audit: this file imports neither. Whatever decides a bit here must stand on the page. `p` is
the parameters of a design as a dictionary; a table is a dictionary of columns.
"""

from itertools import product
from math import fsum

import numpy as np

# Random numbers


def stream(seed, *key):
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


def task(p, trial, width=3, key=()):
    """Inputs and targets: vertices and three mixtures, times the teacher rows."""
    rng = stream(p["seed"], trial, *key, 0)
    mixtures = [rng.dirichlet(np.ones(width)) for _ in range(3)]
    teacher = np.array(
        [rng.dirichlet(np.full(width, float(p["concentration"]))) for _ in range(width)]
    )
    inputs = np.array([*np.eye(width), *mixtures])
    return inputs, inputs @ teacher


def softmax_columns(p, trial, depth, beta, width=3, key=()):
    rng = stream(p["seed"], trial, *key, 1, depth)
    layers = []
    for _ in range(depth):
        t = beta * rng.standard_normal((width, width))
        g = np.exp(t - t.max(axis=0))
        total = g[0]
        for row in g[1:]:
            total = total + row
        layers.append(((1 - p["floor"]) * g) / total + p["floor"] / width)
    return np.array(layers)


def dirichlet_columns(p, family, depth):
    rng = stream(p["seed"], family, 1, depth)
    layers = np.zeros((depth, 3, 3))
    for layer, column in product(range(depth), range(3)):
        drawn = rng.dirichlet(np.full(3, float(p["column_concentration"])))
        layers[layer, :, column] = (1 - p["floor"]) * drawn + p["floor"] / 3
    return layers


def control_columns(p, depth):
    rng = stream(p["seed"], 0, 4, depth)
    layers = np.zeros((depth, 3, 3))
    for layer, column in product(range(depth), range(2)):
        drawn = rng.dirichlet(np.full(2, float(p["column_concentration"])))
        layers[layer, :2, column] = (1 - p["floor"]) * drawn + p["floor"] / 2
    layers[:, 2, 2] = 1
    return layers


def order(p, trial, *key, samples=6):
    rng = stream(p["seed"], trial, *key)
    return np.concatenate([rng.permutation(samples) for _ in range(p["epochs"])])


def turns(p, trial):
    return np.where(stream(p["seed"], trial, 3).integers(0, 2, 6 * p["epochs"]) == 1, 1, -1)


def angles(p, trial):
    return stream(p["seed"], trial, 5).uniform(0, 2 * np.pi, 6 * p["epochs"])


def noise(p, trial):
    return stream(p["seed"], trial, 7).standard_normal((6 * p["epochs"], 3))


def resamples(p, units):
    return stream(p["bootstrap_seed"]).integers(0, units, (p["resamples"], units))


# Drawn tables, keys included, rows in the order of the page


def tasks_table(p, unit, units):
    rows = [(number, sample) for number in range(units) for sample in range(6)]
    made = [task(p, number) for number in range(units)]
    table = {unit: [row[0] for row in rows], "sample": [row[1] for row in rows]}
    for side, name in enumerate("xy"):
        table |= {
            f"{name}_{i}": [made[number][side][sample, i] for number, sample in rows]
            for i in range(3)
        }
    return columns_of(table)


def weights_table(keys, networks):
    """`keys` maps a key column to its values, one for each network; `networks` are their layers."""
    names = [*keys, "layer", "row", "column", "weight"]
    rows = []
    for at, layers in enumerate(networks):
        for place in np.ndindex(layers.shape):
            rows.append((*(values[at] for values in keys.values()), *place, layers[place]))
    return columns_of({name: [row[n] for row in rows] for n, name in enumerate(names)})


def columns_of(table):
    return {name: np.array(values) for name, values in table.items()}


def softmax_weights(p, unit, units, depths):
    at = list(product(range(units), depths, map(float, p["betas"])))
    keys = {name: [one[n] for one in at] for n, name in enumerate((unit, "depth", "beta"))}
    return weights_table(keys, [softmax_columns(p, *one) for one in at])


def structural_drawn(p):
    at = list(product(range(p["families"]), p["depths"]))
    keys = {"family": [family for family, _ in at], "depth": [depth for _, depth in at]}
    return {
        "tasks": tasks_table(p, "family", p["families"]),
        "weights": weights_table(keys, [dirichlet_columns(p, *one) for one in at]),
        "control_weights": weights_table(
            {"depth": p["depths"]}, [control_columns(p, depth) for depth in p["depths"]]
        ),
    }


def threshold_drawn(p):
    return {
        "tasks": tasks_table(p, "family", p["families"]),
        "weights": softmax_weights(p, "family", p["families"], p["depths"]),
    }


def schedule_table(p, **drawn):
    trials, updates = range(p["trials"]), range(6 * p["epochs"])
    keys = columns_of(
        {"trial": np.repeat(trials, len(updates)), "update": np.tile(updates, len(trials))}
    )
    return keys | {
        name: np.concatenate([draw(p, trial) for trial in trials]) for name, draw in drawn.items()
    }


def horizon_drawn(p):
    return {
        "tasks": tasks_table(p, "trial", p["trials"]),
        "weights": softmax_weights(p, "trial", p["trials"], p["depths"]),
        "schedule": schedule_table(p, sample=lambda p, trial: order(p, trial, 2), turn=turns),
    }


def foresight_drawn(p):
    depths = [*p["depths"], *([] if p["deep"] in p["depths"] else [p["deep"]])]
    rows = np.array(list(product(range(p["trials"]), range(6 * p["epochs"]), range(3))))
    readings = {name: rows[:, n] for n, name in enumerate(("trial", "update", "action"))}
    orders = {
        name: lambda p, trial, key=key: order(p, trial, key)
        for name, key in (("sample", 2), ("foreseen", 6))
    }
    return {
        "tasks": tasks_table(p, "trial", p["trials"]),
        "weights": softmax_weights(p, "trial", p["trials"], depths),
        "schedule": schedule_table(p, **orders, angle=angles),
        "readings": readings
        | {"error": np.concatenate([noise(p, trial).ravel() for trial in range(p["trials"])])},
    }


def circuit(p, number, nodes):
    """Edges, both rows of conductances, and targets."""
    rng = stream(p["seed"], number, 9, nodes)
    ring = rng.permutation(nodes)
    edges = [(ring[k - 1], ring[k]) for k in range(1, nodes)] + [(ring[-1], ring[0])]
    while len(edges) < 2 * nodes + 1:
        one, other = rng.integers(0, nodes, 2)
        if one != other:
            edges.append((one, other))
    logs = rng.standard_normal((2, 2 * nodes + 1))
    return edges, np.exp(p["spread"] * logs), rng.uniform(0, 1, 3)


def rules_drawn(p):
    made = {one: circuit(p, one[1], one[0]) for one in product(p["sizes"], range(p["circuits"]))}
    edges = [
        (*one, number, *edge, *sizes.T[number])
        for one, (ends, sizes, _) in made.items()
        for number, edge in enumerate(ends)
    ]
    names = ("nodes", "circuit", "edge", "from", "to", "conductance", "way_back")
    places = list(product(range(p["families"]), p["depths"], map(float, p["betas"])))
    back = [
        softmax_columns(p | {"seed": int(stream(p["seed"], family, 10).integers(0, 2**63))}, *rest)
        for family, *rest in ((one[0], *one) for one in places)
    ]
    mixtures = [task(p | {"concentration": 1.0}, family)[0][3] for family, *_ in places]
    keys = ("family", "depth", "beta")
    return {
        "edges": columns_of({name: [row[n] for row in edges] for n, name in enumerate(names)}),
        "circuits": columns_of(
            {name: [one[n] for one in made] for n, name in enumerate(("nodes", "circuit"))}
            | {f"target_{k}": [targets[k] for *_, targets in made.values()] for k in range(3)}
        ),
        "weights": softmax_weights(p, "family", p["families"], p["depths"])
        | {"way_back": np.concatenate([layers.ravel() for layers in back])},
        "networks": columns_of(
            {name: [one[n] for one in places] for n, name in enumerate(keys)}
            | {f"x_{k}": [row[k] for row in mixtures] for k in range(3)}
        ),
    }


DRAWN = {
    "rules": rules_drawn,
    "structural": structural_drawn,
    "threshold": threshold_drawn,
    "horizon": horizon_drawn,
    "foresight": foresight_drawn,
}


def wide_arm(p, trial, depth, beta, number=8):
    """What the arm `wide` draws and does not store: inputs, targets, layers and order."""
    n = p["wide"]
    return (
        *task(p, trial, n, (number,)),
        softmax_columns(p, trial, depth, beta, n, (number,)),
        order(p, trial, number, 2, samples=n + 3),
    )


# The physics, in one place

C = np.array([[0, -1, 1], [1, 0, -1], [-1, 1, 0]]) / np.sqrt(3)


def circulant(n):
    c = [
        2 / n * sum(np.sin(2 * np.pi * k * m / n) for k in range(1, (n + 1) // 2)) for m in range(n)
    ]
    return np.array([[c[(i - j) % n] for j in range(n)] for i in range(n)])


class Sample:
    """One sample in a network: what enters every layer, what stands behind it, and the residual."""

    def __init__(self, layers, x, y):
        self.layers, self.enters = layers, [x]
        for layer in layers:
            self.enters.append(layer @ self.enters[-1])
        self.residual = y - self.enters[-1]
        self.behind = [np.eye(len(y))]
        for layer in layers[:0:-1]:
            self.behind.insert(0, self.behind[0] @ layer)

    def factor(self):
        """B with K* = B B^T.

        A column p has Q(p) = S S^T with S = diag(u) (I - u u^T), u = sqrt(p).
        """
        blocks = []
        for layer, x, behind in zip(self.layers, self.enters, self.behind, strict=False):
            for i, p in enumerate(layer.T):
                u = np.sqrt(p)
                blocks.append(x[i] * behind @ (np.diag(u) @ (np.eye(len(u)) - np.outer(u, u))))
        return np.hstack(blocks)

    def response(self):
        factor = self.factor()
        return factor @ factor.T

    def score(self, v):
        return [
            np.outer(behind.T @ v, x) for behind, x in zip(self.behind, self.enters, strict=False)
        ]

    def derivatives(self, score):
        """G and H_V along a score."""
        means = [(p * s).sum(axis=0) for p, s in zip(self.layers, score, strict=True)]
        first = [p * (s - m) for p, s, m in zip(self.layers, score, means, strict=True)]
        second = []
        for p, s, m in zip(self.layers, score, means, strict=True):
            off = (s - m) ** 2
            second.append(p * (off - (p * off).sum(axis=0)))
        depth = len(self.layers)
        g, h = (
            sum(self.behind[a] @ moved[a] @ self.enters[a] for a in range(depth))
            for moved in (first, second)
        )
        for a in range(depth):
            flow = first[a] @ self.enters[a]
            for b in range(a + 1, depth):
                h = h + 2 * self.behind[b] @ first[b] @ flow
                flow = self.layers[b] @ flow
        return g, h


def step(layers, score, eta):
    grown = [p * np.exp(eta * s) for p, s in zip(layers, score, strict=True)]
    return [p / p.sum(axis=0) for p in grown]


def mean_loss(layers, inputs, targets):
    return sum(
        (Sample(layers, x, y).residual ** 2).sum() / 2 for x, y in zip(inputs, targets, strict=True)
    ) / len(inputs)


# threshold


def configuration(p, layers, inputs, targets):
    """The computed columns of one row."""
    samples = [Sample(layers, x, y) for x, y in zip(inputs, targets, strict=True)]
    selected = int(np.argmax([(one.residual**2).sum() for one in samples]))
    driving = samples[selected]
    inverse, e = (
        np.linalg.pinv(driving.response(), rcond=p["rank_tol"], hermitian=True),
        driving.residual,
    )
    straight, turning = driving.score(inverse @ e), driving.score(inverse @ (C @ e))
    jets = [one.derivatives(turning) for one in samples]
    moved, bent = (
        [(g**2).sum() for g, _ in jets],
        [(one.residual * h).sum() for one, (_, h) in zip(samples, jets, strict=True)],
    )
    plus, minus = (
        [s + sign * t for s, t in zip(straight, turning, strict=True)] for sign in (1, -1)
    )
    values = np.linalg.svd(driving.factor(), compute_uv=False) ** 2
    found = {"selected": selected, "displacement": sum(moved), "bending": sum(bent)}
    found |= {"selected_displacement": moved[selected], "selected_bending": bent[selected]}
    found["condition"] = values[0] / min(values[values > p["rank_tol"] * values[0]])
    velocity, commanded = driving.response() @ (inverse @ (e + C @ e)), e + C @ e
    found |= {f"velocity_{i}": velocity[i] for i in range(3)} | {
        f"commanded_{i}": commanded[i] for i in range(3)
    }
    for prefix, eta in (("loss", p["finite_step"]), ("back", -p["finite_step"])):
        for name, score in (("plus", plus), ("minus", minus), ("still", straight)):
            found[f"{prefix}_{name}"] = mean_loss(step(layers, score, eta), inputs, targets)
    return found


def threshold_computed(p):
    """Keys and computed columns of `configurations`."""
    rows = []
    for family in range(p["families"]):
        inputs, targets = task(p, family)
        for depth, beta in product(p["depths"], map(float, p["betas"])):
            found = configuration(p, list(softmax_columns(p, family, depth, beta)), inputs, targets)
            rows.append({"family": family, "depth": depth, "beta": beta} | found)
    return columns_of({name: [row[name] for row in rows] for name in rows[0]})


def threshold_derived(p, t, weights):
    """The derived columns of `configurations` from its stored ones, and from the stored
    `weights`.
    """
    coefficient = (t["displacement"] - t["bending"]) / 12
    ratio = t["selected_bending"] / t["selected_displacement"]
    ahead, back = (
        (t[f"{way}_plus"] + t[f"{way}_minus"]) / 2 - t[f"{way}_still"] for way in ("loss", "back")
    )
    finite = (ahead + back) / (2 * (p["finite_step"] * p["finite_step"]))
    apart = [np.abs(t[f"velocity_{i}"] - t[f"commanded_{i}"]) for i in range(3)]
    off = np.abs(exact_column_sums(weights["weight"]) - 1).max(axis=1)
    ends = np.cumsum(t["depth"])
    return {
        "coefficient": coefficient,
        "ratio": ratio,
        "favourable": (coefficient < 0).astype(int),
        "predicted": (ratio > 1).astype(int),
        "finite": finite,
        "coefficient_residual": np.abs(finite - coefficient)
        / np.maximum(np.abs(coefficient), t["displacement"] / 12),
        "response_residual": (apart[0] + apart[1]) + apart[2],
        "column_residual": np.array(
            [off[end - depth : end].max() for end, depth in zip(ends, t["depth"], strict=True)]
        ),
    }


def exact_column_sums(weights):
    """fsum of every column, (layers, 3), of weights that are stored layer after layer, row after
    row.
    """
    layers = weights.reshape(-1, 3, 3)
    return np.array([[fsum(layer[:, column]) for column in range(3)] for layer in layers])


def area(ratio, favourable):
    """The area under the ROC curve, pair by pair; ties count half."""
    up, down = ratio[favourable][:, None], ratio[~favourable][None]
    return (
        ((up > down).sum() + 0.5 * (up == down).sum()) / (up.size * down.size)
        if up.size and down.size
        else 0.5
    )


def threshold_draws(p, t):
    """The table `draws` from the stored `configurations`."""
    rows = []
    of_family = [np.flatnonzero(t["family"] == family) for family in range(p["families"])]
    for chosen in resamples(p, p["families"]):
        at = np.concatenate([of_family[family] for family in chosen])
        favourable, beta = t["favourable"][at] == 1, t["beta"][at]
        right = t["predicted"][at] == t["favourable"][at]
        shares = [favourable[beta == one].mean() for one in (p["betas"][0], p["betas"][-1])]
        rows.append((area(t["ratio"][at], favourable), right.mean(), *shares))
    names = ("auc", "accuracy", "favourable_first", "favourable_last")
    return {"draw": np.arange(len(rows)), **dict(zip(names, np.array(rows).T, strict=True))}


def threshold_statistics(p, t, weights, draws):
    favourable, right = t["favourable"] == 1, t["predicted"] == t["favourable"]
    first, last = (t["beta"] == one for one in (p["betas"][0], p["betas"][-1]))
    both = favourable.any() and not favourable.all()
    found = {"rows.configurations": len(right)} | (
        {"auc": area(t["ratio"], favourable)} if both else {}
    )
    found |= {
        "accuracy": right.mean(),
        "favourable.first": favourable[first].mean(),
        "favourable.last": favourable[last].mean(),
    }
    found |= {
        "errors": (~right).sum(),
        "sign_agreement": (np.sign(t["finite"]) == np.sign(t["coefficient"])).mean(),
    }
    found |= {"weight.min": weights["weight"].min(), "condition.max": t["condition"].max()}
    for name in ("auc", "accuracy", "favourable.first", "favourable.last"):
        if name in found:
            for end, q in (("lower", 0.025), ("upper", 0.975)):
                found[f"{name}.{end}"] = np.quantile(draws[name.replace(".", "_")], q)
    found |= {
        f"{name}.max": t[name].max()
        for name in ("response_residual", "coefficient_residual", "column_residual")
    }
    return found | {
        f"condition.{name}": np.quantile(t["condition"], q)
        for name, q in (("q1", 0.25), ("median", 0.5), ("q3", 0.75))
    }
