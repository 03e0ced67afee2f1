"""Run folders made from the audit's own recomputation, with small designs.

Something to audit, and to tamper with.

A little noise on every computed value stands for the last bits in which another program differs.
"""

import json
import struct
import zlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from whorl_audit import crate, kinds
from whorl_audit.folder import sha256
from whorl_audit.types import Tables
from whorl_audit.values import recompute
from whorl_audit.verdict import RELATIONS, margin

NOISE = 1e-16
VERSION = "0.0.0"  # of the whorl that is said to have made a forged folder

PARAMETERS = {
    "structural": {
        "seed": 5,
        "families": 3,
        "depths": [2, 6],
        "width": 3,
        "mixtures": 3,
        "concentration": 1.0,
        "column_concentration": 4.0,
        "floor": 0.2,
        "alpha": 1.0,
        "omegas": [0.0, 0.5, 2.0],
        "updates": 3,
        "step": 0.05,
        "leak": 0.1,
        "rank_tol": 1e-10,
        "steps": [1e-2, 1e-3, 1e-4],
        "negative_start": [0.1, 0.1, 0.8],
        "negative_target": [0.3, 0.4, 0.3],
        "positive_start": [0.25, 0.35, 0.4],
        "positive_target": [0.5, 0.3, 0.2],
    },
    "threshold": {
        "seed": 6,
        "bootstrap_seed": 7,
        "families": 6,
        "depths": [1, 4],
        "width": 3,
        "mixtures": 3,
        "betas": [0.0, 2.0, 8.0],
        "concentration": 3.0,
        "floor": 0.02,
        "finite_step": 1e-3,
        "resamples": 40,
        "rank_tol": 1e-10,
    },
    "horizon": {
        "seed": 8,
        "bootstrap_seed": 9,
        "trials": 3,
        "depths": [1, 3],
        "width": 3,
        "mixtures": 3,
        "betas": [0.0, 8.0],
        "scales": [0.1, 0.2],
        "concentration": 1.0,
        "floor": 0.1,
        "epochs": 2,
        "leak": 0.1,
        "alpha": 1.0,
        "omega": 1.0,
        "resamples": 50,
        "chunk": 64,
    },
}

GATES = {
    "structural": [
        ("every operator has full rank", "rank.min", "==", 6),
        ("columns are conserved", "column_residual.max", "<", 1e-12),
    ],
    "threshold": [
        ("the ratio tells the sign", "auc.lower", ">", 0.5),
        ("no statistic of this name", "nothing", "<", 1.0),
    ],
    "horizon": [
        ("the account closes", "closure.trajectory.max", "<", 1e-14),
        ("weights stay inside", "weight.min", ">=", 1e-6),
    ],
}


def make_tables(kind, parameters, noise=NOISE):
    """Every table of a study but the statistics' own rows, as columns of NumPy arrays."""
    rng = np.random.default_rng(1)
    study = kinds.find(kind)
    expected = recompute(study, parameters)
    tables = Tables({name: dict(keys) for name, keys in study.keys(parameters).items()})
    for name, columns in expected.items():
        for column, one in columns.items():
            scale = np.abs(one.values) if one.scale is None else one.scale
            spread = (
                noise * scale * rng.uniform(-1, 1, one.values.shape) * (one.values != 0)
                if one.tolerance > 1e-12
                else 0
            )
            tables[name][column] = one.values + spread
    return rederive(kind, parameters, tables)


def rederive(kind, parameters, tables):
    """Make the derived columns and the statistics anew from the others."""
    study = kinds.find(kind)
    for name, formula in study.derived.items():
        for column, one in formula(tables, parameters).items():
            tables[name][column] = one.values
    statistics = study.statistics(tables, parameters)
    tables["statistics"] = {
        "name": np.array(list(statistics)),
        "value": np.array([float(one.values) for one in statistics.values()]),
    }
    return tables


def to_arrow(kind, name, table):
    columns = kinds.find(kind).columns[name]
    types = {"int64": pa.int64(), "double": pa.float64(), "string": pa.string()}
    fields = [pa.field(one.name, types[one.type], metadata={"role": one.role}) for one in columns]
    return pa.table(
        [pa.array(table[one.name].tolist(), types[one.type]) for one in columns],
        schema=pa.schema(fields),
    )


