"""Compute cases of a sweep through `train_many`.

A row does not depend on the rows beside it: every compiled call has the design's chunk of pairs,
filled up where cases are missing, and numbers that differ from case to case are handed over pair by
pair.
"""

from collections.abc import Callable

import jax
import numpy as np

from whorl.feedback import rotational
from whorl.learning.ensemble import Ensemble, stacked, train_many
from whorl.learning.ledger import TERMS
from whorl.learning.policy import Policy
from whorl.registry import laws, policies
from whorl.sweep import draws
from whorl.sweep.plan import Cases
from whorl.systems.layered import Network

Train = Callable[..., Ensemble]
Rows = dict[str, np.ndarray]
NUMBERS = ("start", "final", "native", "gap", *TERMS, "closure")


def policy_of(cases: Cases) -> Policy:
    """The policy of a shape and its law, with the numbers of every case."""
    given = {**cases.shape, **cases.free}
    behind, chosen = laws.get(given["law"]), policies.get(given["policy"])
    law = rotational(given["alpha"], base=behind.make(**behind.takes(given)))
    return chosen.make(**chosen.takes(given), law=law)


def problem(seed: int, cases: Cases) -> tuple[np.ndarray, ...]:
    """Layers, inputs, targets, order and turns of some cases."""
    drawn, at = draws.of(seed, cases.shape, cases.draw)
    x = drawn.inputs[at]
    y = x @ draws.teacher(drawn.shares[at], cases.free["concentration"])
    layers = draws.columns(drawn.logits[at], cases.free["imbalance"], cases.free["floor"])
    return (
        layers,
        x,
        y,
        drawn.order[at],
        drawn.turns[at] * (1 - 2 * cases.flip[:, None]).astype(np.int32),
    )


def refusals(layers: np.ndarray, y: np.ndarray) -> dict[int, str]:
    """Why cases cannot even start, by their place; those that are not here can."""
    small = ~(layers >= np.finfo(float).tiny).all(axis=(1, 2, 3)) | ~np.isfinite(y).all(axis=(1, 2))
    why = {}
    for at in np.flatnonzero(small).tolist():
        try:
            Network(list(layers[at]))
            why[at] = "targets must be finite, but the teacher's columns are not"
        except ValueError as wrong:
            why[at] = str(wrong)
    return why


def rows(seed: int, cases: Cases, chunk: int, train: Train = train_many) -> Rows:
    """The results of some cases; whatever `train` raises is raised."""
    layers, x, y, order, turns = problem(seed, cases)
    why = refusals(layers, y)
    able = np.array([at for at in range(len(cases)) if at not in why], dtype=int)
    found: Rows = {name: np.full(len(cases), np.nan) for name in NUMBERS}
    found |= {
        "made": np.zeros(len(cases), dtype=np.int64),
        "reason": np.full(len(cases), "", dtype=object),
    }
    for at, words in why.items():
        found["reason"][at] = words
    if able.size:
        filled = able[np.minimum(np.arange(_filled(able.size, chunk)), able.size - 1)]
        made = train(
            stacked(layers[filled]),
            x[filled],
            y[filled],
            policy=policy_of(cases.rows(filled)),
            schedule=order[filled],
            turns=turns[filled],
            workers=1,
            chunk=chunk,
        )
        for name, values in _results(made).items():
            found[name][able] = values[: able.size]
    return found


def _filled(count: int, chunk: int) -> int:
    """Pairs of a call.

    Off the CPU all pairs are one program, so that few sizes are used: the chunk times powers of
    two.
    """
    chunks = -(-count // chunk)
    return chunk * (chunks if jax.default_backend() == "cpu" else 1 << (chunks - 1).bit_length())


def _results(made: Ensemble) -> Rows:
    final, other = made.final
    found = {
        "start": made.start,
        "final": final,
        "native": other,
        "gap": made.gap,
        "closure": made.closure,
    }
    found = {name: np.asarray(values) for name, values in found.items()}
    found |= {term: np.asarray(getattr(made.ledger.sums, term)) for term in TERMS}
    found["made"] = np.asarray(made.made)
    whole = np.all(np.isfinite(np.stack([found[name] for name in NUMBERS])), axis=0)
    stopped = "stopped after {} of {} updates: the next one would have left the interior"
    reason = [
        ("" if fine else "the result is not finite") if done else stopped.format(at, made.scheduled)
        for fine, done, at in zip(
            list(whole), made.completed.tolist(), found["made"].tolist(), strict=True
        )
    ]
    return found | {"reason": np.array(reason, dtype=object)}
