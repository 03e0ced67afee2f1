"""The meaning of the columns of a table.

Wide form, one line per measurement: `residual_1 ... residual_m`, `velocity_1 ... velocity_m`. Where
several samples are driven and read at the same time, `residual_1_1` is sample 1, output 1, and so
on. Long form, one line per output: `measurement`, `output`, `residual`, `velocity`. `potential` may
stand beside or instead of `residual`, `change` instead of `velocity`. Optional in both: `sample`,
`repeat`, `uncertainty` (in wide form for the whole line, or one for each output) and
`residual_uncertainty` (one per line). In wide form,
`input_i` and `column_l_i_j` may record the state: the network's inputs, and entry j of column i of
layer l. Other columns are left alone.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from whorl.ground.tables import TableError

DRIVES = ("residual", "potential")
ANSWERS = ("velocity", "change")
KEYS = ("measurement", "output", "sample", "repeat", "residual_uncertainty")
BLUR = "residual_uncertainty"
NUMBERED = re.compile(r"(residual|potential|velocity|change|uncertainty)_(\d+)(?:_(\d+))?")
ROLE = re.compile(
    r"(residual|potential|velocity|change|uncertainty)(_\d+){0,2}|time|measurement|output|sample|repeat"
    r"|run|phase|residual_uncertainty|state_\d+|input_\d+|column_\d+_\d+_\d+"
)
PLURAL = {"residuals": "residual", "potentials": "potential", "changes": "change"}
PLURAL |= {"velocities": "velocity"}
STATE = re.compile(r"(input)_(\d+)|(column)_(\d+)_(\d+)_(\d+)")


@dataclass(frozen=True)
class Layout:
    """The columns of each role, in order."""

    long: bool
    samples: int  # driven and read at the same time
    outputs: int  # 0 where only the lines will tell
    roles: Mapping[str, Sequence[str]]  # residual, potential, velocity, uncertainty: column names
    keys: Mapping[str, str]  # measurement, output, sample, repeat
    state: Sequence[str]

    @property
    def numbers(self) -> list[str]:
        """All columns that must hold numbers."""
        columns = [name for names in self.roles.values() for name in names]
        return (
            columns
            + [self.keys[key] for key in ("output", "repeat", BLUR) if key in self.keys]
            + list(self.state)
        )

    @property
    def labels(self) -> list[str]:
        """All columns that may hold text."""
        return [self.keys[key] for key in ("measurement", "sample") if key in self.keys]


def called(name: str) -> str:
    """The name of a column as it is written here: in small letters, and in the singular."""
    word, *numbers = name.lower().split("_")
    small = "_".join([PLURAL.get(word, word), *numbers])
    return small if ROLE.fullmatch(small) else name


def layout(names: Sequence[str]) -> Layout:
    """Understand the header of a table."""
    keys = {key: key for key in KEYS if key in names}
    if "measurement" in keys and "output" in keys:
        return _long(names, keys)
    grids = {role: _grid(names, role) for role in (*DRIVES, *ANSWERS, "uncertainty")}
    drives, answer = _chosen({role for role, grid in grids.items() if grid}, "_1")
    shape = _shape(grids[drives[0]], drives[0])
    for role in (*drives, answer):
        if missing := sorted(set(grids[drives[0]]) - set(grids[role])) or sorted(
            set(grids[role]) - set(grids[drives[0]])
        ):
            there = role if missing[0] in grids[drives[0]] else drives[0]
            raise TableError(
                f"the table must have a column {_name(there, missing[0])}, but it has none",
                row=None,
            )
    roles = {"velocity": _ordered(grids[answer])} | {role: _ordered(grids[role]) for role in drives}
    if grids["uncertainty"]:
        if set(grids["uncertainty"]) != set(grids[answer]):
            raise TableError(
                "the table must have one uncertainty, or one for each output, but it has some of "
                "them"
            )
        roles["uncertainty"] = _ordered(grids["uncertainty"])
    elif "uncertainty" in names:
        roles["uncertainty"] = ["uncertainty"]
    if shape[0] > 1 and "sample" in keys:
        raise TableError(
            "sample must be left out where each line carries all samples, but it is there",
            column="sample",
        )
    state = [name for name in names if STATE.fullmatch(name)]
    return Layout(
        False,
        *shape,
        roles,
        {key: keys[key] for key in ("sample", "repeat", BLUR) if key in keys},
        state,
    )


def _long(names: Sequence[str], keys: Mapping[str, str]) -> Layout:
    drives, answer = _chosen(set(names), "")
    roles = {"velocity": [answer]} | {role: [role] for role in drives}
    if "uncertainty" in names:
        roles["uncertainty"] = ["uncertainty"]
    return Layout(True, 1, 0, roles, keys, [])


def _chosen(present: set[str], suffix: str) -> tuple[list[str], str]:
    drives, answers = (
        [role for role in DRIVES if role in present],
        [role for role in ANSWERS if role in present],
    )
    if not drives:
        raise TableError(
            f"the table must have a column residual{suffix} or potential{suffix}, but it has none"
        )
    if not answers:
        raise TableError(
            f"the table must have a column velocity{suffix} or change{suffix}, but it has none"
        )
    if len(answers) == 2:
        raise TableError("the table must have velocities or changes, but it has both")
    return drives, answers[0]


def _grid(names: Sequence[str], role: str) -> dict[tuple[int, int], str]:
    found = {}
    for name in names:
        match = NUMBERED.fullmatch(name)
        if match and match[1] == role:
            place = (int(match[2]), int(match[3])) if match[3] else (0, int(match[2]))
            found[place] = name
    return found


def _shape(grid: Mapping[tuple[int, int], str], role: str) -> tuple[int, int]:
    samples, outputs = sorted({place[0] for place in grid}), sorted({place[1] for place in grid})
    if samples not in ([0], list(range(1, len(samples) + 1))):
        raise TableError(
            f"samples must be numbered from 1 without gaps, but the columns of {role} have "
            f"{samples}"
        )
    for sample in samples:
        for number in range(1, max(outputs) + 1):
            if (sample, number) not in grid:
                raise TableError(
                    f"the table must have a column {_name(role, (sample, number))}, but there is "
                    "none"
                )
    if max(outputs) < 2:
        raise TableError(
            "the table must have at least 2 outputs, but it has 1", column=next(iter(grid.values()))
        )
    return len(samples), max(outputs)


def _name(role: str, place: tuple[int, int]) -> str:
    return f"{role}_{place[0]}_{place[1]}" if place[0] else f"{role}_{place[1]}"


def _ordered(grid: Mapping[tuple[int, int], str]) -> list[str]:
    return [grid[place] for place in sorted(grid)]