def design_text(kind, parameters, quick=None):
    lines = [
        f'name = "{kind}"',
        f'kind = "{kind}"',
        f'title = "A small {kind} study"',
        'expected = "PASS"',
        "",
        "[parameters]",
    ]
    lines += [
        f'{name} = {{ value = {json.dumps(value)}, origin = "own" }}'
        for name, value in parameters.items()
    ]
    if quick:
        lines += [
            "",
            "[quick]",
            *(f"{name} = {json.dumps(value)}" for name, value in quick.items()),
        ]
    for name, statistic, relation, bound in GATES[kind]:
        gate = {
            "name": name,
            "statistic": statistic,
            "relation": relation,
            "bound": bound,
            "origin": "own",
        }
        lines += ["", "[[gates]]", *(f"{key} = {json.dumps(value)}" for key, value in gate.items())]
    return "\n".join(lines) + "\n"


def gate_records(kind, statistics):
    for name, statistic, relation, bound in GATES[kind]:
        value = statistics.get(statistic)
        passed = value is not None and RELATIONS[relation](value, bound)
        room = None if value is None else margin(relation, value, bound)
        gate = {
            "name": name,
            "statistic": statistic,
            "relation": relation,
            "bound": bound,
            "origin": "own",
        }
        yield gate | {"value": value, "passed": passed, "margin": room}


