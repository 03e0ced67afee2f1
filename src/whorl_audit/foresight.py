"""The arms of a foresight study, and its physics once more for networks of any width.

Learners that act as they are told.

A layer's score for a potential v at the outputs is the outer product of v, carried back through the
layers behind, with the flow into the layer; the response of one sample is the sum over layers and
columns of x_c^2 R Q(p_c) R^T, R being the map behind the layer. Layers are lists of `(batch, row,
column)`, samples `(batch, width)`.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from whorl_audit import draws
from whorl_audit.types import Array, Parameters, Table, Whole

MAIN = ("turns", "halves", "quarters", "random", "straight")
LEARNERS = ("longer", "finer", "full_batch")
END = -1


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
    return sum(
        3 * (1 + min(count if horizon == END else horizon, count - 1 - t)) for t in range(count)
    )


def multiple(p: Parameters, horizon: int) -> int:
    """Updates for one with the same compute."""
    count = updates(p, 3)
    return 1 + (foreseen_updates(p, horizon) + count - 1) // count


def task(p: Parameters, trial: int, width: int) -> tuple[Array, Array, Whole]:
    """Inputs, targets and order of a trial."""
    if width == 3:
        return *draws.task(p["seed"], trial, p["concentration"]), draws.schedule(
            p["seed"], trial, p["epochs"]
        )[0]
    rng = draws.stream(p["seed"], trial, 8, 0)
    inputs = np.concatenate([np.eye(width), rng.dirichlet(np.ones(width), 3)])
    targets = inputs @ rng.dirichlet(np.full(width, p["concentration"]), width)
    return inputs, targets, order(draws.stream(p["seed"], trial, 8, 2), p["epochs"], width + 3)


def order(rng: np.random.Generator, epochs: int, samples: int) -> Whole:
    """Epoch after epoch a permutation."""
    return np.concatenate([rng.permutation(samples) for _ in range(epochs)]).astype(np.int64)


def start(p: Parameters, trial: int, width: int, depth: int, beta: float) -> Array:
    """The first layers of a trial, `(depth, row, column)`."""
    if width == 3:
        return draws.softmax_layers(p["seed"], trial, depth, beta, p["floor"])
    logits = beta * draws.stream(p["seed"], trial, 8, 1, depth).standard_normal(
        (depth, width, width)
    )
    grown = np.exp(logits - logits.max(axis=1, keepdims=True))
    return (1 - p["floor"]) * grown / grown.sum(axis=1, keepdims=True) + p["floor"] / width


def quarter_turn(width: int) -> Array:
    """The skew circulant C."""
    lags = np.arange(width)[:, None] - np.arange(width)
    modes = np.arange(1, (width + 1) // 2)
    return 2 / width * np.sin(2 * np.pi / width * lags[..., None] * modes).sum(axis=-1)


@dataclass(frozen=True)
class Crowd:
    """Networks of one shape with their tasks and step scales, one entry a network."""

    inputs: Array  # (batch, samples, width)
    targets: Array
    scale: Array
    leak: float

    def loss(self, layers: list[Array]) -> Array:
        """Half the squared residual, averaged over samples."""
        flow = np.swapaxes(self.inputs, 1, 2)
        for layer in layers:
            flow = layer @ flow
        return np.square(np.swapaxes(self.targets, 1, 2) - flow).sum(axis=(1, 2)) / (
            2 * self.inputs.shape[1]
        )

    def part(self, chosen: Any) -> "Crowd":
        """Some of the networks."""
        return Crowd(self.inputs[chosen], self.targets[chosen], self.scale[chosen], self.leak)

    def scores(self, layers: list[Array], sample: Whole) -> tuple[list[Array], list[Array]]:
        """The reciprocal and the turning score of a sample, a table a layer."""
        at = np.arange(len(sample))
        flows = [self.inputs[at, sample]]
        for layer in layers:
            flows.append(np.einsum("brc,bc->br", layer, flows[-1]))
        error = self.targets[at, sample] - flows[-1]
        behind = [
            np.broadcast_to(np.eye(error.shape[1]), (len(at), error.shape[1], error.shape[1]))
        ]
        for layer in layers[:0:-1]:
            behind.insert(0, behind[0] @ layer)
        response = self.leak * np.eye(error.shape[1])
        for layer, carried, flow in zip(layers, behind, flows, strict=False):
            heavy = np.square(flow)[:, None] * layer
            spread = np.einsum("brc->br", heavy)[:, :, None] * np.eye(
                layer.shape[1]
            ) - heavy @ np.swapaxes(layer, 1, 2)
            response = response + carried @ spread @ np.swapaxes(carried, 1, 2)
        drives = np.stack([error, error @ quarter_turn(error.shape[1]).T], axis=2)
        potentials = np.linalg.solve(response, drives)
        carried_back = [np.einsum("bor,bok->bkr", carried, potentials) for carried in behind]
        return tuple(
            [v[:, k, :, None] * x[:, None] for v, x in zip(carried_back, flows, strict=False)]
            for k in (0, 1)
        )  # pyright: ignore[reportReturnType]

    def reach(self, score: list[Array]) -> Array:
        """The envelope of a score."""
        widest = np.max(
            [(layer.max(axis=1) - layer.min(axis=1)).max(axis=1) for layer in score], axis=0
        )
        return self.scale / np.maximum(1.0, widest)

    def native(self, layers: list[Array], sample: Whole) -> list[Array]:
        """The layers after one update of the native learner."""
        straight, _ = self.scores(layers, sample)
        return step(layers, straight, self.reach(straight))


def step(layers: list[Array], score: list[Array], size: Array) -> list[Array]:
    """The normalised exponential step."""
    grown = [
        layer * np.exp(size[:, None, None] * s) for layer, s in zip(layers, score, strict=True)
    ]
    return [layer / layer.sum(axis=1, keepdims=True) for layer in grown]


def mixed(one: list[Array], other: list[Array], a: Array, b: Array) -> list[Array]:
    """The sum of a times one and b times other, network by network."""
    return [a[:, None, None] * s + b[:, None, None] * t for s, t in zip(one, other, strict=True)]


def keys(p: Parameters) -> Table:
    """The rows of `trajectories`."""
    rows = [
        (arm.name, horizon, arm.width, depth, beta, scale, trial)
        for arm in arms(p)
        for horizon in arm.horizons
        for depth in arm.depths
        for beta in p["betas"]
        for scale in p["scales"]
        for trial in range(arm.trials)
    ]
    names = ("arm", "horizon", "width", "depth", "beta", "scale", "trial")
    kinds = (str, np.int64, np.int64, np.int64, float, float, np.int64)
    return {
        name: np.array(column, kind)
        for name, column, kind in zip(names, zip(*rows, strict=True), kinds, strict=True)
    }
