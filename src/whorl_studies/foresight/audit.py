"""The foresight kind: learners that look ahead, followed again along the choices that are stored.

No foresight is needed for that. Whether the choices are the lowest readings is tried on a sample of
them, with states met on the way.

Networks may have any width here. A layer's score for a potential v at the outputs is the outer
product of v, carried back through the layers behind, with the flow into the layer; the response of
one sample is the sum over layers and columns of x_c^2 R Q(p_c) R^T, R being the map behind the
layer. Layers are lists of `(batch, row, column)`, samples `(batch, width)`.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np

from whorl_audit import draws, expect, spec
from whorl_audit.draws import SAMPLES
from whorl_audit.expect import computed, drawn, number, numbers, rows, same, summed, whole
from whorl_audit.formulas import TERMS, means, total
from whorl_audit.keys import grid, layered
from whorl_audit.kinds import Kind
from whorl_audit.types import Array, Columns, Expected, Parameters, Table, Tables, Whole

Layers = list[Array]
Action = tuple[Layers, Array, float]  # score, step and sense
MAIN = ("turns", "halves", "quarters", "random", "straight")
LEARNERS = ("longer", "finer", "full_batch")
END = -1
FORESEEN = 10**11  # updates that are looked ahead, at most
TRIED = 24  # choices of every arm, horizon and depth that are tried again
ALIKE = 1e-11  # readings that agree to this share of their size count as equal
PATIENCE = 2500  # updates up to which all trials of a comparator are followed; beyond, the first


@dataclass(frozen=True)
class Arm:
    """An arm: where it runs, and whether it foresees what will come."""

    name: str
    horizons: list[int]
    width: int
    depths: list[int]
    trials: int
    sees: bool = True


def arms(p: Parameters) -> list[Arm]:
    """All arms in their order."""
    few, depths, trials = p["robust_horizons"], p["depths"], p["trials"]
    blind = ["wrong_schedule", *(f"noise_{float(level)!r}" for level in p["noises"])]
    return [
        *(Arm(name, p["horizons"], 3, depths, trials) for name in MAIN),
        *(Arm(name, few, 3, depths, trials, sees=False) for name in blind),
        *(Arm(f"omega_{float(omega)!r}", few, 3, depths, trials) for omega in p["omegas"]),
        Arm("deep", few, 3, [p["deep"]], trials),
        Arm("wide", few, p["wide"], depths[-1:], p["wide_trials"]),
    ]


def updates(p: Parameters, width: int) -> int:
    """Updates of a trajectory: three mixtures beside the vertices, every epoch."""
    return int(p["epochs"] * (width + 3))


def label(horizon: int) -> str:
    """A horizon in the name of a statistic."""
    return "end" if horizon == END else f"k{horizon}"


def foreseen_updates(p: Parameters, horizon: int) -> int:
    """What a trajectory of width three makes in foresight only."""
    count = updates(p, 3)
    ahead = count if horizon == END else horizon
    return sum(3 * (1 + min(ahead, count - 1 - t)) for t in range(count))


def multiple(p: Parameters, horizon: int) -> int:
    """Updates for one with the same compute."""
    count = updates(p, 3)
    return 1 + (foreseen_updates(p, horizon) + count - 1) // count


def places(p: Parameters) -> int:
    """Imbalances and scales: every arm runs with all of them."""
    return len(p["betas"]) * len(p["scales"])


def _trajectory_keys(p: Parameters) -> Table:
    """The rows of `trajectories`."""
    rows = [
        (arm.name, horizon, arm.width, *rest)
        for arm in arms(p)
        for horizon in arm.horizons
        for rest in product(arm.depths, p["betas"], p["scales"], range(arm.trials))
    ]
    names = ("arm", "horizon", "width", "depth", "beta", "scale", "trial")
    types = (str, np.int64, np.int64, np.int64, float, float, np.int64)
    columns = zip(names, zip(*rows, strict=True), types, strict=True)
    return {name: np.array(column, type_) for name, column, type_ in columns}


def keys(p: Parameters) -> dict[str, Table]:
    """The keys of every table."""
    trials, scheduled = range(p["trials"]), range(SAMPLES * p["epochs"])
    betas, scales = np.asarray(p["betas"], float), np.asarray(p["scales"], float)
    place: dict[str, Any] = {"depth": p["depths"], "beta": betas, "scale": scales}
    ahead: dict[str, Any] = {"horizon": p["horizons"], **place}
    depths = dict.fromkeys([*p["depths"], p["deep"]])
    rows = _trajectory_keys(p)
    at, first = np.arange(len(rows["arm"])), rows["trial"] == 0
    lengths = [updates(p, width) for width in rows["width"].tolist()]
    return {
        "tasks": grid(trial=trials, sample=range(SAMPLES)),
        "weights": layered(grid(trial=trials, depth=depths, beta=betas)),
        "schedule": grid(trial=trials, update=scheduled),
        "readings": grid(trial=trials, update=scheduled, action=range(3)),
        "trajectories": {"trajectory": at, **rows},
        "choices": {
            "trajectory": np.repeat(at, lengths),
            "update": np.concatenate([np.arange(length) for length in lengths]),
        },
        "conditions": {name: values[first] for name, values in rows.items() if name != "trial"},
        "advantages": grid(control=MAIN[1:], **ahead),
        "payoff": grid(arm=MAIN, **place),
        "costs": grid(horizon=p["horizons"]),
        "comparators": grid(learner=LEARNERS, **ahead, trial=trials),
        "comparisons": grid(learner=LEARNERS, **ahead),
    }


def sizes(p: Parameters) -> dict[str, int]:
    """The rows of the longest tables."""
    starts, deep = p["trials"] * len(p["betas"]), sum(dict.fromkeys([*p["depths"], p["deep"]]))
    runs = [
        (arm.width, len(arm.horizons) * len(arm.depths) * arm.trials * places(p)) for arm in arms(p)
    ]
    return {
        "tasks": SAMPLES * p["trials"],
        "weights": starts * 9 * deep,
        "schedule": p["trials"] * SAMPLES * p["epochs"],
        "trajectories": sum(count for _, count in runs),
        "choices": sum(count * updates(p, width) for width, count in runs),
    }


def work(p: Parameters) -> Iterator[tuple[str, int, int]]:
    """Count what is looked ahead."""
    found = 0
    for arm in arms(p):
        length = updates(p, arm.width)
        ahead = sum(length if k == END else min(k + 1, length) for k in arm.horizons)
        found += 3 * places(p) * len(arm.depths) * arm.trials * length * ahead
    yield "foreseen updates", found, FORESEEN


def task(p: Parameters, trial: int, width: int) -> tuple[Array, Array, Whole]:
    """Inputs, targets and order of a trial."""
    seed, key = p["seed"], () if width == 3 else (8,)
    inputs, targets = draws.task(seed, trial, p["concentration"], width, key)
    order = draws.order(draws.stream(seed, trial, *key, 2), p["epochs"], width + 3)
    return inputs, targets, order


def start(p: Parameters, trial: int, width: int, depth: int, beta: float) -> Array:
    """The first layers of a trial, `(depth, row, column)`."""
    key = (1, depth) if width == 3 else (8, 1, depth)
    return draws.softmax(draws.stream(p["seed"], trial, *key), depth, width, beta, p["floor"])


def quarter_turn(width: int) -> Array:
    """The skew circulant C."""
    lags = np.arange(width)[:, None] - np.arange(width)
    modes = np.arange(1, (width + 1) // 2)
    return 2 / width * np.sin(2 * np.pi / width * lags[..., None] * modes).sum(axis=-1)


@dataclass(frozen=True)
class Crowd:
    """Networks of one shape with their tasks and step scales, one entry per network."""

    inputs: Array  # (batch, samples, width)
    targets: Array
    scale: Array
    leak: float

    def loss(self, layers: Layers) -> Array:
        """Half the squared residual, averaged over samples."""
        flow = np.swapaxes(self.inputs, 1, 2)
        for layer in layers:
            flow = layer @ flow
        squares = np.square(np.swapaxes(self.targets, 1, 2) - flow)
        return squares.sum(axis=(1, 2)) / (2 * self.inputs.shape[1])

    def part(self, chosen: Any) -> "Crowd":
        """Some of the networks."""
        return Crowd(self.inputs[chosen], self.targets[chosen], self.scale[chosen], self.leak)

    def scores(self, layers: Layers, sample: Whole) -> tuple[Layers, Layers]:
        """The reciprocal and the turning score of a sample, one table per layer."""
        at = np.arange(len(sample))
        flows = [self.inputs[at, sample]]
        for layer in layers:
            flows.append(np.einsum("brc,bc->br", layer, flows[-1]))
        error = self.targets[at, sample] - flows.pop()
        unit = np.eye(error.shape[1])
        behind = [np.broadcast_to(unit, (len(at), *unit.shape))]
        for layer in layers[:0:-1]:
            behind.insert(0, behind[0] @ layer)
        response = self.leak * unit
        for layer, carried, flow in zip(layers, behind, flows, strict=True):
            heavy = np.square(flow)[:, None] * layer
            sums = np.einsum("brc->br", heavy)[:, :, None]
            spread = sums * np.eye(layer.shape[1]) - heavy @ np.swapaxes(layer, 1, 2)
            response = response + carried @ spread @ np.swapaxes(carried, 1, 2)
        drives = np.stack([error, error @ quarter_turn(error.shape[1]).T], axis=2)
        potentials = np.linalg.solve(response, drives)
        back = [np.einsum("bor,bok->bkr", carried, potentials) for carried in behind]
        straight, turning = (
            [v[:, k, :, None] * x[:, None] for v, x in zip(back, flows, strict=True)]
            for k in (0, 1)
        )
        return straight, turning

    def reach(self, score: Layers) -> Array:
        """The envelope of a score."""
        spans = [(layer.max(axis=1) - layer.min(axis=1)).max(axis=1) for layer in score]
        return self.scale / np.maximum(1.0, np.max(spans, axis=0))

    def native(self, layers: Layers, sample: Whole) -> Layers:
        """The layers after one update of the native learner."""
        straight, _ = self.scores(layers, sample)
        return step(layers, straight, self.reach(straight))


def step(layers: Layers, score: Layers, size: Array) -> Layers:
    """The normalised exponential step."""
    pairs = zip(layers, score, strict=True)
    grown = [layer * np.exp(size[:, None, None] * s) for layer, s in pairs]
    return [layer / layer.sum(axis=1, keepdims=True) for layer in grown]


def mixed(one: Layers, other: Layers, a: Array, b: Array) -> Layers:
    """The sum of a times one and b times other, network by network."""
    return [a[:, None, None] * s + b[:, None, None] * t for s, t in zip(one, other, strict=True)]


def expected(p: Parameters) -> dict[str, Columns]:
    """Every drawn column."""
    trials, seed = range(p["trials"]), p["seed"]
    weights = [
        draws.softmax_layers(seed, trial, depth, beta, p["floor"]).ravel()
        for trial in trials
        for depth in dict.fromkeys([*p["depths"], p["deep"]])
        for beta in p["betas"]
    ]
    samples = np.array([draws.schedule(seed, trial, p["epochs"])[0] for trial in trials])
    foreseen, angles, errors = _tables(seed, p["trials"], p["epochs"])
    schedule = {"sample": whole(samples), "foreseen": whole(foreseen), "angle": drawn(angles)}
    return {
        "tasks": expect.task_columns(*draws.tasks(seed, p["trials"], p["concentration"])),
        "weights": {"weight": drawn(np.concatenate(weights))},
        "schedule": schedule,
        "readings": {"error": drawn(errors)},
    }


@lru_cache(maxsize=2)
def _tables(seed: int, trials: int, epochs: int) -> tuple[Whole, Array, Array]:
    """The wrong orders, the angles and the errors of all trials."""
    angles, orders, errors = (
        [draws.stream(seed, trial, key) for trial in range(trials)] for key in (5, 6, 7)
    )
    return (
        np.array([draws.order(rng, epochs, 6) for rng in orders]),
        np.array([rng.uniform(0.0, 2 * np.pi, 6 * epochs) for rng in angles]),
        np.array([rng.standard_normal((6 * epochs, 3)) for rng in errors]),
    )


@dataclass(frozen=True)
class Block:
    """The trajectories of one arm, horizon and depth."""

    p: Parameters
    arm: Arm
    horizon: int
    rows: Table  # the keys of its trajectories
    crowd: Crowd
    layers: Layers
    order: Whole

    @property
    def spoilt(self) -> tuple[Whole, Array, Array]:
        """The wrong orders, the angles and the errors of all trials."""
        return _tables(self.p["seed"], self.p["trials"], self.p["epochs"])

    def actions(
        self, straight: Layers, turning: Layers, crowd: Crowd, trials: Whole, at: Whole
    ) -> list[Action]:
        """Score, step and sense of the three actions; `at` is the update of each network."""
        none, one, native = np.zeros(len(at)), np.ones(len(at)), crowd.reach(straight)
        name = self.arm.name
        if name in ("halves", "quarters"):
            return [(straight, fraction * native, 0.0) for fraction in self.p[name]]
        if name in ("random", "straight"):
            angle = self.spoilt[1][trials, at] if name == "random" else none
            turning = mixed(straight, turning, np.cos(angle), np.sin(angle))
        omega = float(name.partition("_")[2]) if name.startswith("omega_") else self.p["omega"]
        senses = [mixed(straight, turning, one, sign * omega * one) for sign in (1, -1)]
        kept = np.minimum(*(crowd.reach(score) for score in senses))
        return [(straight, native, 0.0), (senses[0], kept, 1.0), (senses[1], kept, -1.0)]


def blocks(p: Parameters) -> Iterator[Block]:
    """All blocks, in the order of the trajectories."""
    cases, first, tasks = _trajectory_keys(p), 0, {}
    for arm in arms(p):
        for trial in range(arm.trials):
            tasks.setdefault((arm.width, trial), task(p, trial, arm.width))
        for horizon, depth in product(arm.horizons, arm.depths):
            last = first + places(p) * arm.trials
            rows = {name: values[first:last] for name, values in cases.items()}
            first, who = last, rows["trial"].tolist()
            states = list(zip(who, rows["beta"].tolist(), strict=True))
            starts = {key: start(p, key[0], arm.width, depth, key[1]) for key in set(states)}
            layers = np.stack([starts[key] for key in states], axis=1)
            x, y, order = map(np.stack, zip(*(tasks[arm.width, t] for t in who), strict=True))
            crowd = Crowd(x, y, rows["scale"], p["leak"])
            yield Block(p, arm, horizon, rows, crowd, list(layers), order)


def follow(block: Block, choices: Whole, tried: Table) -> tuple[dict[str, Array], Layers]:
    """A block along its choices `(trajectories, updates)`.

    The computed columns, and the layers where choices are to be tried.
    """
    crowd, here, there = block.crowd, block.layers, block.layers
    before = native_before = start = crowd.loss(here)
    sums = np.zeros((4, len(start)))
    met = [np.zeros((len(tried["at"]), *layer.shape[1:])) for layer in here]
    for update, choice in enumerate(choices.T):
        sample, now = block.order[:, update], tried["at"] == update
        for kept, layer in zip(met, here, strict=True):
            kept[now] = layer[tried["row"][now]]
        straight, turning = crowd.scores(here, sample)
        at = np.full(len(start), update)
        options = block.actions(straight, turning, crowd, block.rows["trial"], at)
        size = np.choose(choice, [size for _, size, _ in options])
        ends = (
            taken := _chosen(here, options, choice),
            _chosen(here, options, _other(choice, options)),
            step(here, straight, size),
            step(here, straight, crowd.reach(straight)),
        )
        losses = [crowd.loss(end) for end in ends]
        there = crowd.native(there, sample)
        native = crowd.loss(there)
        a, o, z, w = (one - before for one in losses)
        m, n = (a + o) / 2, native - native_before
        sums += [m - z, a - m, z - w, w - n]
        here, before, native_before = taken, losses[0], native
    smallest = np.min([layer.min(axis=(1, 2)) for layer in (*here, *there)], axis=0)
    names = ("start", "final", "native", *TERMS, "smallest")
    return dict(zip(names, (start, before, native_before, *sums, smallest), strict=True)), met


def _chosen(layers: Layers, options: list[Action], choice: Whole) -> Layers:
    scores = zip(*(score for score, _, _ in options), strict=True)
    score = [np.choose(choice[:, None, None], one) for one in scores]
    return step(layers, score, np.choose(choice, [size for _, size, _ in options]))


def _other(choice: Whole, options: list[Action]) -> Whole:
    """The action that turns the other way with the same step: itself, where it does not turn."""
    return np.where(choice == 0, 0, 3 - choice) if options[1][2] else choice


def readings(block: Block, layers: Layers, tried: Table) -> Array:
    """What every action of the tried choices reads, `(choices, actions)`."""
    row, at = tried["row"], tried["at"]
    crowd, order, trials = block.crowd.part(row), block.order[row], block.rows["trial"][row]
    name, count, each = block.arm.name, block.order.shape[1], np.arange(len(at))
    believed = order if name != "wrong_schedule" else block.spoilt[0][trials]
    straight, turning = crowd.scores(layers, order[each, at])
    ends = []
    for score, size, _ in block.actions(straight, turning, crowd, trials, at):
        going = step(layers, score, size)
        for offset in range(1, count if block.horizon == END else block.horizon + 1):
            if not (active := at + offset < count).any():
                break
            moved = crowd.native(going, believed[each, np.minimum(at + offset, count - 1)])
            pairs = zip(moved, going, strict=True)
            going = [np.where(active[:, None, None], new, old) for new, old in pairs]
        ends.append(crowd.loss(going))
    read = np.stack(ends, axis=1)
    if name.startswith("noise_"):
        return read * (1 + float(name.partition("_")[2]) * block.spoilt[2][trials, at])
    return read


def simulated(tables: Tables, p: Parameters) -> tuple[Columns, Columns]:
    """The computed columns of `trajectories` and of `choices`."""
    told = np.clip(tables["choices"]["action"], 0, 2).astype(np.int8)
    return _simulated(json.dumps(p, sort_keys=True), told.tobytes())


@lru_cache(maxsize=1)
def _simulated(text: str, told: bytes) -> tuple[Columns, Columns]:
    p, stored = json.loads(text), np.frombuffer(told, np.int8)
    wanted, parts, first = stored.astype(np.int64), [], 0
    for index, block in enumerate(blocks(p)):
        shape = block.order.shape
        size = shape[0] * shape[1]
        choices = stored[first : first + size].reshape(shape).astype(np.int64)
        rng = draws.stream(p["bootstrap_seed"], index)
        tried = {"row": rng.integers(0, shape[0], TRIED), "at": rng.integers(0, shape[1], TRIED)}
        columns, met = follow(block, choices, tried)
        read = readings(block, met, tried)
        best, mine = read.argmin(axis=1), choices[tried["row"], tried["at"]]
        worse = read[np.arange(TRIED), mine] > read.min(axis=1) + ALIKE * np.abs(read).max(axis=1)
        wanted[first + tried["row"] * shape[1] + tried["at"]] = np.where(worse, best, mine)
        parts.append(columns)
        first += size
    found, stretch = _joined(parts), 1 + 1e-3 / p["leak"]
    return {
        **{name: expect.loss(found[name], stretch) for name in ("start", "final", "native")},
        **{name: computed(found[name], found["start"]) for name in TERMS},
        "smallest": computed(found["smallest"]),
    }, {"action": Expected(wanted)}


def _joined(parts: list[dict[str, Array]]) -> dict[str, Array]:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def comparators(tables: Tables, p: Parameters) -> Columns:
    """The final losses of learners with equal compute.

    All trials where that is short, the first one where it is long.
    """
    wanted = tables["comparators"]["final"].copy()
    rows, losses = _followed(json.dumps(p, sort_keys=True))
    wanted[rows] = losses
    size = wanted + 1e-2 * np.sqrt(np.abs(wanted)) + 1e-4
    return {"final": computed(wanted, size)}


@lru_cache(maxsize=1)
def _followed(text: str) -> tuple[Whole, Array]:
    """The rows of comparators that are followed, and their final losses."""
    p = json.loads(text)
    betas, scales = np.asarray(p["betas"], float), np.asarray(p["scales"], float)
    cases = grid(depth=p["depths"], beta=betas, scale=scales, trial=range(p["trials"]))
    horizons: list[int] = p["horizons"]
    at, rows, losses = 0, [], []
    for learner, horizon in product(LEARNERS, horizons):
        many = multiple(p, horizon)
        long = (many if learner != "full_batch" else many / 6) * updates(p, 3) > PATIENCE
        for depth in p["depths"]:
            here = np.flatnonzero((cases["depth"] == depth) & ((cases["trial"] == 0) | (not long)))
            rows.append(at + here)
            some = {name: values[here] for name, values in cases.items()}
            losses.append(_alone(p, learner, many, some))
        at += len(cases["trial"])
    return np.concatenate(rows), np.concatenate(losses)


def _alone(p: Parameters, learner: str, many: int, rows: Table) -> Array:
    """One comparator on some rows."""
    p = p | {"epochs": p["epochs"] * (many if learner == "longer" else 1)}
    every, trials = many if learner == "finer" else 1, rows["trial"].tolist()
    tasks = {trial: task(p, trial, 3) for trial in set(trials)}
    x, y, order = map(np.stack, zip(*(tasks[trial] for trial in trials), strict=True))
    crowd = Crowd(x, y, rows["scale"] / every, p["leak"])
    states = zip(trials, rows["depth"].tolist(), rows["beta"].tolist(), strict=True)
    layers = list(np.stack([start(p, t, 3, depth, beta) for t, depth, beta in states], axis=1))
    if learner == "full_batch":
        for _ in range(p["epochs"] * many):
            score = _gradient(crowd, layers)
            layers = step(layers, score, crowd.reach(score))
        return crowd.loss(layers)
    for update in range(order.shape[1] * every):
        layers = crowd.native(layers, order[:, update // every])
    return crowd.loss(layers)


def _gradient(crowd: Crowd, layers: Layers) -> Layers:
    """Minus the gradient of the summed loss by the weights."""
    flows = [np.swapaxes(crowd.inputs, 1, 2)]
    for layer in layers:
        flows.append(layer @ flows[-1])
    back, found = np.swapaxes(crowd.targets, 1, 2) - flows[-1], []
    for layer, flow in zip(layers[::-1], flows[-2::-1], strict=True):
        found.insert(0, back @ np.swapaxes(flow, 1, 2))
        back = np.swapaxes(layer, 1, 2) @ back
    return found


def bounds(values: Array, p: Parameters) -> tuple[Array, Array]:
    """The central 95 % of the means of rows `(rows, trials)` over resampled trials."""
    chosen = draws.resamples(p["bootstrap_seed"], p["resamples"], values.shape[1])
    ends = [np.quantile(row[chosen].mean(axis=1), [0.025, 0.975]) for row in values]
    low, high = np.transpose(ends)
    return low, high


def _bounded(values: Array, p: Parameters) -> Columns:
    ends, size = zip(("lower", "upper"), bounds(values, p), strict=True), np.abs(values).max(axis=1)
    return {name: summed(end, size) for name, end in ends}


def _trajectories(tables: Tables, p: Parameters) -> Columns:
    table = tables["trajectories"]
    gap = table["final"] - table["native"]
    away = np.bincount(tables["choices"]["trajectory"], tables["choices"]["action"] != 0, len(gap))
    return simulated(tables, p)[0] | {
        "gap": same(gap),
        "closure": same(np.abs(total(table) - gap)),
        "departed": whole(away),
    }


def _choices(tables: Tables, p: Parameters) -> Columns:
    return simulated(tables, p)[1]


def _conditions(tables: Tables, p: Parameters) -> Columns:
    table, parts, first = tables["trajectories"], [], 0
    for arm in arms(p):
        last = first + len(arm.horizons) * len(arm.depths) * places(p) * arm.trials
        part = {name: one[first:last].reshape(-1, arm.trials) for name, one in table.items()}
        first, gaps = last, part["gap"]
        found = {name: means(part[name]) for name in ("native", "gap", *TERMS)}
        found["lower"], found["upper"] = bounds(gaps, p)
        found["behind"] = (gaps > 0).sum(axis=1)
        made = arm.trials * updates(p, arm.width)
        found["departed"] = part["departed"].sum(axis=1) / made
        parts.append(found | {"size": np.abs(gaps).max(axis=1)})
    joined = _joined(parts)
    size = joined.pop("size")
    columns = {name: same(values) for name, values in joined.items()}
    columns |= {name: summed(joined[name], size) for name in ("lower", "upper")}
    columns["behind"] = whole(joined["behind"])
    return columns | {"pays": whole(tables["conditions"]["upper"] < 0)}


def main(table: Table, name: str, p: Parameters) -> Array:
    """A column of `trajectories` for the main arms, `(arm, horizon, condition, trial)`."""
    shape = (len(MAIN), len(p["horizons"]), len(p["depths"]) * places(p), p["trials"])
    return table[name][: np.prod(shape)].reshape(shape)


def _advantages(tables: Tables, p: Parameters) -> Columns:
    final = main(tables["trajectories"], "final", p)
    gain = (final[1:] - final[:1]).reshape(-1, p["trials"])
    return {
        "advantage": same(means(gain)),
        **_bounded(gain, p),
        "claimed": whole(tables["advantages"]["lower"] > 0),
    }


def _payoff(tables: Tables, p: Parameters) -> Columns:
    shape = (len(MAIN), len(p["horizons"]), len(p["depths"]) * places(p))
    pays = tables["conditions"]["pays"][: np.prod(shape)].reshape(shape)
    first, onward = [], []
    for column in np.swapaxes(pays, 1, 2).reshape(-1, shape[1]).tolist():
        good = [k for k, pay in zip(p["horizons"], column, strict=True) if pay]
        first.append(good[0] if good else -2)
        onward.append(next((k for n, k in enumerate(p["horizons"]) if all(column[n:])), -2))
    return {"first": whole(np.array(first)), "onward": whole(np.array(onward))}


def _costs(_: Tables, p: Parameters) -> Columns:
    counts = {"foresight": foreseen_updates, "multiple": multiple}
    return {
        name: whole(np.array([count(p, k) for k in p["horizons"]]))
        for name, count in counts.items()
    }


def _comparisons(tables: Tables, p: Parameters) -> Columns:
    shape = (len(LEARNERS), len(p["horizons"]), -1, p["trials"])
    final = tables["comparators"]["final"].reshape(shape)
    gap, apart = (final - main(tables["trajectories"], name, p)[:1] for name in ("native", "final"))
    apart = apart.reshape(-1, p["trials"])
    return {
        "gap": same(means(gap)),
        "advantage": same(means(apart)),
        **_bounded(apart, p),
        "share": same((apart < 0).sum(axis=1) / p["trials"]),
    }


def _native_difference(table: Table) -> float:
    apart: dict[tuple[float, ...], list[float]] = {}
    names = ("width", "depth", "beta", "scale", "trial", "native")
    for *key, value in zip(*(table[name].tolist() for name in names), strict=True):
        apart.setdefault(tuple(key), []).append(value)
    return max(max(values) - min(values) for values in apart.values())


def _gaps(tables: Tables, p: Parameters) -> dict[str, Expected]:
    table, conditions, found = tables["trajectories"], tables["conditions"], {}
    for arm in arms(p):
        for horizon in arm.horizons:
            name = f"{arm.name}.{label(horizon)}"
            here, there = (
                (one["arm"] == arm.name) & (one["horizon"] == horizon)
                for one in (table, conditions)
            )
            gaps = table["gap"][here].reshape(-1, arm.trials)
            by_trial, size = means(gaps.T), float(np.abs(gaps).max())
            (low,), (high,) = bounds(by_trial[None], p)
            found[f"pays.{name}"] = number(conditions["pays"][there].sum())
            found[f"gap.{name}"] = number(by_trial.mean(), size)
            found[f"gap.{name}.lower"] = number(low, size)
            found[f"gap.{name}.upper"] = number(high, size)
    return found


def statistics(tables: Tables, p: Parameters) -> dict[str, Expected]:
    """Every statistic of the kind."""
    table, plain, against = tables["trajectories"], {}, {}
    horizons: list[int] = p["horizons"]
    seeing = [arm.name for arm in arms(p) if arm.sees]
    far = np.isin(table["arm"], seeing) & (table["horizon"] == END)
    if far.any():
        plain["rollout.worst"] = table["gap"][far].max()
    plain |= {"closure.max": table["closure"].max(), "weight.min": table["smallest"].min()}
    plain["native.difference"] = _native_difference(table)
    for horizon, count in zip(horizons, tables["costs"]["foresight"].tolist(), strict=True):
        plain[f"cost.{label(horizon)}"] = count / updates(p, 3)
    for other, key, rivals in (
        (tables["advantages"], "control", MAIN[1:]),
        (tables["comparisons"], "learner", LEARNERS),
    ):
        for rival, horizon in product(rivals, horizons):
            here = (other[key] == rival) & (other["horizon"] == horizon)
            name = f"against.{rival}.{label(horizon)}"
            against[f"{name}.wins"] = (other["lower"][here] > 0).sum()
            against[f"{name}.loses"] = (other["upper"][here] < 0).sum()
    return {
        **rows(tables, "trajectories", "choices", "conditions"),
        **numbers(plain),
        **_gaps(tables, p),
        **numbers(against),
    }


KIND = Kind(
    spec=spec.beside(__file__),
    keys=keys,
    sizes=sizes,
    expected=expected,
    derived={
        "trajectories": _trajectories,
        "choices": _choices,
        "conditions": _conditions,
        "advantages": _advantages,
        "payoff": _payoff,
        "costs": _costs,
        "comparators": comparators,
        "comparisons": _comparisons,
    },
    statistics=statistics,
    roundoff={"closure.max": ("trajectories", "closure", 8)},
    work=work,
)
