"""What a column of a table is: role, type, equation and meaning.

Written into the Parquet schema, and read by people.

A line is `name | role | type | equation | meaning`. All quantities are pure numbers: flows are
shares of a unit mass. Every kind has its tables in its folder; lines that they share stand here.
"""

from dataclasses import dataclass

UNIT = "1"
ROLES = ("key", "drawn", "computed", "derived")


@dataclass(frozen=True)
class Column:
    """One column of a table."""

    name: str
    role: str
    type: str
    equation: str
    meaning: str


Columns = dict[str, tuple[Column, ...]]  # of every table of a kind, in their order


def described(text: str) -> Columns:
    r"""The columns of tables, and of the statistics that every study has.

    A table begins with a line that holds its name alone.

    Examples:
        >>> from whorl.study.columns import described
        >>> found = described("tasks\nfamily | key | int64 | | number of the task family")
        >>> list(found), found["tasks"][0].role
        (['tasks', 'statistics'], 'key')
    """
    tables: dict[str, list[Column]] = {}
    for line in filter(None, f"{text}\n{STATISTICS}".splitlines()):
        if "|" not in line:
            tables[line] = []
        else:
            tables[next(reversed(tables))].append(_column(line))
    return {name: tuple(columns) for name, columns in tables.items()}


def _column(line: str) -> Column:
    cells = [cell.strip() for cell in line.split("|")]
    if len(cells) != 5 or cells[1] not in ROLES:
        raise ValueError(
            "a column must be written as `name | role | type | equation | meaning` with a role of "
            f"{', '.join(ROLES)}, but it is {line!r}"
        )
    return Column(*cells)


STATISTICS = """
statistics
name | key | string | | name of the statistic
value | derived | float64 | | its value
"""
TASKS = """\
sample | key | int64 | Supplement II | number of the sample: three vertices, then three mixtures
x_0 | drawn | float64 | Supplement II | share of the input at source 0
x_1 | drawn | float64 | Supplement II | share of the input at source 1
x_2 | drawn | float64 | Supplement II | share of the input at source 2
y_0 | drawn | float64 | Supplement II | share of the target at output 0
y_1 | drawn | float64 | Supplement II | share of the target at output 1
y_2 | drawn | float64 | Supplement II | share of the target at output 2
"""
FAMILY = "family | key | int64 | Supplement II | number of the task family\n"
TRIAL = "trial | key | int64 | Supplement II | number of the trial\n"
DEPTH = "depth | key | int64 | Eq. 11 | number of trainable layers\n"
BETA = "beta | key | float64 | Sec. VII B | imbalance: factor of the column logits\n"
SCALE = "scale | key | float64 | Sec. VII C | numerator of the step envelope\n"
PLACE = """\
layer | key | int64 | Eq. 11 | number of the layer, counted from the input
row | key | int64 | Eq. 11 | row: where the flow goes to
column | key | int64 | Eq. 11 | column: where the flow comes from
"""
ENTRY = """\
row | key | int64 | Eq. 13 | row of the matrix: three times the sample plus the output
column | key | int64 | Eq. 13 | column of the matrix, counted likewise
"""
WEIGHT = "weight | drawn | float64 | Eq. 1 | initial routing fraction\n"
VECTORS = """\
velocity_0 | computed | float64 | Eq. 21 | velocity of output 0 of the selected sample as the \
network moves
velocity_1 | computed | float64 | Eq. 21 | velocity of output 1
velocity_2 | computed | float64 | Eq. 21 | velocity of output 2
commanded_0 | computed | float64 | Eq. 21 | velocity that the law commands of output 0, (alpha P \
+ omega C) e
commanded_1 | computed | float64 | Eq. 21 | commanded velocity of output 1
commanded_2 | computed | float64 | Eq. 21 | commanded velocity of output 2
"""
TERMS = """\
even | derived | float64 | Eq. C3 | what the two senses of the turn do on average
handedness | derived | float64 | Eq. C4 | what the sense that was taken adds
step | derived | float64 | Eq. C5 | the cost of a step other than the native one
drift | derived | float64 | Eq. C6 | native progress from the two states, difference
"""
