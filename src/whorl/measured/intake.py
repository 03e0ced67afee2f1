r"""Read measurements: rows of numbers become one checked record per loop.

Rows that carry several samples at once (`(rows, samples, outputs)`) tell about one joint loop over
all of them. Rows that carry one sample each tell about one loop per sample, and the loops are
judged together.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from jaxtyping import Float

from whorl import simplex
from whorl._show import Shown, plural
from whorl.ground.source import LABEL, TableError
from whorl.measured.moments import BINS, Collector, Record, all_parts

LEAST = 12  # measurements: six pairs, the fewest that can reach a level of 5 %
SMALLEST = 1e-120
DIRECTIONS = 100  # of one loop, samples x (outputs - 1): the test takes their fourth power
LOOPS = 10_000  # sample labels
HELD = 50_000_000  # numbers that all records together may take: 0.4 GB
Field = Float[np.ndarray, "rows samples outputs"]


@dataclass(frozen=True)
class Rows:
    """Some measurements. Every field but the velocities and one drive may be missing."""

    velocity: Field
    drives: Mapping[str, Field]
    uncertainty: Float[np.ndarray, "rows k"] | None = None
    sample: np.ndarray | None = None  # labels
    repeat: Float[np.ndarray, "rows"] | None = None
    state: Mapping[str, np.ndarray] = field(default_factory=dict)
    blur: Float[np.ndarray, "rows"] | None = None  # standard deviation of the noise in the drive

    def part(self, which: slice) -> "Rows":
        """Some of the rows."""

        def cut(value: Any) -> Any:
            if isinstance(value, Mapping):
                return {name: one[which] for name, one in value.items()}
            return None if value is None else value[which]

        return Rows(**{one.name: cut(getattr(self, one.name)) for one in fields(self)})


@dataclass(frozen=True, repr=False)
class Measurements(Shown):
    """Everything that is kept of a table: one record per loop.

    Examples:
        >>> from whorl import measured
        >>> residuals = np.tile(0.1 * (np.eye(3) - 1 / 3), (12, 1))
        >>> velocities = residuals + 0.001 * np.random.default_rng(0).standard_normal((36, 3))
        >>> found = measured.collect(residuals, velocities)
        >>> found.rows, found.outputs
        (36, 3)
    """

    source: str
    samples: int
    outputs: int
    drives: tuple[str, ...]
    weighted: bool
    records: Mapping[str, Record]
    states: Mapping[str, Mapping[str, float]]
    time_scale: float
    dropped: int = 0  # rows that lacked a value and were left out
    undriven: tuple[str, ...] = ()  # columns of what was applied that never changed

    def __str__(self) -> str:
        loops = f"{len(self.records)} loops" if len(self.records) > 1 else "one loop"
        return f"{self.source or 'a table'}: {self.rows} rows, {plural(self.outputs, 'output')}, {loops}"

    @property
    def rows(self) -> int:
        """Number of measurements."""
        return sum(record.rows for record in self.records.values())


class Intake:
    """Takes rows as they come, in any number of portions."""

    def __init__(
        self, samples: int, outputs: int, drives: tuple[str, ...], time_scale: float
    ) -> None:
        self.samples: int = samples
        self.outputs: int = outputs
        self.drives: tuple[str, ...] = drives
        self.time_scale: float = time_scale
        size = samples * (outputs - 1)
        if size > DIRECTIONS:
            raise TableError(
                f"a measurement must have at most {DIRECTIONS} directions, samples x (outputs - "
                f"1), but it has {size}: judge fewer outputs"
            )
        widths = {
            **dict.fromkeys(drives, size),
            "velocity": size,
            "leak": samples,
            "offset": samples,
        }
        ends = np.cumsum(list(widths.values())).tolist()
        self._parts = {
            name: slice(end - width, end)
            for (name, width), end in zip(widths.items(), ends, strict=True)
        }
        self._basis = simplex.tangent_basis(outputs)
        self._collectors: dict[str, Collector] = {}
        self._states: dict[str, dict[str, float]] = {}
        self._range: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        self._weighted = False

    def add(self, rows: Rows, first: int = 0) -> None:
        """Take rows, of which the first is number `first`.

        A bad value is a `TableError` that names its row.
        """
        for name, values in (("velocity", rows.velocity), *rows.drives.items()):
            low, high = values.min(axis=0), values.max(axis=0)
            known = self._range.get(name, (low, high))
            self._range[name] = (np.minimum(known[0], low), np.maximum(known[1], high))
        if rows.blur is not None and (rows.blur < 0).any():
            bad = int(np.argmax(rows.blur < 0))
            raise TableError(
                f"uncertainties must be at least 0, but one is {rows.blur[bad]:g}",
                row=first + bad,
                column="residual_uncertainty",
            )
        weights = self._weights(rows, first)
        flat = self._flat(rows)
        groups = _by_sample(rows.sample, len(flat), first)
        self._bound(dict(groups), first)
        for label, where in groups:
            collector = self._collectors.setdefault(
                label, Collector(self._parts, rows.repeat is not None)
            )
            self._same_state(label, rows.state, where, first)
            bad = collector.add(
                flat[where],
                weights[where],
                None if rows.repeat is None else rows.repeat[where],
                None if rows.blur is None else rows.blur[where] ** 2,
            )
            if bad is not None and rows.repeat is not None:
                row = int(np.arange(len(flat))[where][bad])
                raise TableError(
                    f"repeats must be sorted within each sample, but {rows.repeat[row]:g} comes"
                    " after a larger one: sort the table by sample, then by repeat",
                    row=first + row,
                    column="repeat",
                )

    def _bound(self, groups: Mapping[str, np.ndarray | slice], first: int) -> None:
        """Memory follows the number of loops and the square of their width, not the size of the
        file.
        """
        counts = {label: collector.count for label, collector in self._collectors.items()}
        for label, where in groups.items():
            counts[label] = counts.get(label, 0) + (0 if isinstance(where, slice) else len(where))
        if len(counts) > LOOPS:
            raise TableError(
                f"a table must have at most {LOOPS} samples, but it has more: judge fewer at a "
                "time",
                row=first,
            )
        width = max(part.stop for part in all_parts(self._parts).values())
        held = width**2 * sum(min(count, 2 * BINS) for count in counts.values())
        if held > HELD and len(counts) > 1:  # one loop alone is bounded by its directions
            raise TableError(
                f"all samples together must need at most {HELD} numbers, but {len(counts)} samples "
                f"with rows of {width} numbers "
                f"need {held}: judge fewer samples at a time",
                row=first,
            )

    def finish(self, source: str, names: Mapping[str, list[str]] | None = None) -> Measurements:
        """Check what only the whole can show, and hand out the records."""
        undriven = self._check_constant(names)
        size = self.samples * (self.outputs - 1)
        records = {label: collector.finish() for label, collector in self._collectors.items()}
        for label, record in records.items():
            least = max(LEAST, size + 2)
            if record.rows < least:
                whose = f"sample {label}" if label else "the table"
                raise TableError(
                    f"{whose} must have at least {least} measurements, but it has {record.rows}"
                    f"{self._pointed(record)}"
                )
            self._check_size(record)
        if not records:
            raise TableError(f"the table must have at least {LEAST} measurements, but it has none")
        weighted, states = self._weighted, self._states
        return Measurements(
            source,
            self.samples,
            self.outputs,
            self.drives,
            weighted,
            records,
            states,
            self.time_scale,
            undriven=undriven,
        )

    def _pointed(self, record: Record) -> str:
        """What too few rows say by themselves, where they say anything."""
        from whorl.measured.estimate import fit

        try:
            with np.errstate(all="ignore"):
                share = fit(record.moments, self.drives[0]).skewness
        except (ValueError, np.linalg.LinAlgError):
            return ""
        known = f": the skew part would be {share:.2g} of the loop, with an unknown error"
        return known if np.isfinite(share) else ""

    def _check_size(self, record: Record) -> None:
        """Squares of squares must be numbers that a double can hold.

        No measurement is that far from one in fitting units.
        """
        for name in (*self.drives, "velocity"):
            with np.errstate(over="ignore"):
                total = float(np.einsum("ukk->", record.moments.between(name, name)))
            if total < 0:
                raise TableError(
                    "residual_uncertainty must be smaller than the scatter of the residuals, but "
                    "it exceeds that: there is no drive left"
                )
            if not SMALLEST < total < 1 / SMALLEST:
                raise TableError(
                    f"the squares of all {name} must sum to between {SMALLEST:g} and "
                    f"{1 / SMALLEST:g}, but they sum to {total:g}: "
                    "use other units"
                )

    def _flat(self, rows: Rows) -> np.ndarray:
        drives = [rows.drives[name] for name in self.drives]
        with np.errstate(
            over="ignore", invalid="ignore"
        ):  # what is too large is refused when all of it is there
            velocity = rows.velocity / self.time_scale
            parts = [
                (values @ self._basis).reshape(len(values), -1) for values in (*drives, velocity)
            ]
            return np.concatenate([*parts, velocity.sum(axis=-1), drives[0].sum(axis=-1)], axis=1)

    def _weights(self, rows: Rows, first: int) -> np.ndarray:
        if rows.uncertainty is None:
            return np.ones(len(rows.velocity))
        self._weighted = True
        low, high = rows.uncertainty.min(axis=1), rows.uncertainty.max(axis=1)
        if (low <= 0).any():
            row = int(np.argmax(low <= 0))
            raise TableError(
                f"uncertainties must be greater than 0, but one is {low[row]:g}",
                row=first + row,
                column="uncertainty",
            )
        far = (low < np.sqrt(SMALLEST)) | (high > 1 / np.sqrt(SMALLEST))
        if far.any():
            row = int(np.argmax(far))
            limits = f"{np.sqrt(SMALLEST):g} to {1 / np.sqrt(SMALLEST):g}"
            raise TableError(
                f"uncertainties must lie from {limits}, but one is {high[row]:g}",
                row=first + row,
                column="uncertainty",
            )
        # One weight per row. Outputs measured with different but constant precision need none: each
        # is fitted by itself.
        return self.time_scale**2 / np.mean(rows.uncertainty**2, axis=1)

    def _same_state(
        self, label: str, state: Mapping[str, np.ndarray], where: np.ndarray | slice, first: int
    ) -> None:
        for name, values in state.items():
            own = values[where]
            known = self._states.setdefault(label, {}).setdefault(name, float(own[0]))
            apart = np.abs(own - known) > 1e-6 * max(abs(known), 1e-6)
            if apart.any():
                row = int(np.arange(len(values))[where][np.argmax(apart)])
                raise TableError(
                    f"the state must be the same in all rows, but {values[row]:g} follows "
                    f"{known:g}",
                    row=first + row,
                    column=name,
                )

    def _check_constant(self, names: Mapping[str, list[str]] | None) -> tuple[str, ...]:
        """Refuse what never changes; outputs that were not driven beside others are answered."""
        undriven: list[str] = []
        if sum(collector.count for collector in self._collectors.values()) < LEAST:
            return ()  # too few rows, which is the better thing to say
        for role, (low, high) in self._range.items():
            constant = (low == high).ravel()
            if constant.any():
                place = int(np.argmax(constant))
                column = names[role][place % len(names[role])] if names else f"{role} {place + 1}"
                if role in self.drives and not constant.all():
                    undriven += [
                        names[role][at % len(names[role])] if names else f"{role} {at + 1}"
                        for at in map(int, np.flatnonzero(constant))
                    ]
                    continue
                raise TableError(
                    f"the values must vary from row to row, but all are {low.ravel()[place]:g}",
                    column=column,
                )
        return tuple(dict.fromkeys(undriven))


def _by_sample(
    labels: np.ndarray | None, rows: int, first: int
) -> list[tuple[str, np.ndarray | slice]]:
    if labels is None:
        return [("", slice(0, rows))]
    lengths = [
        len(str(label)) for label in labels
    ]  # NumPy gives every label the room of the longest
    if lengths and max(lengths) > LABEL:
        raise TableError(
            f"a sample must have a name of at most {LABEL} characters, but one has {max(lengths)}",
            row=first + lengths.index(max(lengths)),
            column="sample",
        )
    names, numbers = np.unique(labels.astype(str), return_inverse=True)
    order = np.argsort(numbers, kind="stable")
    return [
        (str(name), part)
        for name, part in zip(
            names, np.split(order, np.cumsum(np.bincount(numbers))[:-1]), strict=True
        )
    ]
