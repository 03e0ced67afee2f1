"""Run folders without a run: designs that ship, tables of a few rows, and statistics at will."""

import struct
import zlib
from unittest import mock

import numpy as np
import pyarrow as pa

from whorl.ground import store
from whorl.study import design, gates, kinds, layout, lock, published

ENVIRONMENT = {
    "whorl": "0.1.0",
    "python": "3.11.7",
    "packages": {"jax": "0.10.2", "numpy": "2.4.6"},
    "sources": "5" * 64,
    "designs": {},
    "quick": False,
    "device": "cpu",
    "platform": "Linux",
    "machine": "x86_64",
    "processor": "A Processor",
    "cores": 2,
}
HOLDS = {
    "claim": "weights has its columns",
    "error": 0.0,
    "tolerance": 0.0,
    "where": "weights",
    "passed": True,
}
FAILS = {
    "claim": "losses follow from <weights>",
    "error": 0.5,
    "tolerance": 1e-9,
    "where": "updates.taken, row 7",
    "passed": False,
}


def statistics_of(study):
    """Values at which every gate holds, and every published number is what was printed.

    But for the registered failure.
    """
    values = {}
    for gate in study.gates:
        values[gate.statistic] = {
            "<": gate.bound / 1000,
            "<=": gate.bound,
            ">": gate.bound + 0.125,
            ">=": gate.bound,
            "==": gate.bound,
        }[gate.relation]
    for number in published.numbers():
        if number.study == study.name and number.kind != "identity":
            values[number.statistic] = float(number.printed.strip("<. "))
        elif number.study == study.name:
            values.setdefault(number.statistic, 0.0)
    return values | ({"rank.min": 5.0} if study.expected == "FAIL" else {})


def tables_of(kind):
    random = np.random.default_rng(7)
    if kind == "threshold":
        family, depth, beta = (
            grid.ravel() for grid in np.meshgrid(np.arange(6), [1, 4], [0.0, 8.0], indexing="ij")
        )
        ratio = random.normal(size=family.size) * 10.0 ** random.integers(-1, 3, family.size)
        coefficient = (1 - ratio) * random.uniform(0.1, 1, family.size)
        coefficient[0] *= -1  # one that the ratio gets wrong
        kept = {
            "family": family,
            "depth": depth,
            "beta": beta,
            "ratio": ratio,
            "coefficient": coefficient,
        }
        return {
            "configurations": kept
            | {"favourable": (coefficient < 0).astype(int), "predicted": (ratio > 1).astype(int)}
        }
    if kind == "horizon":
        terms = {
            name: random.normal(size=10) / 100
            for name in ("gap", "even", "handedness", "step", "drift")
        }
        return {
            "trials": {
                "trial": np.repeat(np.arange(5), 2),
                "policy": np.array(["step_matched", "adaptive"] * 5),
            }
            | terms
        }
    if kind == "foresight":
        arm, horizon, depth = (
            grid.ravel()
            for grid in np.meshgrid(["turns", "random"], [0, 6, -1], [1, 4], indexing="ij")
        )
        return {
            "conditions": {
                "arm": arm,
                "horizon": horizon,
                "depth": depth,
                "pays": ((arm == "turns") & (horizon < 0)).astype(int),
            }
        }
    return {
        "operators": {
            "family": np.repeat(np.arange(3), 2),
            "depth": np.tile([2, 6], 3),
            "rank": np.array([6, 6, 6, 5, 6, 5]),
        }
    }


def write_study(
    root,
    text,
    *,
    registered=None,
    quick=False,
    audit=(HOLDS,),
    folder=(HOLDS,),
    figures=(),
    **statistics,
):
    """A study from a design's text; `registered` is its lock, by default the right one."""
    study = design.parse(text)
    place = root / study.name
    registered = (
        {"design": study.sha256, "sources": {"network.py": "5" * 64}}
        if registered is None
        else registered
    )
    values = statistics_of(study) | statistics
    tables = tables_of(study.kind) | {
        "statistics": {"name": np.array(list(values)), "value": np.array(list(values.values()))}
    }
    store.write(place / "design.toml", study.text)
    store.write(place / "lock.json", lock.text(registered))
    records = {}
    for name, table in tables.items():
        path = place / "tables" / f"{name}.parquet"
        store.write(
            path, store.parquet(pa.table({key: column.tolist() for key, column in table.items()}))
        )
        records[name] = {"sha256": store.hash_of(path), "rows": len(next(iter(table.values())))}
    result, seen = gates.verdict(study, values)
    reason = (
        "a quick run is a smoke test"
        if quick
        else None
        if registered
        else "the design was never registered"
    )
    verdict = {
        "study": study.name,
        "kind": study.kind,
        "title": study.title,
        "verdict": result,
        "expected": study.expected,
    }
    verdict |= {
        "registered": reason is None,
        "why_unregistered": reason,
        "quick": quick,
        "tables": records,
        "gates": seen,
    }
    hashes = {
        name: store.hash_of(place / file)
        for name, file in (("design", "design.toml"), ("lock", "lock.json"))
    }
    store.write_json(place / "verdict.json", verdict | hashes)
    if audit is not None:
        store.write_json(
            place / "audit.json",
            {"study": study.name, "folder_findings": list(folder), "study_findings": list(audit)},
        )
    for name in figures:
        store.write(place / "figures" / f"{name}.png", png())
        store.write(place / "figures" / f"{name}.pdf", b"%PDF-1.4 not a picture")
    return place


def write_run(root, texts, **options):
    """A run folder of these designs."""
    store.write_json(root / "environment.json", ENVIRONMENT)
    for text in texts:
        write_study(root, text, **options)
    layout.seal(root)
    return root


def own(kind, title="A study of ours", name="mine"):
    """A design of a user's own."""
    lines = design.template(kind).splitlines()
    return "\n".join(
        f"title = {title!r}"
        if line.startswith("title")
        else f'name = "{name}"'
        if line.startswith('name = "mine')
        else line
        for line in lines
    ).encode()


def paper():
    return [design.shipped(name).text for name in kinds.paper()]


def spread(study):
    """A distribution that holds every published number in its middle."""
    random = np.random.default_rng(3)
    numbers = [
        number
        for number in published.numbers()
        if number.study == study and number.kind == "statistical"
    ]
    return {
        n.statistic: float(n.printed)
        + np.append(np.linspace(-1, 1, 40) * abs(float(n.printed)), 0)
        + 0 * random.normal()
        for n in numbers
    }


def known_middle():
    """Reports written in this context compare with `spread`, not with the distributions that
    ship.
    """
    return mock.patch.object(published, "distribution", spread)


def png(width=600, height=300):
    """A blank picture."""

    def chunk(kind, data):
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    rows = (b"\0" + b"\xf0\xf4\xf8" * width) * height
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )
