"""All shards as one lazy table."""

from pathlib import Path
from typing import TYPE_CHECKING

from whorl.ground import store
from whorl.sweep.shards import Store, check_design

if TYPE_CHECKING:
    import polars

TERMS = ("even", "handedness", "step", "drift")


def scan(folder: Path | str) -> "polars.LazyFrame":
    r"""The table of a sweep, one row per case in the order of their numbers, as a lazy frame of
    Polars.

    Args:
        folder: The folder of a sweep, finished or not.

    Returns:
        A lazy frame: what a query does not ask for is never read.

    Examples:
        >>> from whorl import sweep
        >>> design = sweep.parse(
        ...     b"name = 'few'\ntitle = 'few'\ndesign = 'grid'\nseed = 1\nchunk = 64\nschedule.epochs = 1"
        ... )
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

    Args:
        folder: The folder of a sweep.

    Returns:
        One row per combination.

    Examples:
        >>> from whorl import sweep
        >>> design = sweep.parse(
        ...     b"name = 'few'\ntitle = 'few'\ndesign = 'grid'\nseed = 1\nchunk = 64\nschedule.epochs = 1"
        ... )
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

    Args:
        folder: The folder of a sweep.
        path: The Parquet file to write.

    Examples:
        >>> from whorl import sweep
        >>> design = sweep.parse(
        ...     b"name = 'few'\ntitle = 'few'\ndesign = 'grid'\nseed = 1\nchunk = 64\nschedule.epochs = 1"
        ... )
        >>> result = sweep.sweep(design, folder / "few")
        >>> sweep.export(folder / "few", folder / "all.parquet")
    """
    with store.placed(Path(path)) as part:
        scan(folder).sink_parquet(
            part, compression="zstd", row_group_size=65536, maintain_order=True
        )
