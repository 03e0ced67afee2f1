"""All shards as one table, lazily: what a query does not ask for is never read."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from whorl.ground import store
from whorl.sweep.shards import Store, check_design

if TYPE_CHECKING:
    import polars

TERMS = ("even", "handedness", "step", "drift")
BOTH = ("step_matched", "adaptive")


def scan(folder: Path | str) -> "polars.LazyFrame":
    r"""The table of a sweep, one row a case in the order of their numbers, as a lazy frame of
    Polars.

    Examples:
        >>> from whorl import sweep
        >>> design = sweep.parse(b"name = 'few'\ntitle = 'few'\ndesign = 'grid'\nseed = 1\nchunk = 64\nschedule.epochs = 1")
        >>> result = sweep.sweep(design, folder / "few")
        >>> sweep.scan(folder / "few").select("gap").collect().shape
        (1, 1)
    """
    import polars

    kept = Store(Path(folder))
    if not (files := kept.files()):
        raise ValueError(f"{folder} must hold shards of a sweep, but it holds none")
    design = kept.design()
    for path in files:
        check_design(path, design)
    return polars.scan_parquet(files)


def conditions(folder: Path | str) -> "polars.DataFrame":
    r"""Means over trials and flips for every combination of the swept parameters, with the standard
    error of the gap.

    Examples:
        >>> from whorl import sweep
        >>> design = sweep.parse(b"name = 'few'\ntitle = 'few'\ndesign = 'grid'\nseed = 1\nchunk = 64\nschedule.epochs = 1")
        >>> result = sweep.sweep(design, folder / "few")
        >>> sweep.conditions(folder / "few")["cases"].to_list()
        [1]
    """
    import polars

    swept = [
        name
        for name, values in Store(Path(folder)).design().values.items()
        if not isinstance(values, tuple) or len(values) > 1
    ]
    means = [polars.col(name).mean() for name in ("gap", *TERMS, "final", "native")]
    spread = (polars.col("gap").std() / polars.col("gap").count().sqrt()).alias("gap_error")
    counts = [polars.len().alias("cases"), polars.col("failed").sum()]
    return (
        scan(folder)
        .group_by(swept or ["policy"])
        .agg(*means, spread, *counts)
        .sort(swept or ["policy"])
        .collect(engine="streaming")
    )


def export(folder: Path | str, path: Path | str) -> None:
    r"""All shards as one Parquet file, written as it is read: memory does not grow with the table.

    Examples:
        >>> from whorl import sweep
        >>> design = sweep.parse(b"name = 'few'\ntitle = 'few'\ndesign = 'grid'\nseed = 1\nchunk = 64\nschedule.epochs = 1")
        >>> result = sweep.sweep(design, folder / "few")
        >>> sweep.export(folder / "few", folder / "all.parquet")
    """
    with store.placed(Path(path)) as part:
        scan(folder).sink_parquet(
            part, compression="zstd", row_group_size=65536, maintain_order=True
        )


def study_tables(folder: Path | str) -> dict[str, dict[str, Any]]:
    r"""Tables `trials`, `conditions` and `statistics` as the horizon study has them, for its
    figure.

    For grids over both policies with depth, imbalance and scale as the only other axes. Intervals
    are means plus and minus 1.96 standard errors over trials.

    Examples:
        >>> from whorl import sweep
        >>> head = b"name = 'few'\ntitle = 'few'\ndesign = 'grid'\nseed = 1\nchunk = 64\ntrials = 2\n"
        >>> design = sweep.parse(head + b"schedule.epochs = 1\npolicy.policy = ['step_matched', 'adaptive']")
        >>> result = sweep.sweep(design, folder / "few")
        >>> sorted(sweep.study_tables(folder / "few"))
        ['conditions', 'statistics', 'trials']
    """
    import polars

    _check_axes(folder)
    rows = scan(folder).filter(polars.col("policy").is_in(BOTH)).rename({"imbalance": "beta"})
    trials = (
        rows.group_by("trial", "policy")
        .agg(polars.col("gap", *TERMS).mean())
        .sort("trial", "policy")
        .collect(engine="streaming")
    )
    sides = [
        polars.col("gap").filter(polars.col("policy") == policy).mean().alias(f"gap_{policy}")
        for policy in BOTH
    ]
    keys = ("depth", "beta", "scale")
    gain = polars.col("gap_step_matched") - polars.col("gap_adaptive")
    error = 1.96 * gain.std() / polars.len().sqrt()
    means = [*(polars.col(f"gap_{policy}").mean() for policy in BOTH), gain.mean().alias("gain")]
    ends = [(gain.mean() - error).alias("lower"), (gain.mean() + error).alias("upper")]
    table = (
        rows.group_by(*keys, "trial")
        .agg(*sides)
        .group_by(*keys)
        .agg(*means, *ends)
        .sort(*keys)
        .collect(engine="streaming")
    )
    return {
        "trials": _columns(trials),
        "conditions": _columns(table),
        "statistics": _statistics(trials),
    }


def _check_axes(folder: Path | str) -> None:
    design = Store(Path(folder)).design()
    axes = {
        name
        for name, values in design.values.items()
        if not isinstance(values, tuple) or len(values) > 1
    }
    policies = design.values["policy"]
    if (
        design.kind == "grid"
        and axes <= {"depth", "imbalance", "scale", "policy"}
        and isinstance(policies, tuple)
        and set(BOTH) <= {*policies}
    ):
        return
    rule = f"{folder} must be a grid over {' and '.join(BOTH)} and over no more than depth, imbalance and scale"
    raise ValueError(f"{rule}, but it varies {', '.join(sorted(axes)) or 'nothing'}")


def _columns(frame: Any) -> dict[str, Any]:
    return {name: frame[name].to_numpy() for name in frame.columns}


def _statistics(trials: Any) -> dict[str, Any]:
    import numpy as np
    import polars

    found: dict[str, float] = {}
    for policy in BOTH:
        here = trials.filter(polars.col("policy") == policy)
        found |= {f"{name}.{policy}": float(here[name].mean()) for name in ("gap", "step", "drift")}
        error = 1.96 * float(here["gap"].std() or 0.0) / len(here) ** 0.5
        found |= {
            f"gap.{policy}.lower": found[f"gap.{policy}"] - error,
            f"gap.{policy}.upper": found[f"gap.{policy}"] + error,
        }
    return {"name": np.array(list(found)), "value": np.array(list(found.values()))}
