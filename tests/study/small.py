"""Studies that are small enough for a test.

Designs as text, and their tables, made once in a process.
"""

from functools import cache
from pathlib import Path

import jax
import pyarrow as pa

from whorl.ground import store
from whorl.study import design, kinds, run
from whorl.study.conduct import ran, seal

HOME = Path(kinds.__file__).parent
SMALL = {
    "structural": {"families": 2, "depths": [2, 1], "omegas": [1.0, 0.0], "updates": 2},
    "threshold": {"families": 4, "depths": [2, 1], "betas": [0.0, 8.0], "resamples": 40},
    "horizon": {
        "trials": 3,
        "epochs": 1,
        "depths": [1],
        "betas": [8.0, 0.0],
        "scales": [0.2, 0.1],
        "resamples": 30,
        "chunk": 64,
    },
}
GATE = {
    "structural": ("rank.min", ">=", 1),
    "threshold": ("rows.configurations", "==", 16),
    "horizon": ("closure.trajectory.max", "<", 1e-14),
}


def text(kind="threshold", *, name="mine", expected=None, gates=None, quick=None, **others):
    """A small design as a user would write it; `others` take the place of parameters."""
    values = (
        {key: entry["value"] for key, entry in design.shipped(kind).parameters.items()}
        | SMALL[kind]
        | others
    )
    lines = [f'name = "{name}"', f'kind = "{kind}"', 'title = "a small one"']
    lines += [f'expected = "{expected}"'] if expected else []
    lines += [
        "",
        "[parameters]",
        *(f'{key} = {{ value = {value!r}, origin = "own" }}' for key, value in values.items()),
    ]
    lines += ["", "[quick]", *(f"{key} = {value!r}" for key, value in (quick or {}).items())]
    for statistic, relation, bound in gates or [GATE[kind]]:
        lines += ["", "[[gates]]", f'name = "{statistic}"', f'statistic = "{statistic}"']
        lines += [f'relation = "{relation}"', f"bound = {bound!r}", 'origin = "own"']
    return "\n".join(lines) + "\n"


def small(kind="threshold", **others):
    """The same, checked."""
    return design.parse(text(kind, **others).encode(), "mine.toml")


@cache
def made(kind):
    """The values and the tables of the small study of a kind."""
    study = small(kind)
    return study.values(), run.compute(study)


def smaller(kind, values):
    """The shipped design of a kind, with a quick run that is smaller still."""
    head, _, rest = design.shipped(kind).text.decode().partition("[quick]\n")
    quick = "".join(f"{name} = {value!r}\n" for name, value in values.items())
    return design.parse(
        f"{head}[quick]\n{quick}\n[[gates]]{rest.partition('[[gates]]')[2]}".encode()
    )


def quickly(study, place):
    """A quick run as a user makes it: tests otherwise refuse promotions of rank and type."""
    wanted = {"jax_numpy_rank_promotion": "allow", "jax_numpy_dtype_promotion": "standard"}
    before = {name: getattr(jax.config, name) for name in wanted}
    try:
        for name, value in wanted.items():
            jax.config.update(name, value)  # in all threads of the run
        run.run(study, place, registered={}, quick=True)
    finally:
        for name, value in before.items():
            jax.config.update(name, value)


def sealed(studies, folder, **options):
    """Studies with their locks, run and sealed; nothing is drawn, audited or reported."""
    environment, verdicts = ran(studies, folder, **options)
    seal(folder, environment, verdicts)
    return verdicts


def statistics(tables):
    return dict(
        zip(
            tables["statistics"]["name"].tolist(),
            tables["statistics"]["value"].tolist(),
            strict=True,
        )
    )


def parquet(kind, tables):
    """The bytes of every table."""
    return {
        name: store.parquet(kinds.get(kind).arrow(name, table)) for name, table in tables.items()
    }


def rows(table):
    return pa.table({name: pa.array(values.tolist()) for name, values in table.items()}).to_pylist()
