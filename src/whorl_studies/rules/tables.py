"""The tables and statistics of the study of rules."""

from typing import Any

import numpy as np

from whorl.study import frames
from whorl.study.frames import Parts, Table, Tables
from whorl.study.parameters import Parameters
from whorl_studies.rules.compute import LOOPS, Piece

WAYS = ("one-sided", "centred")
SURE = 1e-12  # below this share of a loop nothing rises and nothing turns


def tables(p: Parameters, parts: Parts) -> Tables:
    """All tables but the statistics, rows in the order of docs/studies.md."""
    sizes = {size: parts[Piece("nodes", size)] for size in p.sizes}
    deep = {depth: parts[Piece("depth", depth)] for depth in p.depths}
    return _of_circuits(p, sizes) | _of_networks(p, deep)


def _of_circuits(p: Parameters, sizes: Any) -> Tables:
    every, nudges = range(p.circuits), frames.floats(p.nudges)
    found: dict[str, list[Table]] = {name: [] for name in ("edges", "loops", "nudges", "circuits")}
    for size, d in sizes.items():
        keys: dict[str, Any] = {"nodes": [size], "circuit": every}
        first, second = d["edges"].reshape(-1, 2).T
        found["edges"].append(
            frames.product(**keys, edge=range(d["edges"].shape[1]))
            | {"from": first, "to": second, "conductance": d["conductances"].ravel()}
            | {"way_back": d["way"].ravel()}
        )
        square = frames.product(**keys, row=range(3), column=range(3))
        found["loops"].append(square | {name: d[name].ravel() for name in LOOPS})
        found["nudges"].append(
            frames.product(**keys, way=WAYS, nudge=nudges) | {"bias": d["bias"].ravel()}
        )
        found["circuits"].append(frames.product(**keys) | _circuits(nudges, d))
    return {name: frames.joined(parts) for name, parts in found.items()}


def _circuits(nudges: np.ndarray, d: Any) -> Table:
    targets = {f"target_{k}": d["targets"][:, k] for k in range(3)}
    slowest = {name: _slowest(d[name]) for name in ("coupled", "alignment")}
    ratio = np.log(nudges[-2] / nudges[-1])
    slopes = np.log(d["bias"][:, :, -2] / d["bias"][:, :, -1]) / ratio
    apart = d["coupled"] @ d["impedance"] - d["response"]
    bent = {name: _discriminant(d[name]) for name in slowest}
    return (
        targets
        | {f"{name}_slowest": values for name, values in slowest.items()}
        | {f"{name}_skew": _skew(d[name]) for name in ("propagation", "coupled", "alignment")}
        | {"identity": _size(apart) / _size(d["response"])}
        | {f"{name}_discriminant": values for name, values in bent.items()}
        | {f"{name}_rises": _below(one / _size(d[name])) for name, one in slowest.items()}
        | {f"{name}_turns": _below(one) for name, one in bent.items()}
        | {"one_sided_slope": slopes[:, 0], "centred_slope": slopes[:, 1]}
    )


def _of_networks(p: Parameters, deep: Any) -> Tables:
    families, betas = range(p.families), frames.floats(p.betas)
    found: dict[str, list[Table]] = {name: [] for name in ("weights", "network_loops", "networks")}
    for depth, d in deep.items():
        keys: dict[str, Any] = {"family": families, "depth": [depth], "beta": betas}
        found["weights"].append(
            frames.product(**keys, **frames.places(depth))
            | {
                "weight": d["layers"].ravel(),
                "way_back": d["way"].ravel(),
            }
        )
        loops = {name: d[name].ravel() for name in ("response", "alignment")}
        found["network_loops"].append(frames.product(**keys, row=range(3), column=range(3)) | loops)
        found["networks"].append(frames.product(**keys) | _networks(d))
    order = ("family", "depth", "beta")
    more = {"weights": ("layer", "row", "column"), "network_loops": ("row", "column")}
    return {
        name: frames.ordered(frames.joined(parts), *order, *more.get(name, ()))
        for name, parts in found.items()
    }


