"""The budgets kind: frozen responses and learners under laws of a given norm, once more.

Frozen loops are taken in the frame of the modes and in extended precision: exponentials of the loop
of a pair by its two eigenvalues, of the geometric law by its nilpotent part, covariances from the
formula for 2 x 2 matrices or from factorials, and crossing times by false position. Learners are
followed with matrices that are built and decomposed by LAPACK, all trials for some updates and the
first ones to the end.

Layers are lists of `(batch, row, column)`, samples `(batch, width)`.
"""

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np

from whorl_audit import draws, expect, network, plane, spec
from whorl_audit.draws import SAMPLES
from whorl_audit.expect import computed, numbers, rows, same, summed, whole
from whorl_audit.formulas import means
from whorl_audit.keys import grid
from whorl_audit.kinds import Kind
from whorl_audit.types import Array, Columns, Expected, Parameters, Table, Tables, Whole

FROZEN = ("direct", "leaky", "paired", "kept", "geometric", "repair")
MEASURES = (
    *("rate", "gain", "transient", "worst_3", "worst_6", "mean_3", "mean_6"),
    *("noise", "impulse", "work"),
)
PLAIN = ("direct", "leaky", "random", "heavy", "nesterov", "chebyshev", "repair")
BLIND = ("direct", "heavy", "nesterov", "chebyshev")  # they answer with the residual itself
TURNING = ("paired", "kept", "geometric", "paired_random", "geometric_random")
ARMS = {
    "selected": (*PLAIN, "critical", "critical_random"),
    "joint": (*PLAIN, *TURNING),
}
LAWS = {"selected": ("critical",), "joint": ("paired", "kept", "geometric")}
EQUAL = ("compute", "effort")
SHOWN = {"selected": 1, "joint": 3, "wide": 1}
FLOOR = 1e-30
LEAST = 1e-8  # the leak of repair
TOL = 1e-10  # modes below this share of the strongest are not turned
CYCLE = 8
TRIED = 8  # trials whose frozen measures are taken again
FEW = 2  # trials that are followed to the end
SHORT = 60  # updates for which all are
NUDGE = 1e-14  # of twins at every update: some fifty roundings, as many as sums and rotations make
TWINS = 4  # one of them may be close by chance, and hardly all of them
ROOM = 4.0  # what is allowed, in units of the distance of the furthest twin
SHARE = 1e-2  # of a value: where twins part by more, nobody can judge it
NOTHING = 1e-24  # a loss at which twins, whose nudges never end, may part as they like
LONG = np.longdouble
MOST = 2**15  # panels of an integral


def joint(p: Parameters) -> str | None:
    """Lists of updates grow, and the width of the wide arm is odd."""
    for name in ("updates", "joint_updates", "robust_updates"):
        if p[name] != sorted(p[name]):
            return f"{name} must grow, but it is {p[name]}"
    return f"wide must be odd, but it is {p['wide']}" if p["wide"] % 2 == 0 else None


# Rows


def populations(p: Parameters) -> list[str]:
    """The structural family, and one for every imbalance."""
    return ["structural", *(f"beta_{float(beta)!r}" for beta in p["betas"])]


def rivals(law: str) -> tuple[str, ...]:
    """Whom a law is compared with."""
    return (*PLAIN, *EQUAL, *((f"{law}_random",) if law != "kept" else ()))


def marks(p: Parameters, setting: str) -> list[int]:
    """The updates after which a setting is read."""
    return p["updates" if setting == "selected" else "joint_updates"]


def troubles(p: Parameters, setting: str) -> list[tuple[str, str, float]]:
    """Law, trouble and level of every troubled arm."""
    if setting == "wide":
        return [("direct", "none", 0.0), ("geometric", "none", 0.0)]
    noises = [("noise", float(one)) for one in p["noises"]]
    every = [("none", 0.0), *(("error", float(one)) for one in p["errors"])]
    every += [("late", float(one)) for one in p["delays"]] + noises
    every += [("flips", float(one)) for one in p["flips"]]
    laws = ("critical",) if setting == "selected" else ("paired", "geometric")
    found = [("direct", *one) for one in [("none", 0.0), *noises]]
    return found + [(law, *one) for law in laws for one in every]


def robust_depths(p: Parameters, setting: str) -> list[int]:
    """Where a setting is troubled."""
    return p["robust_depths"][:1] if setting == "wide" else p["robust_depths"]


def _joined(parts: list[Table]) -> Table:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _places(p: Parameters, setting: str) -> dict[str, Any]:
    return {
        "depth": p["depths"],
        "beta": np.asarray(p["betas"], float),
        "gain": np.asarray(p["gains"], float),
        "updates": marks(p, setting),
    }


def _troubled(p: Parameters, *, rivalled: bool) -> Table:
    parts = []
    for setting in SHOWN:
        for law, trouble, level in troubles(p, setting):
            if rivalled and law == "direct":
                continue
            keys: dict[str, Any] = {"setting": [setting], "law": [law], "trouble": [trouble]}
            keys |= {"level": [level], "depth": robust_depths(p, setting)}
            keys["updates"] = p["robust_updates"]
            parts.append(grid(**keys, **({} if rivalled else {"trial": range(p["trials"])})))
    return _joined(parts)


def keys(p: Parameters) -> dict[str, Table]:
    """The keys of every table."""
    trials = range(p["trials"])
    cases = [
        {"population": [name], "depth": [depth], "response": [kind], "trial": trials}
        for name, depth, kind in product(populations(p), p["frozen_depths"], ("selected", "joint"))
    ]
    modes = {"selected": range(2), "joint": range(6)}
    both = [(setting, law) for setting in LAWS for law in LAWS[setting]]
    each = {setting: _places(p, setting) for setting in LAWS}
    alone = {
        setting: {name: one for name, one in each[setting].items() if name != "updates"}
        for setting in LAWS
    }
    return {
        "tasks": grid(trial=trials, sample=range(SAMPLES)),
        "spectra": _joined([grid(**case, mode=modes[case["response"][0]]) for case in cases]),
        "bounds": _joined([grid(**case) for case in cases]),
        "frozen": _joined([grid(law=[law], **case) for law in FROZEN for case in cases]),
        "learners": _joined(
            [
                grid(setting=[setting], law=[arm], **each[setting], trial=trials)
                for setting in ARMS
                for arm in ARMS[setting]
            ]
        ),
        "rivals": _joined(
            [
                grid(setting=[setting], law=[law], rival=[rival], **each[setting], trial=trials)
                for setting, law in both
                for rival in EQUAL
            ]
        ),
        "troubled": _troubled(p, rivalled=False),
        "advantages": _joined(
            [
                grid(setting=[setting], law=[law], rival=[rival], **each[setting])
                for setting, law in both
                for rival in rivals(law)
            ]
        ),
        "onsets": _joined(
            [grid(setting=[setting], law=[law], **alone[setting]) for setting, law in both]
        ),
        "robustness": _troubled(p, rivalled=True),
    }


