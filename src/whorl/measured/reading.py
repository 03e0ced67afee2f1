"""From a file or from arrays to `Measurements`."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from whorl import _check
from whorl.fields import Field
from whorl.ground.tables import Table, TableError, some
from whorl.measured.intake import Intake, Measurements, Rows
from whorl.measured.layout import BLUR, DRIVES, Layout, called, layout

PART = 1 << 16  # rows that are taken in together
Columns = Mapping[str, np.ndarray]
SCALE = Field("time_scale", 1.0, above=0)
SHARE = Field("share", above=0, below=1)
Numbers = Any  # whatever NumPy can make an array of numbers from


def read(
    path: str | Path,
    *,
    time_scale: float = 1.0,
    rename: Mapping[str, str] | None = None,
    strict: bool = False,
) -> Measurements:
    """Read measurements in wide or long form: CSV, Parquet, JSON lines or a NumPy archive.

    See `layout` for the columns.

    Velocities are divided by `time_scale`: the time that passed while the recorded change took
    place.

    Args:
        path: The file, or "-" for standard input.
        time_scale: The time that passed while the recorded change took place.
        rename: Names of columns in the file, each with the name that it stands for.
        strict: Whether a row with an empty cell is refused; else it is left out and counted.

    Returns:
        The measurements.

    Raises:
        ValueError: In one sentence with the line, the column and the value.

    Examples:
        >>> from whorl import measured
        >>> measured.read("examples/measurements.csv").rows
        36
    """
    table = Table(path, rename, strict=strict, called=called)
    scale = SCALE.check(time_scale)
    try:
        plan = _planned(table)
        drives = tuple(role for role in DRIVES if role in plan.roles)
        rows = _long(table, plan) if plan.long else _wide(table, plan)
        count, samples, outputs = rows.velocity.shape
        intake = Intake(samples, outputs, drives, scale)
        for start in range(0, count, PART):
            intake.add(rows.part(slice(start, start + PART)), start)
        names = {role: list(columns) for role, columns in plan.roles.items()}
        return replace(intake.finish(str(table.path), names), dropped=table.dropped)
    except TableError as fault:
        raise table.named(fault) from None


def _planned(table: Table) -> Layout:
    """What the columns mean; a refusal says which there are."""
    try:
        return layout(table.names)
    except TableError as fault:
        raise TableError(
            f"{fault}; its columns are {some(table.names)} (rename them with --rename old=new)",
            column=fault.column,
        ) from None


def _wide(table: Table, plan: Layout) -> Rows:
    """A row per line, sorted by repeat where they come in another order or with names."""
    repeat = plan.keys.get("repeat")
    try:
        columns = table.columns(plan.numbers, plan.labels)
    except TableError as fault:
        if repeat is None or fault.column != repeat:
            raise
        numbers = [name for name in plan.numbers if name != repeat]
        columns = table.columns(numbers, [*plan.labels, repeat])
        columns[repeat] = _numbered(columns[repeat])
    if repeat is not None and table.rows is not None and (np.diff(columns[repeat]) < 0).any():
        order = np.argsort(columns[repeat], kind="stable")
        columns = {name: values[order] for name, values in columns.items()}
        table.rows = table.rows[order]
    return _rows(columns, plan, plan.samples, plan.outputs)


def _numbered(labels: np.ndarray) -> np.ndarray:
    """Repeats as numbers: as they are where all of them are numbers, else in the order they came."""
    try:
        return np.array([float(label) for label in labels])
    except ValueError:
        known = {label: float(number) for number, label in enumerate(dict.fromkeys(labels))}
        return np.array([known[label] for label in labels])


def _rows(columns: Columns, plan: Layout, samples: int, outputs: int) -> Rows:
    """Columns with an entry per measurement, or with one entry per line of a measurement."""
    fields = {
        role: np.stack([columns[name] for name in names], axis=-1)
        for role, names in plan.roles.items()
    }
    count = fields["velocity"].size // (samples * outputs)
    step = samples * outputs if plan.long else 1
    keys = {key: columns[name][::step] for key, name in plan.keys.items()}
    uncertainty = fields.get("uncertainty")
    return Rows(
        fields["velocity"].reshape(count, samples, outputs),
        {role: fields[role].reshape(count, samples, outputs) for role in DRIVES if role in fields},
        None if uncertainty is None else uncertainty.reshape(count, -1),
        keys.get("sample") if not (plan.long and samples > 1) else None,
        keys.get("repeat"),
        {name: columns[name] for name in plan.state},
        keys.get(BLUR),
    )


def _long(table: Table, plan: Layout) -> Rows:
    """A row per measurement of a table with a line per output, all of them like the first one."""
    table.strict = True  # a measurement takes several lines, and all of them
    columns = table.columns(plan.numbers, plan.labels)
    names = columns["measurement"]
    if not len(names):
        raise TableError("the table must have at least 12 measurements, but it has none", row=0)
    lines = int(np.argmax(names != names[0])) or len(names)
    together = "sample" in columns and len(set(columns["sample"][:lines])) > 1
    samples = len(set(columns["sample"][:lines])) if together else 1
    if lines % samples:
        raise TableError(
            f"every sample must have the same outputs, but there are {lines} lines for {samples} "
            "samples",
            row=0,
            column="sample",
        )
    if lines // samples < 2:
        raise TableError(
            "a measurement must have at least 2 outputs, but it has 1", row=0, column="output"
        )
    _alike(columns, lines, ("output", "sample") if together else ("output",))
    if table.rows is not None:
        table.rows = table.rows[::lines]
    return _rows(columns, plan, samples, lines // samples)


def _alike(columns: Columns, lines: int, same: Sequence[str]) -> None:
    """Refuse a measurement whose lines are not those of the first one."""
    names = columns["measurement"]
    starts = np.repeat(names[::lines], lines)[: len(names)]
    wrong = np.append(names != starts, len(names) % lines > 0)
    if wrong.any():
        raise TableError(
            f"every measurement must have {lines} lines, as the first one has, but one ends too "
            "early or too late",
            row=min(int(np.argmax(wrong)), len(names) - 1),
            column="measurement",
        )
    for name in same:
        differs = columns[name] != np.tile(columns[name][:lines], len(names) // lines)
        if differs.any():
            row = int(np.argmax(differs))
            raise TableError(
                f"the order of the {name}s must be that of the first measurement, but here is "
                f"{columns[name][row]}",
                row=row,
                column=name,
            )


def collect(
    residuals: Numbers | None,
    velocities: Numbers,
    *,
    potentials: Numbers | None = None,
    sample: Sequence[Any] | np.ndarray | None = None,
    repeat: Numbers | None = None,
    uncertainty: Numbers | None = None,
    residual_uncertainty: float = 0.0,
    time_scale: float = 1.0,
) -> Measurements:
    """Take measurements from arrays.

    `(rows, outputs)`, or `(rows, samples, outputs)` where samples were driven and read together.

    Args:
        residuals: What was applied; None where only potentials were recorded.
        velocities: How the outputs moved, of the same shape.
        potentials: The potentials applied at the boundary, of the same shape.
        sample: A label per row; each sample then has a loop of its own.
        repeat: A number per row, sorted within each sample.
        uncertainty: Standard deviation of the velocities: one number, one per row or per value.
        residual_uncertainty: Standard deviation of the noise in each recorded residual.
        time_scale: Velocities are divided by this.

    Returns:
        The measurements.

    Raises:
        ValueError: Where shapes do not fit together, or a value is not finite.

    Examples:
        >>> from whorl import measured
        >>> residuals = np.tile(0.1 * (np.eye(3) - 1 / 3), (12, 1))
        >>> velocities = residuals + 0.001 * np.random.default_rng(0).standard_normal((36, 3))
        >>> measured.collect(residuals, velocities).rows
        36
    """
    velocity = array("velocities", velocities)
    if velocity.ndim not in (2, 3):
        raise ValueError(
            "velocities must have shape (rows, outputs) or (rows, samples, outputs), but the "
            f"shape is {velocity.shape}"
        )
    drives = {
        name: array(argument, value, velocity.shape)
        for name, argument, value in (
            ("residual", "residuals", residuals),
            ("potential", "potentials", potentials),
        )
        if value is not None
    }
    if not drives:
        raise ValueError(
            "residuals must be given where there are no potentials, but both are missing"
        )
    if velocity.shape[-1] < 2:
        raise ValueError(
            f"velocities must have at least 2 outputs, but they have {velocity.shape[-1]}"
        )
    rows, outputs = len(velocity), velocity.shape[-1]
    samples = velocity.shape[1] if velocity.ndim == 3 else 1
    cube = (rows, samples, outputs)
    labels = None if sample is None else _check.numpy("sample", sample)
    if labels is not None and labels.shape != (rows,):
        raise ValueError(
            f"sample must have one label per row, {rows}, but its shape is {labels.shape}"
        )
    runs = None if repeat is None else array("repeat", repeat, (rows,))
    precision = None if uncertainty is None else _precision(uncertainty, velocity.shape)
    intake = Intake(samples, outputs, tuple(drives), SCALE.check(time_scale))
    try:
        fields = {name: value.reshape(cube) for name, value in drives.items()}
        if rows:
            noisy = np.broadcast_to(array("residual_uncertainty", residual_uncertainty), (rows,))
            intake.add(Rows(velocity.reshape(cube), fields, precision, labels, runs, blur=noisy))
        return intake.finish("")
    except TableError as fault:
        places = [
            *([f"row {fault.row}"] if fault.row is not None else []),
            *([fault.column] if fault.column else []),
        ]
        raise ValueError(f"{', '.join(places)}: {fault}" if places else str(fault)) from None


def _precision(uncertainty: Numbers, shape: tuple[int, ...]) -> np.ndarray:
    values = array("uncertainty", uncertainty)
    if values.shape not in ((), (shape[0],), shape):
        raise ValueError(
            "uncertainty must be one number, one per row or one per value, but its shape is "
            f"{values.shape}"
        )
    return (
        np.broadcast_to(values, shape[:1])[:, None]
        if values.ndim < 2
        else values.reshape(shape[0], -1)
    )


def array(name: str, value: Numbers, shape: tuple[int, ...] | None = None) -> np.ndarray:
    """A finite array of real numbers."""
    try:
        result = np.asarray(value)
    except ValueError as ragged:
        raise ValueError(
            f"{name} must be a rectangular array of numbers, but its rows have different lengths"
        ) from ragged
    if result.dtype.kind not in "fiub":
        raise ValueError(f"{name} must hold real numbers, but its type is {result.dtype}")
    result = result.astype(np.float64)
    if shape is not None and result.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, but its shape is {result.shape}")
    _check.every(name, "finite", result, np.isfinite)
    return result