def png(text):
    def chunk(kind, content):
        return (
            struct.pack(">I", len(content))
            + kind
            + content
            + struct.pack(">I", zlib.crc32(kind + content))
        )

    pixels = zlib.compress(b"\0\0\0\0")
    head = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    parts = [
        chunk(b"IHDR", head),
        chunk(b"tEXt", b"whorl-tables\0" + text.encode()),
        chunk(b"IDAT", pixels),
        chunk(b"IEND", b""),
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def pdf(text):
    return (
        b"%PDF-1.4\n1 0 obj\n<< /Creator (x) /Keywords (" + text.encode() + b") >>\nendobj\n%%EOF\n"
    )


def write_study(path, kind, parameters, quick=None, registered=True):
    """A study folder that passes its audit."""
    (path / "tables").mkdir(parents=True)
    (path / "figures").mkdir()
    (path / "design.toml").write_text(design_text(kind, parameters, quick))
    digest = sha256((path / "design.toml").read_bytes())
    sources = dict.fromkeys(
        sorted((f"study/kinds/{kind}/__init__.py", "study/gates.py", "ground/store.py")), "0" * 64
    )
    lock = {"design": digest, "sources": sources} if registered else {}
    (path / "lock.json").write_text(json.dumps(lock))
    tables = make_tables(kind, parameters | (quick or {}))
    for name, table in tables.items():
        pq.write_table(to_arrow(kind, name, table), path / "tables" / f"{name}.parquet")
    verdict = {
        "study": kind,
        "kind": kind,
        "title": f"A small {kind} study",
        "expected": "PASS",
        "quick": bool(quick),
    }
    verdict |= {
        "registered": registered and not quick,
        "why_unregistered": None if registered and not quick else "it is quick, or has no lock",
    }
    (path / "verdict.json").write_text(json.dumps(verdict))
    judge(path, kind)
    hashes = {"tasks": sha256((path / "tables" / "tasks.parquet").read_bytes())}
    write_figure(path / "figures" / kind, hashes)


def write_figure(stem, hashes):
    for ending, make in ((".png", png), (".pdf", pdf)):
        stem.parent.mkdir(exist_ok=True)
        stem.with_suffix(ending).write_bytes(make(json.dumps(hashes)))


def judge(path, kind):
    """Evaluate the gates on the statistics that are there."""
    table = pq.ParquetFile(path / "tables" / "statistics.parquet").read()
    gates = list(
        gate_records(
            kind, dict(zip(table["name"].to_pylist(), table["value"].to_pylist(), strict=True))
        )
    )
    verdict = json.loads((path / "verdict.json").read_text())
    verdict |= {
        "gates": gates,
        "verdict": "PASS" if all(gate["passed"] for gate in gates) else "FAIL",
    }
    (path / "verdict.json").write_text(json.dumps(verdict))


def study_folders(root):
    return sorted(design.parent for design in root.glob("*/design.toml"))


def rehash(root):
    """Make the hashes in every verdict anew."""
    for path in study_folders(root):
        verdict = json.loads((path / "verdict.json").read_text())
        files = sorted((path / "tables").glob("*.parquet"))
        verdict["design"], verdict["lock"] = (
            sha256((path / name).read_bytes()) for name in ("design.toml", "lock.json")
        )
        verdict["tables"] = {
            file.stem: {
                "sha256": sha256(file.read_bytes()),
                "rows": pq.read_metadata(file).num_rows,
            }
            for file in files
        }
        (path / "verdict.json").write_text(json.dumps(verdict))


def seal(root, version=VERSION):
    """Make all hashes and all that repeats the studies anew, so that only recomputation can find
    what was changed.
    """
    rehash(root)
    verdicts = {
        path.name: json.loads((path / "verdict.json").read_text()) for path in study_folders(root)
    }
    fields = ("verdict", "expected", "registered", "quick")
    summary = {
        "studies": {
            kind: {name: verdict[name] for name in fields} for kind, verdict in verdicts.items()
        }
    }
    (root / "summary.json").write_text(json.dumps(summary))
    (root / "environment.json").write_text(json.dumps(environment(root, verdicts, version)))
    describe(root, verdicts)
    write_manifest(root)


def environment(root, verdicts, version):
    """The environment of a run by another version, with which no shipped lock can be compared."""
    locks = [json.loads((root / name / "lock.json").read_text()) for name in verdicts]
    words = dict.fromkeys(("device", "python", "platform", "machine", "processor"), "forged")
    return words | {
        "whorl": version,
        "sources": sha256(
            "".join(
                digest for lock in locks for digest in dict(lock.get("sources", {})).values()
            ).encode()
        ),
        "designs": {name: verdict["design"] for name, verdict in verdicts.items()},
        "quick": any(verdict["quick"] for verdict in verdicts.values()),
        "packages": dict.fromkeys(("equinox", "jax", "jaxlib", "numpy", "pyarrow", "scipy"), "1.0"),
        "cores": 2,
    }


def describe(root, verdicts):
    """The crate."""
    said = json.loads((root / "environment.json").read_text())
    files = {name: root / name for name in names_in(root) if name != crate.NAME}
    told = (
        f"{name}: {one['verdict']}{'' if one['registered'] else ' (UNREGISTERED)'}"
        for name, one in verdicts.items()
    )
    folder = {
        "@id": "./",
        "@type": "Dataset",
        "citation": {"@id": "#article"},
        "isBasedOn": {"@id": "#whorl"},
        "name": "Registered studies of conservative physical learning",
        "description": "; ".join(told),
        "hasPart": [{"@id": name} for name in files],
        "datePublished": "2000-01-01",
        "license": {"@id": "#licence"},
    }
    graph = [
        folder,
        {"@id": "#licence", "@type": "CreativeWork"},
        *crate._entities(files, said).values(),
    ]
    (root / crate.NAME).write_text(
        json.dumps({"@context": f"{crate.STANDARD}/context", "@graph": graph})
    )


def names_in(root):
    names = sorted(file.relative_to(root).as_posix() for file in root.rglob("*") if file.is_file())
    return [
        name for name in names if name != "manifest-sha256.txt" and Path(name).name != "audit.json"
    ]


def write_manifest(root):
    lines = [f"{sha256((root / name).read_bytes())}  {name}\n" for name in names_in(root)]
    (root / "manifest-sha256.txt").write_text("".join(lines))


def write_run(root, kinds=tuple(PARAMETERS), **options):
    """A run folder that passes its audit."""
    for kind in kinds:
        write_study(root / kind, kind, PARAMETERS[kind], **options)
    if set(kinds) == set(PARAMETERS) and not options.get("quick"):
        write_figure(root / "figures" / "concept", {})
    seal(root)
    return root