def sizes(p: Parameters) -> dict[str, int]:
    """The rows of the longest tables."""
    places = len(p["depths"]) * len(p["betas"]) * len(p["gains"])
    frozen = len(populations(p)) * len(p["frozen_depths"]) * p["trials"]
    robust = sum(len(robust_depths(p, one)) * len(troubles(p, one)) for one in SHOWN)
    return {
        "tasks": SAMPLES * p["trials"],
        "spectra": 8 * frozen,
        "frozen": 2 * len(FROZEN) * frozen,
        "learners": (
            places
            * p["trials"]
            * sum(len(ARMS[setting]) * len(marks(p, setting)) for setting in ARMS)
        ),
        "troubled": robust * len(p["robust_updates"]) * p["trials"],
    }


def work(p: Parameters) -> Iterator[tuple[str, int, int]]:
    """Count the updates that learners make."""
    places = len(p["depths"]) * len(p["betas"]) * len(p["gains"]) * p["trials"]
    made = sum(len(ARMS[one]) * places * marks(p, one)[-1] for one in ARMS)
    yield "updates", made, 10**11


# Frozen responses


def _layers(p: Parameters, population: str, trial: int, depth: int) -> Array:
    if population == "structural":
        given = p["spread"], p["structural_floor"]
        return draws.dirichlet_layers(p["seed"], trial, depth, *given, key=10)
    beta = float(population.removeprefix("beta_"))
    return draws.softmax_layers(p["seed"], trial, depth, beta, p["floor"])


def _spectra(p: Parameters, population: str, depth: int) -> dict[str, Array]:
    trials = range(p["trials"])
    x, y = draws.tasks(p["seed"], p["trials"], p["concentration"])
    layers = np.stack([_layers(p, population, trial, depth) for trial in trials])
    chosen = network.largest_residual(layers, x, y)
    shown = {"selected": x[np.arange(len(x)), chosen][:, None], "joint": x}
    found = {}
    for name, inputs in shown.items():
        factor = network.factor(network.jacobian(layers, inputs), layers)
        inside = np.einsum("po,bson->bspn", plane.AXES, factor)
        values = np.linalg.svd(inside.reshape(len(x), -1, inside.shape[-1]), compute_uv=False)
        found[name] = np.square(values[:, : 2 if name == "selected" else 6])
    return found


def _rotation(p: Parameters, trial: int, size: int) -> Array:
    """A random rotation: Gram and Schmidt on normal columns, the first turned where it mirrors."""
    columns = draws.stream(p["seed"], trial, 11, size).standard_normal((size, size)).T
    found: list[Array] = []
    for column in columns:
        for _ in range(2):
            for one in found:
                column = column - one * (one @ column)
        found.append(column / np.sqrt(column @ column))
    basis = np.array(found).T
    basis[:, 0] *= np.sign(np.linalg.det(basis))
    return basis


def _geometric(values: Array) -> Array:
    """The law P Q^T of spectra `(b, n)`, from ratios of values in extended precision."""
    count, size = values.shape
    left = np.broadcast_to(np.eye(size, dtype=LONG), (count, size, size)).copy()
    right, at = left.copy(), np.arange(count)
    ratio = np.exp(np.log(values.astype(LONG)) - np.log(values.astype(LONG)).mean(axis=1)[:, None])
    done = np.zeros(values.shape, bool)
    for _ in range(size - 1):
        high = np.where(done, -1.0, ratio).argmax(axis=1)
        low = np.where(done, np.inf, ratio).argmin(axis=1)
        x, y = np.maximum(ratio[at, high], 1), np.minimum(ratio[at, low], 1)
        total = x * x - y * y
        flat = total <= 0
        total = np.where(flat, 1, total)
        c = np.where(flat, 1, np.sqrt((1 - y) * (1 + y) / total))
        s = np.where(flat, 0, np.sqrt((x - 1) * (x + 1) / total))
        for basis, cos, sin in ((left, c * x, s * y), (right, c, s)):
            one, two = basis[at, :, high].copy(), basis[at, :, low].copy()
            mixed = cos[:, None] * one + sin[:, None] * two, cos[:, None] * two - sin[:, None] * one
            apart = (high != low)[:, None]
            basis[at, :, high] = np.where(apart, mixed[0], one)
            basis[at, :, low] = np.where(apart, mixed[1], basis[at, :, low])
        ratio[at, low] = np.where(high != low, x * y, ratio[at, low])
        done[at, high] |= high != low
    return np.einsum("bik,bjk->bij", right, left)


def _turns(values: Array, least: float) -> Array:
    """The law that gives the pairs of spectra their critical turns, up to a least cosine."""
    count, size = values.shape
    law = np.zeros((count, size, size))
    for i in range(size):
        j = size - 1 - i
        x, y = values[:, min(i, j)], values[:, max(i, j)]
        cosine = np.maximum(np.sqrt(4 * x * y / np.square(x + y)), least)
        bent = np.sqrt(4 * x * y) / (x + y) < least
        sine = np.where(bent, np.sqrt(1 - np.square(cosine)), (x - y) / (x + y))
        law[:, i, i] = cosine if i != j else 1.0
        if i != j:
            law[:, j, i] = sine if i < j else -sine
    return law