def _networks(d: Any) -> Table:
    loop = d["alignment"]
    slowest, bent = _planar(loop), _discriminant(loop, planar=True)
    return {
        **{f"x_{k}": d["inputs"][:, k] for k in range(3)},
        "alignment_slowest": slowest,
        "response_skew": _skew(d["response"]),
        "alignment_skew": _skew(loop),
        "alignment_discriminant": bent,
        "alignment_rises": _below(slowest / _size(loop)),
        "alignment_turns": _below(bent),
    }


def _size(matrices: np.ndarray) -> np.ndarray:
    return np.sqrt(np.sum(matrices**2, axis=(-2, -1)))


def _skew(loops: np.ndarray) -> np.ndarray:
    """The skew share of a loop."""
    return _size((loops - np.swapaxes(loops, -1, -2)) / 2) / _size(loops)


def _slowest(loops: np.ndarray) -> np.ndarray:
    """The least eigenvalue of the symmetric part."""
    return np.linalg.eigvalsh((loops + np.swapaxes(loops, -1, -2)) / 2)[..., 0]


def _planar(loops: np.ndarray) -> np.ndarray:
    """The same among zero-sum vectors."""
    basis = np.array([[1, -1, 0], [1, 1, -2]]) / np.sqrt([[2], [6]])
    return _slowest(basis @ loops @ basis.T)


def _discriminant(loops: np.ndarray, *, planar: bool = False) -> np.ndarray:
    """Of the characteristic polynomial of a loop of size one; below zero where a pair is complex."""
    m = loops / _size(loops)[..., None, None]
    trace = (m[..., 0, 0] + m[..., 1, 1]) + m[..., 2, 2]
    pairs = [
        m[..., i, i] * m[..., j, j] - m[..., i, j] * m[..., j, i]
        for i, j in ((0, 1), (0, 2), (1, 2))
    ]
    second = (pairs[0] + pairs[1]) + pairs[2]
    if planar:
        return trace * trace - 4 * second
    third = np.linalg.det(m)
    return (
        (trace * second) ** 2
        - 4 * second**3
        - 4 * trace**3 * third
        + 18 * trace * second * third
        - 27 * third**2
    )


def _below(values: np.ndarray) -> np.ndarray:
    return (values < -SURE).astype(int)


def statistics(p: Parameters, t: Tables) -> dict[str, Any]:
    """Every number that a gate or the report speaks of."""
    rows, nets = t["circuits"], t["networks"]
    found: dict[str, Any] = frames.counts(t, "circuits", "networks")
    found |= {"propagation_skew.max": rows["propagation_skew"].max()}
    found |= {"identity.max": rows["identity"].max()}
    for name in ("coupled", "alignment"):
        found |= _spread(f"{name}.skew", rows[f"{name}_skew"])
        found[f"{name}.turning"] = rows[f"{name}_turns"].sum()
        found[f"{name}.rising"] = rows[f"{name}_rises"].sum()
        found[f"{name}.discriminant.min"] = rows[f"{name}_discriminant"].min()
    for size in p.sizes:
        here = rows["nodes"] == size
        found[f"coupled.skew.median.nodes{size}"] = np.median(rows["coupled_skew"][here])
        found[f"coupled.rising.nodes{size}"] = rows["coupled_rises"][here].sum()
        found[f"alignment.turning.nodes{size}"] = rows["alignment_turns"][here].sum()
    for name in ("one_sided", "centred"):
        found |= _spread(f"{name}.slope", rows[f"{name}_slope"])
    found |= {"response_skew.max": nets["response_skew"].max()}
    found |= _spread("networks.skew", nets["alignment_skew"])
    found["networks.turning"] = nets["alignment_turns"].sum()
    found["networks.rising"] = nets["alignment_rises"].sum()
    return found


def _spread(name: str, values: np.ndarray) -> dict[str, Any]:
    return {
        f"{name}.min": values.min(),
        f"{name}.median": np.median(values),
        f"{name}.max": values.max(),
    }
