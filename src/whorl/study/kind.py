"""What a kind of study is: one value, with everything that runs, locks and judges it.

A kind is a package that holds this value as `KIND`, and beside it its shipped `design.toml` with
its lock, and where there are some its published numbers, their distribution over root seeds, and
the modules `figure`, `chart` and `words`. docs/howto/extend.md shows how to add one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from whorl.study.frames import Parts, Table, Tables
from whorl.study.parameters import Parameters
from whorl.study.spec import Columns

Arrays = dict[str, np.ndarray]
P = TypeVar("P", bound=Parameters)
S = TypeVar("S", bound="Stage")


class Stage(Protocol):
    """A unit of work that is kept when a run is interrupted: a value that can be hashed."""

    @property
    def name(self) -> str:
        """The name of the file that keeps it, and of the progress that it makes."""
        ...


class Depth(NamedTuple):
    """The stage of everything at one depth."""

    depth: int

    @property
    def name(self) -> str:
        """As in `depth4`."""
        return f"depth{self.depth}"


class Work(NamedTuple):
    """What a run of a kind asks for, by arithmetic on its parameters."""

    rows: dict[str, int]  # of every table but the statistics
    programs: int  # that are compiled
    per_row: float  # seconds on two cores, audit included
    per_program: float  # seconds on two cores, see `compiling`
    draws: int = 0  # numbers that a bootstrap draws
    foreseen: int = 0  # updates that are made in foresight, or by learners
    memory: int = 0  # bytes beyond those of the program, the tables and the draws


def compiling(depths: Sequence[int], *growth: float) -> float:
    """The mean seconds of one program, from the coefficients of a polynomial in the depth.

    XLA compiles every layer for itself, so a program of 64 layers takes more than a minute. The
    coefficients are fits to processor seconds at depths from 2 to 32. The constant also holds what
    else a program costs, such as its share of the audit.

    Examples:
        >>> from whorl.study.kind import compiling
        >>> compiling([1, 3], 4.0, 0.5)
        5.0
    """
    each = [sum(rate * depth**power for power, rate in enumerate(growth)) for depth in depths]
    return sum(each) / len(each)


@dataclass(frozen=True)
class Kind(Generic[P, S]):
    """A kind of study.

    Attributes:
        name: What designs call it, and the name of its shipped design.
        parameters: The class of its parameters, made by `Spec.parameters`.
        columns: The columns of every table, from its `spec.toml`.
        stages: Units of work that are kept when a run is interrupted.
        compute: The arrays of one stage.
        tables: All tables but the statistics, from the arrays of every stage.
        statistics: Every number that a gate, the comparison or the report speaks of.
        work: What a run asks for.
        known: The names of all statistics, as `spec.toml` has them; without any, a gate is judged
            by the run alone.
        alone: Whether it must run alone: programs that call LAPACK in batches may wait for each
            other for ever when two of them run at once.
        many: The arrays of some stages under several parameters that differ in their seeds, where
            that is faster than one after the other.

    Examples:
        >>> from whorl.study import kinds
        >>> kind = kinds.get("horizon")
        >>> kind.name, kind.alone, list(kind.columns)[:2]
        ('horizon', False, ['tasks', 'weights'])
    """

    name: str
    parameters: type[P]
    columns: Columns
    stages: Callable[[P], Sequence[S]]
    compute: Callable[[P, S], Arrays]
    tables: Callable[[P, Parts], Tables]
    statistics: Callable[[P, Tables], Mapping[str, Any]]
    work: Callable[[P], Work]
    known: tuple[str, ...] = ()
    alone: bool = False
    many: Callable[[Sequence[P], Sequence[S]], Sequence[Parts]] | None = None

    def schema(self, table: str) -> pa.Schema:
        """The columns of a table, each with its role, unit, equation and meaning."""
        fields = []
        for column in self.columns[table]:
            about = {
                "role": column.role,
                "unit": column.unit,
                "equation": column.equation,
                "description": column.meaning,
            }
            kind = pa.type_for_alias(column.type)
            fields.append(pa.field(column.name, kind, nullable=False, metadata=about))
        return pa.schema(fields, metadata={"study": self.name, "table": table})

    def arrow(self, table: str, rows: Table) -> pa.Table:
        """A table with its documented columns, and what they mean in the schema."""
        wanted = self.schema(table)
        if wanted.names != list(rows):
            raise ValueError(
                f"table {table} must have the columns {wanted.names}, but it has {list(rows)}"
            )
        arrays = [
            pa.array(rows[one.name].tolist() if one.type == "string" else rows[one.name], one.type)
            for one in wanted
        ]
        return pa.Table.from_arrays(arrays, schema=wanted)