@dataclass(frozen=True)
class Loop:
    """A law through frozen responses, along their modes `(b, n)`."""

    values: Array
    law: Array
    kind: str

    @property
    def loop(self) -> Array:
        """K B."""
        return self.values[:, :, None] * self.law

    @property
    def blocks(self) -> list[list[int]]:
        """Directions that mix."""
        size = self.values.shape[1]
        if self.kind == "geometric":
            return [list(range(size))]
        if self.kind in ("paired", "kept"):
            return [[i, size - 1 - i] if i != size - 1 - i else [i] for i in range((size + 1) // 2)]
        return [[i] for i in range(size)]

    def part(self, rows_: Array) -> "Loop":
        """Some of the responses."""
        return Loop(self.values[rows_], self.law[rows_], self.kind)

    def rates(self) -> Array:
        """The slowest decay, block by block."""
        found = []
        for block in self.blocks:
            part = self.values[:, block]
            if len(block) == 1:
                found.append(part[:, 0] * self.law[:, block[0], block[0]])
            elif self.kind == "geometric":
                found.append(np.exp(np.log(part).mean(axis=1)))
            else:
                half, below = self._split(block)
                found.append(part.prod(axis=1) / (half + below))
        return np.min(found, axis=0)

    def _split(self, block: list[int]) -> tuple[Array, Array]:
        """Half the trace of a pair's loop, and half the distance of its eigenvalues."""
        x, y = self.values[:, block].T
        half = self.law[:, block[0], block[0]] * (x + y) / 2
        square = half * half - x * y
        meets = square < 1e-12 * half * half
        return np.where(meets, np.sqrt(x * y), half), np.sqrt(np.where(meets, 0.0, square))

    def nilpotents(self) -> tuple[Array, list[Array]]:
        """The middle m and the powers of m - K B, each over its factorial."""
        size = self.values.shape[1]
        middle = np.exp(np.log(self.values.astype(LONG)).mean(axis=1))
        rest = middle[:, None, None] * np.eye(size) - self.loop.astype(LONG)
        powers = [np.broadcast_to(np.eye(size, dtype=LONG), rest.shape)]
        for k in range(1, size):
            powers.append(np.einsum("bij,bjk->bik", powers[-1], rest) / k)
        return middle, powers

    def flow(self, time: Array) -> Array:
        """E at some times `(b, t)` per response, `(b, t, n, n)`."""
        t = time.astype(LONG)[:, :, None, None]
        if self.kind == "geometric":
            middle, powers = self.nilpotents()
            grown = sum(power[:, None] * t**k for k, power in enumerate(powers))
            return grown * np.exp(-middle[:, None, None, None] * t)
        size = self.values.shape[1]
        found = np.zeros((*time.shape, size, size), dtype=LONG)
        for block in self.blocks:
            i, j = np.ix_(block, block)
            found[..., i, j] = self._block(block, t)
        return found

    def _block(self, block: list[int], t: Array) -> Array:
        """The exponential of one direction, or of a pair by its eigenvalues f and s.

        e^(-At) = e^(-ft) + (f - A) (e^(-st) - e^(-ft)) / (f - s)
        """
        loop = self.loop[:, block][:, :, block].astype(LONG)[:, None]
        if len(block) == 1:
            return np.exp(-loop * t)
        half, apart = (part.astype(LONG)[:, None, None, None] for part in self._split(block))
        fast = half + apart
        slow = self.values[:, block].astype(LONG).prod(axis=1)[:, None, None, None] / fast
        width = np.where(apart > 0, 2 * apart, 1)
        quotient = np.where(apart > 0, -np.expm1(-2 * apart * t) / width, t) * np.exp(-slow * t)
        return np.exp(-fast * t) * np.eye(2) + (fast * np.eye(2) - loop) * quotient

    def size(self, time: Array, root: bool) -> Array:
        """The norm of E at one time per response: root mean square over first errors, or largest."""
        flow = self.flow(time[:, None])[:, 0]
        if root:
            return np.sqrt(np.square(flow).sum(axis=(1, 2)) / flow.shape[1]).astype(float)
        return np.linalg.norm(flow.astype(float), 2, axis=(1, 2))


def _crossing(loop: Loop, level: float, root: bool) -> Array:
    """The last time at which the norm is a level: from above, then by halves in logs."""
    high = 60 / loop.rates()
    for _ in range(40):
        over = loop.size(high, root) > level
        if not over.any():
            break
        high = np.where(over, 2 * high, high)
    low = high
    for _ in range(400):
        under = loop.size(low, root) <= level
        if not under.any():
            break
        high = np.where(under, low, high)
        low = np.where(under, low * 0.9, low)
    for _ in range(55):
        middle = np.sqrt(low) * np.sqrt(high)
        over = loop.size(middle, root) > level
        low, high = np.where(over, middle, low), np.where(over, high, middle)
    return high


def _top(loop: Loop) -> Array:
    """The largest norm of E, over times and then between them."""
    first, last = np.log(1e-3 / loop.values[:, 0]), np.log(60 / loop.rates())
    places = np.linspace(0, 1, 161)
    seen = np.stack([loop.size(np.exp(first + q * (last - first)), False) for q in places])
    at = np.clip(seen.argmax(axis=0), 1, len(places) - 2)
    low, high = (first + places[at + k] * (last - first) for k in (-1, 1))
    for _ in range(45):
        one, two = low + (high - low) / 3, high - (high - low) / 3
        left, right = loop.size(np.exp(one), False), loop.size(np.exp(two), False)
        low, high = np.where(left < right, one, low), np.where(left < right, high, two)
    return np.maximum(1.0, loop.size(np.exp((low + high) / 2), False))


def _covariance(loop: Loop, factor: Array, *, adjoint: bool = False) -> Array:
    """The trace of X in A X + X A^T = F F^T, block by block, A being K B or its transpose.

    From products with F: those with F F^T would cancel to the square of the condition.
    """
    total = np.zeros(len(loop.values), dtype=LONG)
    for block in loop.blocks:
        given, part = (one[:, block][:, :, block].astype(LONG) for one in (factor, loop.loop))
        part = np.swapaxes(part, 1, 2) if adjoint else part
        if len(block) == 1:
            total += np.square(given[:, 0, 0]) / (2 * part[:, 0, 0])
        elif len(block) == 2:
            trace = part[:, 0, 0] + part[:, 1, 1]
            size = part[:, 0, 0] * part[:, 1, 1] - part[:, 0, 1] * part[:, 1, 0]
            other = np.einsum("bij,bjk->bik", part - trace[:, None, None] * np.eye(2), given)
            answer = size * np.square(given).sum(axis=(1, 2)) + np.square(other).sum(axis=(1, 2))
            total += answer / (2 * trace * size)
        else:
            middle, powers = loop.nilpotents()
            powers = [np.swapaxes(one, 1, 2) if adjoint else one for one in powers]
            driven = [np.einsum("bij,bjk->bik", one, given) for one in powers]
            for (j, one), (k, two) in product(enumerate(driven), repeat=2):
                inner = (one * two).sum(axis=(1, 2))
                total += inner * math.factorial(j + k) / (2 * middle) ** (j + k + 1)
    return total.astype(float)


def _impulse(loop: Loop, panels: int = 48) -> Array:
    """The integral of the root mean square of B E, by Gauss and Legendre over decades of time.

    Where E nearly vanishes for a moment its norm has a sharp bend, and needs more panels: twice as
    many until half of them give the same to 1e-10.
    """
    coarse, fine = (_panels(loop, many) for many in (panels // 2, panels))
    rough = np.flatnonzero(np.abs(coarse - fine) > 1e-10 * fine)
    if len(rough) and panels < MOST:
        fine[rough] = _impulse(loop.part(rough), 2 * panels)
    return fine


def _panels(loop: Loop, panels: int) -> Array:
    nodes, shares = np.polynomial.legendre.leggauss(24)
    first, last = np.log(1e-14 / loop.values[:, 0]), np.log(120 / loop.rates())
    width, law = (last - first) / panels, loop.law.astype(LONG)[:, None]
    total = np.zeros(len(loop.values))
    for panel in range(panels):
        time = np.exp(first[:, None] + width[:, None] * (panel + (1 + nodes) / 2))
        driven = np.einsum("btij,btjk->btik", np.broadcast_to(law, (*time.shape, *law.shape[2:])),
                           loop.flow(time))  # fmt: skip
        size = np.sqrt(np.square(driven).sum(axis=(2, 3)) / law.shape[2]).astype(float)
        total += width / 2 * ((time * size) @ shares)
    return total


def _loop(law: str, values: Array, least: float) -> Loop:
    if law == "geometric":
        return Loop(values, _geometric(values), law)
    if law in ("paired", "kept"):
        return Loop(values, _turns(values, least if law == "kept" else 0.0), law)
    weights = {"direct": values / values, "leaky": 1 / (1 + values), "repair": 1 / values}[law]
    return Loop(values, weights[:, :, None] * np.eye(values.shape[1]), law)


def _measures(loop: Loop) -> dict[str, Array]:
    law = loop.law.astype(float)
    driven = np.swapaxes(loop.law, 1, 2) * np.sqrt(loop.values.astype(LONG))[:, None]
    found: dict[str, Array] = {"rate": loop.rates(), "gain": np.linalg.norm(law, 2, axis=(1, 2))}
    found["transient"] = _top(loop)
    for name, root_mean in (("worst", False), ("mean", True)):
        for digits in (3, 6):
            found[f"{name}_{digits}"] = _crossing(loop, 10.0**-digits, root_mean)
    found["noise"] = _covariance(loop, loop.loop)
    found["impulse"] = _impulse(loop)
    found["work"] = _covariance(loop, driven, adjoint=True) / law.shape[1]
    return {name: found[name] for name in MEASURES}


def _frozen(p: Parameters) -> dict[str, Columns]:
    """Spectra, the rates of random rotations, and that what is left of identities is nothing."""
    spectra, turned = [], []
    for population, depth in product(populations(p), p["frozen_depths"]):
        for values in _spectra(p, str(population), int(depth)).values():
            size = values.shape[1]
            spectra.append(values)
            rank = (values > p["rank_tol"] * values[:, :1]).sum(axis=1).tolist()
            turned += [
                np.real(np.linalg.eigvals(row[:n, None] * _rotation(p, trial, size)[:n, :n])).min()
                for trial, (row, n) in enumerate(zip(values, rank, strict=True))
            ]
    strong = np.concatenate([values[:, 0] for values in spectra])
    top = [np.broadcast_to(values[:, :1], values.shape).ravel() for values in spectra]
    flat, none = np.concatenate([values.ravel() for values in spectra]), np.zeros(len(turned))
    return {
        # The round-off of a singular value is that of the largest.
        "spectra": {"eigenvalue": computed(flat, np.sqrt(flat * np.concatenate(top)))},
        "bounds": {
            "random": Expected(np.array(turned), 1e-9, strong),
            # Round-off, which stays below the bounds of its gates.
            **{name: Expected(none, 1e-10, none + 1) for name in ("diagonal", "below", "gyration")},
        },
    }


def _by_case(tables: Tables, p: Parameters) -> list[Array]:
    """The stored eigenvalues, one array `(trials, modes)` per population, depth and response."""
    sizes_ = len(populations(p)) * len(p["frozen_depths"]) * [2, 6]
    ends = np.cumsum([0, *(size * p["trials"] for size in sizes_)])
    values = tables["spectra"]["eigenvalue"]
    parts = zip(ends[:-1], ends[1:], sizes_, strict=True)
    return [values[first:last].reshape(-1, size) for first, last, size in parts]


def _kept_modes(values: Array, p: Parameters) -> Array:
    """The eigenvalues of one response that count: the first one always does."""
    count = (values[1:] > p["rank_tol"] * values[0]).sum()
    return values[: count + 1]


def _measured(tables: Tables, p: Parameters) -> dict[str, Array]:
    """Measures of the first trials from their eigenvalues, `(law, case, trial)`; nan for all
    others.

    What is asked of frozen responses is the same function of the same numbers on both sides, so
    that nothing of the condition of a response enters the comparison.
    """
    cases = _by_case(tables, p)
    found = {name: np.full((len(FROZEN), len(cases), p["trials"]), np.nan) for name in MEASURES}
    groups: dict[int, list[tuple[int, int, Array]]] = {}
    for at, values in enumerate(cases):
        for trial, row in enumerate(values[:TRIED]):
            chosen = _kept_modes(row, p)
            if np.isfinite(chosen).all() and (chosen > 0).all():
                groups.setdefault(len(chosen), []).append((at, trial, chosen))
    for group in groups.values():
        at, trial, values = (np.array(part) for part in zip(*group, strict=True))
        for n, law in enumerate(FROZEN):
            for name, column in _measures(_loop(law, values, p["least_cosine"])).items():
                found[name][n, at, trial] = column
    return found


# Learners


@dataclass(frozen=True)
class Crowd:
    """Learners side by side: what they learn, and how each of them answers."""

    p: Parameters
    setting: str
    depth: int
    arms: list[tuple[str, str, float]]  # law, trouble and level
    rows: Table  # twin (0: none), arm, beta, gain and trial of every learner

    @property
    def width(self) -> int:
        """Outputs."""
        return self.p["wide"] if self.setting == "wide" else 3

    @property
    def key(self) -> tuple[int, ...]:
        """What the streams of the wide arm begin with."""
        return (15,) if self.setting == "wide" else ()

    @property
    def directions(self) -> int:
        """Directions of the samples that are shown together."""
        return SHOWN[self.setting] * (self.width - 1)

    def each(self, make: Callable[[int], Array]) -> Array:
        """What belongs to a trial, for every learner."""
        trials = self.rows["trial"].tolist()
        made = {trial: make(trial) for trial in set(trials)}
        return np.stack([made[trial] for trial in trials])

    def start(self) -> list[Array]:
        """The first layers."""
        p, keys_ = self.p, (*self.key, 1, self.depth)
        states = list(zip(self.rows["trial"].tolist(), self.rows["beta"].tolist(), strict=True))
        made = {
            (trial, beta): draws.softmax(
                draws.stream(p["seed"], trial, *keys_), self.depth, self.width, beta, p["floor"]
            )
            for trial, beta in set(states)
        }
        return list(np.stack([made[state] for state in states], axis=1))

    def data(self, updates: int) -> tuple[Array, Array, Whole]:
        """Inputs, targets and order."""
        p, key, samples = self.p, self.key, self.width + 3
        given, epochs = (p["concentration"], self.width, key), -(-updates // samples)
        x, y = (self.each(lambda t, s=s: draws.task(p["seed"], t, *given)[s]) for s in (0, 1))
        if self.setting == "joint":
            return x[:, :3], y[:, :3], np.zeros((len(x), updates), int)

        def order(trial: int) -> Whole:
            return draws.order(draws.stream(p["seed"], trial, *key, 2), epochs, samples)

        return x, y, self.each(order)[:, :updates]

    def senses(self, updates: int) -> Array:
        """Which way every learner turns at every update."""
        found = np.ones((len(self.rows["trial"]), updates))
        seed = self.p["seed"]
        for n, (law, trouble, level) in enumerate(self.arms):
            here = np.flatnonzero(self.rows["arm"] == n)
            for row in here:
                trial = int(self.rows["trial"][row])
                if law.endswith("_random"):
                    coins = draws.stream(seed, trial, 3).integers(0, 2, updates)
                    found[row] = np.where(coins == 1, 1, -1)
                elif trouble == "flips":
                    drawn = draws.stream(seed, trial, 14).uniform(size=updates)
                    flips = drawn < level
                    flips[0] = False
                    found[row] = 1 - 2 * (np.cumsum(flips) % 2)
        return found


def frame(width: int) -> Array:
    """Orthonormal zero-sum directions as rows; those of the plane for three outputs."""
    if width == 3:
        return plane.AXES
    rows_ = []
    for k in range(1, width):
        row = np.zeros(width)
        row[:k], row[k] = 1.0, -k
        rows_.append(row / np.sqrt(k * (k + 1)))
    return np.array(rows_)


def ways(layers: list[Array], shown: Array) -> tuple[list[Array], list[Array]]:
    """What flows into every layer and out, `(b, s, w)`, and the maps behind, to zero-sum ones."""
    flows, axes = [shown], frame(shown.shape[2])
    for layer in layers:
        flows.append(flows[-1] @ np.swapaxes(layer, 1, 2))
    behind = [np.broadcast_to(axes, (len(shown), *axes.shape))]
    for layer in layers[:0:-1]:
        behind.insert(0, behind[0] @ layer)
    return flows, behind


def response(layers: list[Array], shown: Array) -> Array:
    """K along the zero-sum directions of samples `(b, s, w)`."""
    total: Array | float = 0.0
    for layer, flow, carried in zip(layers, *ways(layers, shown), strict=False):
        # a pair of entries j, k of column c moves the outputs along the difference of two columns
        for j in range(layer.shape[1]):
            for k in range(j):
                rate = (layer[:, j] * layer[:, k])[:, None]
                across = carried[:, :, j] - carried[:, :, k]
                weights = (flow * rate) @ np.swapaxes(flow, 1, 2)
                both = across[:, :, None] * across[:, None]
                total = total + weights[:, :, None, :, None] * both[:, None, :, None]
    size = shown.shape[1] * (shown.shape[2] - 1)
    return np.asarray(total).reshape(-1, size, size)


def _eigen(matrix: Array) -> tuple[Array, Array]:
    """Eigenvalues, largest first, and modes whose largest entries are positive."""
    values, modes = np.linalg.eigh(matrix)
    values, modes = values[:, ::-1], modes[:, :, ::-1]
    at = np.abs(modes).argmax(axis=1)[:, None]
    return values, modes * np.where(np.take_along_axis(modes, at, axis=1) < 0, -1.0, 1.0)


def _law(crowd: Crowd, name: str, known: Array, gain: Array, sense: Array) -> Array:
    """The matrix of a law that needs the response."""
    size, scaled = known.shape[1], gain[:, None, None]
    if name in ("leaky", "repair"):
        leak = 1 / gain if name == "leaky" else np.full(len(gain), LEAST)
        return np.linalg.inv(known + leak[:, None, None] * np.eye(size))
    if name == "critical":
        x, y = np.linalg.eigvalsh(known).T[::-1]
        y = np.linalg.det(known) / x
        cosine, sine = 2 * np.sqrt(np.maximum(x * y, 0)) / (x + y), sense * (x - y) / (x + y)
        turn = np.array([[0.0, -1.0], [1.0, 0.0]])
        return scaled * (cosine[:, None, None] * np.eye(2) + sine[:, None, None] * turn)
    values, modes = _eigen(known)
    least = crowd.p["least_cosine"] if name == "kept" else 0.0
    inner = np.broadcast_to(np.eye(size), known.shape).copy()
    counts = (values > TOL * values[:, :1]).sum(axis=1)
    for count in np.unique(counts):
        here = np.flatnonzero(counts == count)
        some = values[here, :count]
        part = _geometric(some) if name == "geometric" else _turns(some, least)
        inner[here, :count, :count] = part.astype(float)
    law = modes @ inner @ np.swapaxes(modes, 1, 2)
    return scaled * np.where(sense[:, None, None] > 0, law, np.swapaxes(law, 1, 2))


def _chebyshev(crowd: Crowd, layers: list[Array], inputs: Array) -> Array:
    """Factors of the gain over a cycle, `(learners, CYCLE)`."""
    together = SHOWN[crowd.setting] > 1
    shown = [inputs] if together else [inputs[:, s : s + 1] for s in range(inputs.shape[1])]
    values = np.concatenate([np.linalg.eigvalsh(response(layers, s)) for s in shown], axis=1)
    low, high = np.maximum(values.min(axis=1), 0), values.max(axis=1)
    angles = (np.arange(CYCLE) + 0.5) * np.pi / CYCLE
    points = ((low + high) / 2)[:, None] + ((high - low) / 2)[:, None] * np.cos(angles)
    return points.min(axis=1)[:, None] / points


def waves(update: int, place: int, size: int) -> Array:
    """What the twins are nudged by at an update, in one of the places, `(twins, 1, size, size)`."""
    twin = np.arange(1, 1 + TWINS)[:, None]
    angles = twin * (np.arange(size**2) + 1.7 * place) + twin**2 * 2.3 * update
    return NUDGE * np.cos(angles).reshape(TWINS, 1, size, size)


class Walk:
    """Learners on their way, update by update."""

    def __init__(self, crowd: Crowd, last: int) -> None:
        self.crowd, self.which, self.gain = crowd, crowd.rows["arm"], crowd.rows["gain"]
        self.layers, (self.x, self.y, self.order) = crowd.start(), crowd.data(last)
        self._nudge(0)
        self.senses, self.axes = crowd.senses(last), frame(crowd.width)
        self.names = [law.removesuffix("_random") for law, _, _ in crowd.arms]
        self.level = np.array([level for *_, level in crowd.arms])[self.which]
        self.effort, self.past = np.zeros(len(self.which)), []
        self.memory = [np.zeros_like(layer) for layer in self.layers]
        self.moving = self._of("heavy", "nesterov") * crowd.p["momentum"]
        self.steps = np.ones((len(self.which), CYCLE))
        if "chebyshev" in self.names:
            factors = _chebyshev(crowd, self.layers, self.x)
            self.steps = np.where(self._of("chebyshev")[:, None], factors, 1.0)
        self._spoil(last)

    def _nudge(self, update: int) -> None:
        """Move the twins, at every update another way, as round-off does."""
        for n, layer in enumerate(self.layers):
            twins = layer.reshape(1 + TWINS, -1, *layer.shape[1:])[1:]
            twins *= 1 + waves(update, n, layer.shape[1])
            twins /= twins.sum(axis=2, keepdims=True)

    def _of(self, *laws: str) -> Array:
        return np.array([name in laws for name in self.names])[self.which]

    def _with(self, trouble: str) -> Array:
        return np.array([one == trouble for _, one, _ in self.crowd.arms])[self.which]

    def _spoil(self, last: int) -> None:
        """Errors of responses, noise, and random laws: what is drawn for every trial."""
        crowd, size = self.crowd, self.crowd.directions

        def normal(key: int, *shape: int) -> Array:
            return crowd.each(
                lambda t: draws.stream(crowd.p["seed"], t, key, size).standard_normal(shape)
            )

        self.late, self.wrong = self._with("late"), self._with("error").any()
        self.asks = np.flatnonzero(~self._of(*BLIND, "random"))
        share, noise = (self._with(name) * self.level for name in ("error", "noise"))
        self.stretch = np.eye(size) + share[:, None, None] * normal(12, size, size)
        self.noise = np.zeros((1, last, size))
        if noise.any():
            self.noise = noise[:, None, None] * normal(13, last, size)
        self.random = crowd.each(lambda t: _rotation(crowd.p, t, size))

    def step(self, update: int) -> None:
        """One update of everybody."""
        at, together = np.arange(len(self.which)), SHOWN[self.crowd.setting] > 1
        shown, wanted = (
            side if together else side[at, self.order[:, update]][:, None]
            for side in (self.x, self.y)
        )
        flows, behind = ways(self.layers, shown)
        error = ((wanted - flows[-1]) @ self.axes.T).reshape(len(at), -1) + self.noise[:, update]
        v = self._answer(self._known(shown, update), error, update)
        parts = v.reshape(len(at), -1, len(self.axes))
        score = [
            np.swapaxes(parts @ carried, 1, 2) @ flow
            for carried, flow in zip(behind, flows[:-1], strict=True)
        ]
        self._move(score, v, update)

    def _known(self, shown: Array, update: int) -> Array:
        """The response as it is known to those who ask for it: late, or wrong."""
        who = self.asks
        known = np.zeros((len(self.which), *self.stretch.shape[1:]))
        known[who] = response([one[who] for one in self.layers], shown[who])
        if self.late.any():
            self.past.append(self.layers)
        for delay in np.unique(self.level[self.late]):
            here = np.flatnonzero(self.late & (self.level == delay))
            old = self.past[max(0, update - int(delay))]
            known[here] = response([one[here] for one in old], shown[here])
        known = self.stretch @ known @ np.swapaxes(self.stretch, 1, 2) if self.wrong else known
        # Round-off is a share of the strongest mode, and no nudge of weights moves weak ones so.
        twins = known.reshape(1 + TWINS, -1, *known.shape[1:])[1:]
        lean = waves(update, len(self.layers), self.crowd.directions)
        twins += (lean + np.swapaxes(lean, 2, 3)) * np.abs(twins).max(axis=(2, 3), keepdims=True)
        return known

    def _answer(self, known: Array, error: Array, update: int) -> Array:
        """The potential of everybody."""
        v = self.gain[:, None] * self.steps[:, update % CYCLE][:, None] * error
        for n, name in enumerate(self.names):
            if name in BLIND:
                continue
            here = np.flatnonzero(self.which == n)
            gain = self.gain[here]
            if name == "random":
                law = gain[:, None, None] * self.random[here]
            else:
                law = _law(self.crowd, name, known[here], gain, self.senses[here, update])
            v[here] = np.einsum("bij,bj->bi", law, error[here])
        return v

    def _move(self, score: list[Array], v: Array, update: int) -> None:
        moving = self.moving[:, None, None]
        ahead = self._of("nesterov")[:, None, None]
        self.memory = [moving * m + s for m, s in zip(self.memory, score, strict=True)]
        pairs = zip(self.memory, score, strict=True)
        score = [np.where(ahead, s + moving * m, m) for m, s in pairs]
        score = [s - s.max(axis=1, keepdims=True) for s in score]
        spans = [-s.min(axis=(1, 2)) for s in score]
        step = self.crowd.p["scale"] / np.maximum(1.0, np.max(spans, axis=0))
        pairs = zip(self.layers, score, strict=True)
        grown = [layer * np.exp(step[:, None, None] * s) for layer, s in pairs]
        self.layers = [layer / layer.sum(axis=1, keepdims=True) for layer in grown]
        self._nudge(update + 1)
        self.effort = self.effort + step * np.sqrt(np.square(v).sum(axis=1))

    def loss(self, rows_: Array | slice = slice(None)) -> Array:
        """Half the squared residual, averaged over samples, of some learners."""
        flow = self.x[rows_]
        for layer in self.layers:
            flow = flow @ np.swapaxes(layer[rows_], 1, 2)
        return np.square(self.y[rows_] - flow).sum(axis=(1, 2)) / (2 * self.x.shape[1])


def follow(crowd: Crowd, read: list[int], watched: Array | None = None) -> tuple[Array, Array]:
    """Losses and efforts at the updates that are read, `(2, learners, read)`; and those of some
    learners after every update, `(2, watched, updates)`.
    """
    walk, seen, path = Walk(crowd, read[-1]), [], []
    for update in range(read[-1]):
        walk.step(update)
        if watched is not None:
            path.append((walk.loss(watched), walk.effort[watched]))
        if update + 1 in read:
            seen.append((walk.loss(), walk.effort))
    return np.stack(seen, axis=-1), np.stack(path, axis=-1) if path else np.zeros(0)


def _crowd(
    p: Parameters, setting: str, depth: int, arms: list[tuple[str, str, float]], trials: int
) -> Crowd:
    """The learners of a setting and depth, and their twins behind them.

    A troubled one has one imbalance and one gain.
    """
    robust = arms[0][1] != ""
    betas = [p["robust_beta"]] if robust else p["betas"]
    gains = [p["robust_gain"]] if robust else p["gains"]
    rows_ = grid(
        twin=range(1 + TWINS),
        arm=range(len(arms)),
        beta=np.asarray(betas, float),
        gain=np.asarray(gains, float),
        trial=range(trials),
    )
    return Crowd(p, setting, depth, arms, rows_)


def _spans(p: Parameters, read: list[int]) -> list[tuple[int, list[int]]]:
    """How many trials are followed, and to which of the updates that are read."""
    short = [mark for mark in read if mark <= SHORT]
    return [*([(p["trials"], short)] if short else []), (min(FEW, p["trials"]), read)]


def _apart(values: Array) -> Array:
    """Values `(twins, ...)`, the first without a nudge: that and the largest distance from it."""
    return np.stack([values[0], np.abs(values[1:] - values[0]).max(axis=0)])


@lru_cache(maxsize=1)
def _followed(text: str) -> tuple[dict[str, Array], dict[str, Array], dict[str, Array]]:
    """Losses and efforts by setting, `(2, 2, arm, depth, beta, gain, mark, trial)`, each with the
    distance of its twins, nan where nobody went; losses of troubled arms,
    `(2, arm, depth, mark, trial)`; and losses and efforts of the direct law and of its twins after
    every update, `(2, twin, depth, beta, gain, trial, update)`.
    """
    p = json.loads(text)
    main, troubled, direct = {}, {}, {}
    inner, few = (len(p["betas"]), len(p["gains"])), min(FEW, p["trials"])
    for setting in LAWS:
        arms, read = [(arm, "", 0.0) for arm in ARMS[setting]], marks(p, setting)
        shape = (2, 2, len(arms), len(p["depths"]), *inner, len(read), p["trials"])
        found, paths = np.full(shape, np.nan), []
        for (n, depth), (trials, some) in product(enumerate(p["depths"]), _spans(p, read)):
            crowd = _crowd(p, setting, depth, arms, trials)
            last = some == read and trials == few
            seen, path = follow(
                crowd, some, np.flatnonzero(crowd.rows["arm"] == 0) if last else None
            )
            part = seen.reshape(2, 1 + TWINS, len(arms), *inner, trials, len(some))
            part = np.stack([_apart(one) for one in part])
            found[:, :, :, n, :, :, : len(some), :trials] = np.moveaxis(part, -1, -2)
            paths += [path.reshape(2, 1 + TWINS, *inner, few, -1)] if last else []
        main[setting], direct[setting] = found, np.stack(paths, axis=2)
    for setting in SHOWN:
        arms, read = troubles(p, setting), p["robust_updates"]
        depths = robust_depths(p, setting)
        found = np.full((2, len(arms), len(depths), len(read), p["trials"]), np.nan)
        for (n, depth), (trials, some) in product(enumerate(depths), _spans(p, read)):
            losses = follow(_crowd(p, setting, depth, arms, trials), some)[0][0]
            part = _apart(losses.reshape(1 + TWINS, len(arms), trials, len(some)))
            found[:, :, n, : len(some), :trials] = np.moveaxis(part, -1, -2)
        troubled[setting] = found
    return main, troubled, direct


def _replaced(stored: Array, ours: Array) -> Array:
    """Our values where there are some, and those that are stored elsewhere."""
    flat = ours.ravel()
    return np.where(np.isnan(flat), stored, flat)


def _close(stored: Array, ours: list[Array], *, effort: bool = False) -> Expected:
    """Our values `(2, ...)` with the distances of their twins, and stored ones for all others.

    A value may be off by what any computed one may, or by `ROOM` times as much as its furthest
    twin: where round-off does not grow it is judged as closely as any other. Where twins part by
    more than a share of the value they have forgotten where they came from, and nobody can judge
    it: it is only asked to be possible, as all that nobody follows. A loss is at most one.
    """
    values, apart = np.concatenate([one.reshape(2, -1) for one in ours], axis=1)
    unsure = apart > SHARE * values + (0.0 if effort else NOTHING)
    possible = np.clip(stored, 0.0, np.inf if effort else 1.0)
    wanted = _replaced(possible, np.where(unsure, np.nan, values))
    apart = np.where(np.isnan(apart) | unsure, 0.0, apart)
    size = np.abs(wanted) if effort else expect.loss_size(wanted)
    return computed(wanted, np.maximum(size, ROOM * apart / expect.COMPUTED))


def _text(p: Parameters) -> str:
    return json.dumps(p, sort_keys=True)


def _learners(tables: Tables, p: Parameters) -> Columns:
    table, main = tables["learners"], _followed(_text(p))[0]
    loss, effort = ([main[setting][k] for setting in LAWS] for k in (0, 1))
    return {
        "loss": _close(table["loss"], loss),
        "effort": _close(table["effort"], effort, effort=True),
    }


def _rivals(tables: Tables, p: Parameters) -> Columns:
    table, learned, parts = tables["rivals"], tables["learners"], []
    inner = (len(p["depths"]), len(p["betas"]), len(p["gains"]))
    for setting in LAWS:
        losses, efforts = _followed(_text(p))[2][setting]
        read, few = marks(p, setting), losses.shape[-2]
        many = [min((1 + 2 * SHOWN[setting]) * mark, read[-1]) for mark in read]
        shape = (*inner, len(read), p["trials"])
        for law, rival in product(LAWS[setting], EQUAL):
            found = np.full((2, *shape), np.nan)
            for k, mark in enumerate(many):
                at = np.full(losses.shape[:-1], mark - 1)
                if rival == "effort":
                    here = (learned["setting"] == setting) & (learned["law"] == law)
                    spent = learned["effort"][here].reshape(shape)[..., k, :few, None]
                    # The first update by which so much effort is made, or the last.
                    at = np.minimum((efforts < spent).sum(axis=-1), read[-1] - 1)
                then = np.take_along_axis(losses, at[..., None], axis=-1)[..., 0]
                found[..., k, :few] = _apart(then)
            parts.append(found)
    return {"loss": _close(table["loss"], parts)}


def _troubles(tables: Tables, p: Parameters) -> Columns:
    table, troubled = tables["troubled"], _followed(_text(p))[1]
    ours = [troubled[setting] for setting in SHOWN]
    return {"loss": _close(table["loss"], ours)}


# What follows from the tables


def _bounds(tables: Tables, p: Parameters) -> Columns:
    found = {"rank": [], "weakest": [], "geometric": [], "arithmetic": []}
    for row in (row for case in _by_case(tables, p) for row in case):
        values = _kept_modes(row, p)
        found["rank"].append(len(values))
        found["weakest"].append(values[-1])
        found["geometric"].append(math.exp(math.fsum(np.log(values)) / len(values)))
        found["arithmetic"].append(math.fsum(values) / len(values))
    columns = {name: summed(np.array(column)) for name, column in found.items() if name != "rank"}
    return {"rank": whole(np.array(found["rank"])), **columns}


def _frozen_derived(tables: Tables, p: Parameters) -> Columns:
    table, bounds, laws = tables["frozen"], tables["bounds"], len(FROZEN)
    least = []
    for row in (row for case in _by_case(tables, p) for row in case):
        values = _kept_modes(row, p)
        least.append(math.sqrt(math.fsum(1 / np.square(values)) / len(values)))
    turning = np.isin(table["law"], ("paired", "kept", "geometric"))
    limit = np.where(turning, np.tile(bounds["geometric"], laws), np.tile(bounds["weakest"], laws))
    measured = _measured(tables, p)
    return {
        **{name: computed(_replaced(table[name], measured[name])) for name in MEASURES},
        "reach": summed(table["rate"] / (limit * table["gain"])),
        "thrift": summed(table["impulse"] / np.tile(least, laws)),
    }


def _compared(p: Parameters, rival: Array, law: Array) -> dict[str, Array]:
    """Rows `(rows, trials)` of losses against each other."""
    gain = np.log10(np.maximum(rival, FLOOR)) - np.log10(np.maximum(law, FLOOR))
    chosen = draws.resamples(p["bootstrap_seed"], p["resamples"], p["trials"])
    ends = [np.quantile(row[chosen].mean(axis=1), [0.025, 0.975]) for row in gain]
    low, high = np.transpose(ends)
    share = (gain > 0).sum(axis=1) / p["trials"]
    return {"advantage": means(gain), "lower": low, "upper": high, "share": share,
            "size": np.abs(gain).max(axis=1) + 1}  # fmt: skip


def _columns(parts: list[dict[str, Array]]) -> Columns:
    found = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    size = found.pop("size")
    return {
        name: same(values) if name == "share" else summed(values, size)
        for name, values in found.items()
    }


def _rows_of(table: Table, p: Parameters, **where: Any) -> Array:
    here = np.all([table[name] == value for name, value in where.items()], axis=0)
    return table["loss"][here].reshape(-1, p["trials"])


def _advantages(tables: Tables, p: Parameters) -> Columns:
    learned, equal, parts = tables["learners"], tables["rivals"], []
    for setting in LAWS:
        for law in LAWS[setting]:
            mine = _rows_of(learned, p, setting=setting, law=law)
            for rival in rivals(law):
                other = (
                    _rows_of(equal, p, setting=setting, law=law, rival=rival)
                    if rival in EQUAL
                    else _rows_of(learned, p, setting=setting, law=rival)
                )
                parts.append(_compared(p, other, mine))
    return _columns(parts)


def _onsets(tables: Tables, p: Parameters) -> Columns:
    table, found = tables["advantages"], []
    for setting in LAWS:
        read = marks(p, setting)
        for law in LAWS[setting]:
            here = (table["setting"] == setting) & (table["law"] == law)
            here &= table["rival"] == "direct"
            for row in (table["lower"][here] > 0).reshape(-1, len(read)).tolist():
                found.append(next((m for k, m in enumerate(read) if all(row[k:])), -1))
    return {"onset": whole(np.array(found))}


def _robustness(tables: Tables, p: Parameters) -> Columns:
    table, parts = tables["troubled"], []
    for setting in SHOWN:
        for law, trouble, level in troubles(p, setting):
            if law == "direct":
                continue
            mine = _rows_of(table, p, setting=setting, law=law, trouble=trouble, level=level)
            plain = {"trouble": "none", "level": 0.0}
            same_ = {"trouble": trouble, "level": level} if trouble == "noise" else plain
            parts.append(
                _compared(p, _rows_of(table, p, setting=setting, law="direct", **same_), mine)
            )
    return _columns(parts)


def expected(p: Parameters) -> dict[str, Columns]:
    """Every drawn column, and the frozen responses."""
    tasks = expect.task_columns(*draws.tasks(p["seed"], p["trials"], p["concentration"]))
    return {"tasks": tasks, **_frozen(p)}


def statistics(tables: Tables, p: Parameters) -> dict[str, Expected]:
    """Every statistic of the kind."""
    bounds, frozen, plain = tables["bounds"], tables["frozen"], {}
    turned = (bounds["random"] / bounds["geometric"]).max()
    plain["reach.max"] = max(frozen["reach"].max(), turned)
    for law in FROZEN:
        here = frozen["law"] == law
        plain[f"reach.{law}.min"] = frozen["reach"][here].min()
        for name in ("transient", "noise", "worst_3"):
            plain[f"{name}.{law}.median"] = np.median(frozen[name][here])
    plain |= {f"{name}.max": bounds[name].max() for name in ("diagonal", "below", "gyration")}
    plain["thrift.min"] = frozen["thrift"].min()
    plain["thrift.repair.max"] = frozen["thrift"][frozen["law"] == "repair"].max()
    plain["factor.median"] = np.median(bounds["geometric"] / bounds["weakest"])
    table, onsets = tables["advantages"], tables["onsets"]
    for setting in LAWS:
        last = marks(p, setting)[-1]
        for law in LAWS[setting]:
            mine = (table["setting"] == setting) & (table["law"] == law)
            mine &= table["updates"] == last
            for rival in rivals(law):
                here, name = mine & (table["rival"] == rival), f"{setting}.{law}.{rival}"
                plain[f"{name}.wins"] = (table["lower"][here] > 0).sum()
                plain[f"{name}.loses"] = (table["upper"][here] < 0).sum()
            some = (onsets["setting"] == setting) & (onsets["law"] == law)
            plain[f"{setting}.{law}.onsets"] = (onsets["onset"][some] != -1).sum()
            if law != "kept":
                twin = mine & (table["rival"] == f"{law}_random")
                twin &= table["gain"] == max(p["gains"])
                plain[f"{setting}.{law}.sense.lower"] = table["lower"][twin].min()
    names = ("bounds", "frozen", "learners", "troubled", "advantages")
    return {**rows(tables, *names), **numbers(plain)}


KIND = Kind(
    spec=spec.beside(__file__),
    keys=keys,
    sizes=sizes,
    expected=expected,
    derived={
        "bounds": _bounds,
        "frozen": _frozen_derived,
        "learners": _learners,
        "rivals": _rivals,
        "troubled": _troubles,
        "advantages": _advantages,
        "onsets": _onsets,
        "robustness": _robustness,
    },
    statistics=statistics,
    joint=joint,
    work=work,
)
