"""From a file or from arrays to `Measurements`."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from sys import float_info
from typing import Any

import numpy as np

from whorl import _check
from whorl.ground.tables import Batch, Table, TableError
from whorl.measured.intake import Intake, Measurements, Rows
from whorl.measured.layout import BLUR, DRIVES, Layout, called, layout

SORTED = 10**6  # rows that are sorted by repeat in memory
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
    scale = _scale(time_scale)
    try:
        plan = _planned(table)
        drives = tuple(role for role in DRIVES if role in plan.roles)
        if plan.long:
            table.strict = True  # a measurement takes several lines, and all of them
            portions = table.batches(plan.numbers, plan.labels)
            return _long(table, plan, portions, drives, scale)
        found = _wide(table, plan, drives, scale)
        return replace(found, dropped=table.dropped)
    except TableError as fault:
        if table.dropped:  # what is left is not enough: what is missing is the better thing to say
            return read(path, time_scale=time_scale, rename=rename, strict=True)
        raise table.named(fault) from None


def _planned(table: Table) -> Layout:
    """What the columns mean; a refusal says which there are."""
    try:
        return layout(table.names)
    except TableError as fault:
        names = ", ".join(map(_check.plain, table.names[:40]))
        raise TableError(
            f"{fault}; its columns are {names} (rename them with --rename old=new)",
            column=fault.column,
        ) from None


def _wide(table: Table, plan: Layout, drives: tuple[str, ...], scale: float) -> Measurements:
    """Rows as they come, or sorted by repeat where they come in another order or with names."""
    names = {role: list(columns) for role, columns in plan.roles.items()}
    intake = Intake(plan.samples, plan.outputs, drives, scale)
    repeats = plan.keys.get("repeat")
    try:
        for batch in table.batches(plan.numbers, plan.labels):
            intake.add(_wide_rows(batch, plan), batch.first)
        return intake.finish(str(table.path), names)
    except TableError as fault:
        if repeats is None or fault.column != repeats:
            raise
    table.dropped = 0
    numbers = [name for name in plan.numbers if name != repeats]
    whole = None
    for batch in table.batches(numbers, [*plan.labels, repeats]):
        whole = batch if whole is None else _joined(whole, batch)
    if whole is None or whole.rows > SORTED:
        raise TableError(
            f"repeats must be sorted in a table of more than {SORTED} rows, but they are not"
        )
    place = _numbered(whole.columns[repeats])
    order = np.argsort(place, kind="stable")
    columns = {name: values[order] for name, values in {**whole.columns, repeats: place}.items()}
    intake = Intake(plan.samples, plan.outputs, drives, scale)
    intake.add(_wide_rows(Batch(whole.first, columns), plan), whole.first)
    return intake.finish(str(table.path), names)


def _numbered(labels: np.ndarray) -> np.ndarray:
    """Repeats as numbers: as they are where all of them are numbers, else in the order they came."""
    try:
        return np.array([float(label) for label in labels])
    except ValueError:
        known = {label: float(number) for number, label in enumerate(dict.fromkeys(labels))}
        return np.array([known[label] for label in labels])


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
    intake = Intake(samples, outputs, tuple(drives), _scale(time_scale))
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


def _wide_rows(batch: Batch, plan: Layout) -> Rows:
    cube = (batch.rows, plan.samples, plan.outputs)
    fields = {
        role: np.stack([batch.columns[name] for name in names], axis=-1)
        for role, names in plan.roles.items()
    }
    sample, repeat = (
        batch.columns[plan.keys[key]] if key in plan.keys else None for key in ("sample", "repeat")
    )
    drives = {role: fields[role].reshape(cube) for role in DRIVES if role in fields}
    state = {name: batch.columns[name] for name in plan.state}
    blur = batch.columns[BLUR] if BLUR in plan.keys else None
    seen = fields["velocity"].reshape(cube)
    return Rows(seen, drives, fields.get("uncertainty"), sample, repeat, state, blur)


def _long(
    table: Table, plan: Layout, portions: Iterator[Batch], drives: tuple[str, ...], scale: float
) -> Measurements:
    intake, pattern = None, None
    for batch in _whole_measurements(portions):
        if intake is None or pattern is None:
            pattern = _Pattern(batch, plan)
            intake = Intake(pattern.samples, pattern.outputs, drives, scale)
        with pattern.counted(batch.first):
            intake.add(pattern.rows(batch))
    if intake is None or pattern is None:
        raise TableError("the table must have at least 12 measurements, but it has none", row=0)
    with pattern.counted(0):
        return intake.finish(
            str(table.path), {role: list(names) for role, names in plan.roles.items()}
        )


def _whole_measurements(portions: Iterator[Batch]) -> Iterator[Batch]:
    """The same lines, in batches that end where a measurement ends."""
    rest: Batch | None = None
    for batch in portions:
        whole = batch if rest is None else _joined(rest, batch)
        names = whole.columns["measurement"]
        changes = np.flatnonzero(names[1:] != names[:-1])
        cut = int(changes[-1]) + 1 if len(changes) else 0
        rest = Batch(
            whole.first + cut, {name: values[cut:] for name, values in whole.columns.items()}
        )
        if cut:
            yield Batch(whole.first, {name: values[:cut] for name, values in whole.columns.items()})
    if rest is not None:
        yield rest


def _joined(one: Batch, other: Batch) -> Batch:
    return Batch(
        one.first,
        {
            name: np.concatenate([values, other.columns[name]])
            for name, values in one.columns.items()
        },
    )


class _Pattern:
    """The lines that make up one measurement, as the first one has them.

    All others must be alike.
    """

    def __init__(self, batch: Batch, plan: Layout) -> None:
        names = batch.columns["measurement"]
        self.plan = plan
        self.lines = int(np.argmax(names != names[0])) or len(names)
        self.output = batch.columns["output"][: self.lines]
        sample = (
            batch.columns["sample"][: self.lines]
            if "sample" in plan.keys
            else np.full(self.lines, "")
        )
        self.sample = sample if len(set(sample)) > 1 else None
        self.samples = len(set(sample))
        self.outputs = self.lines // self.samples
        if self.lines % self.samples:
            counts = f"{self.lines} lines for {self.samples} samples"
            raise TableError(
                f"every sample must have the same outputs, but there are {counts}",
                row=batch.first,
                column="sample",
            )
        if self.outputs < 2:
            raise TableError(
                "a measurement must have at least 2 outputs, but it has 1",
                row=batch.first,
                column="output",
            )

    def rows(self, batch: Batch) -> Rows:
        """Lines as rows of whole measurements."""
        count = batch.rows // self.lines
        names = batch.columns["measurement"]
        same = np.repeat(names[:: self.lines], self.lines)[: len(names)]
        self._alike(batch, "measurement", names != same, "the lines of one measurement")
        if batch.rows % self.lines:
            raise TableError(
                _short(self.lines),
                row=batch.first + batch.rows - 1,
                column="measurement",
                counted=True,
            )
        self._alike(
            batch,
            "output",
            batch.columns["output"] != np.tile(self.output, count),
            "the order of the outputs",
        )
        labels = batch.columns.get("sample")
        if self.sample is not None and labels is not None:
            self._alike(
                batch, "sample", labels != np.tile(self.sample, count), "the order of the samples"
            )
        cube = (count, self.samples, self.outputs)
        drives = {
            role: batch.columns[role].reshape(cube) for role in DRIVES if role in self.plan.roles
        }
        velocity = batch.columns[self.plan.roles["velocity"][0]].reshape(cube)
        uncertainty = (
            batch.columns["uncertainty"].reshape(count, -1)
            if "uncertainty" in self.plan.roles
            else None
        )
        sample = None if self.sample is not None or labels is None else labels[:: self.lines]
        repeat = batch.columns["repeat"][:: self.lines] if "repeat" in self.plan.keys else None
        blur = batch.columns[BLUR][:: self.lines] if BLUR in self.plan.keys else None
        return Rows(velocity, drives, uncertainty, sample, repeat, blur=blur)

    @contextmanager
    def counted(self, first: int) -> Iterator[None]:
        """Lines instead of measurements in what the intake finds wrong."""
        try:
            yield
        except TableError as fault:
            if fault.row is not None and not fault.counted:
                fault.row = first + fault.row * self.lines
            raise

    def _alike(self, batch: Batch, column: str, differs: np.ndarray, what: str) -> None:
        if differs.any():
            row = int(np.argmax(differs))
            if column == "measurement":
                raise TableError(
                    _short(self.lines), row=batch.first + row, column=column, counted=True
                )
            here = batch.columns[column][row]
            raise TableError(
                f"{what} must be that of the first measurement, but here is {here}",
                row=batch.first + row,
                column=column,
                counted=True,
            )


def _short(lines: int) -> str:
    return (
        f"every measurement must have {lines} lines, as the first one has, but one ends too early"
        " or too late"
    )


def _scale(time_scale: float) -> float:
    if (
        not isinstance(time_scale, int | float | np.number)
        or isinstance(time_scale, bool)
        or not 0 < time_scale <= float_info.max
    ):
        raise ValueError(
            f"time_scale must be a number greater than 0, but it is {_check.shown(time_scale)}"
        )
    return float(time_scale)


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
    if not np.isfinite(result).all():
        where = tuple(int(place) for place in np.argwhere(~np.isfinite(result))[0])
        raise ValueError(
            f"{name} must be finite, but entry {where[0] if len(where) == 1 else where} is "
            f"{result[where]}"
        )
    return result
