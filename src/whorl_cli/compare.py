"""`whorl compare`: the statistics of two runs next to each other."""

import argparse
import json
from pathlib import Path
from typing import Any

from whorl_cli import _output

STORY = """Print every statistic of two run folders, or of two studies in one, next to each other: the value in
each, and their difference. Name a study as DIR/STUDY; a folder with one study needs no name.

  whorl compare runs/mine runs/other
  whorl compare runs/paper/threshold runs/mine

Gates that hold in one and not in the other are marked with a star."""


def add(commands: Any) -> None:
    """Put the command on the parser."""
    parser = _output.command(commands, "compare", call, "two runs or studies side by side", STORY)
    parser.add_argument("first", type=Path, metavar="RUN", help="a run folder, or a study in one")
    parser.add_argument("second", type=Path, metavar="OTHER", help="what to compare it with")


def call(given: argparse.Namespace) -> int:
    """Read both, and print them."""
    sides = [study for place in (given.first, given.second) for study in [_studies(place)]]
    shared = [name for name in sides[0] if name in sides[1]]
    if len(sides[0]) == len(sides[1]) == 1:
        pairs = [tuple(next(iter(side)) for side in sides)]
    else:
        pairs = [(name, name) for name in shared]
    if not pairs:
        held = [", ".join(side) for side in sides]
        raise ValueError(
            f"both runs must hold a study of one name, but {given.first} holds {held[0]} and "
            f"{given.second} holds {held[1]}: name them as DIR/STUDY"
        )
    found = [
        _compared(*(_read(side[name]) for side, name in zip(sides, pair, strict=True)))
        for pair in pairs
    ]
    if given.json:
        _output.say(
            {
                "studies": [
                    {"names": list(pair), "rows": rows}
                    for pair, rows in zip(pairs, found, strict=True)
                ]
            }
        )
        return 0
    for pair, rows in zip(pairs, found, strict=True):
        _show(pair, rows)
    return 0


def _studies(place: Path) -> dict[str, Path]:
    """The studies of a folder by name; the folder itself where it is one."""
    if (place / "verdict.json").is_file():
        return {place.name: place}
    found = {path.parent.name: path.parent for path in sorted(place.glob("*/verdict.json"))}
    if not found:
        raise ValueError(f"{place} must be a run folder or a study in one, but it holds no verdict")
    return found


def _read(folder: Path) -> tuple[dict[str, float], dict[str, bool]]:
    """Statistics by name, and which of them a gate was met on."""
    import pyarrow.parquet as pq

    table = pq.read_table(folder / "tables" / "statistics.parquet")
    numbers = dict(zip(table["name"].to_pylist(), table["value"].to_pylist(), strict=True))
    gates = json.loads((folder / "verdict.json").read_text())["gates"]
    return numbers, {gate["statistic"]: gate["passed"] for gate in gates}


def _compared(first: Any, second: Any) -> list[dict[str, Any]]:
    (here, met), (there, met_too) = first, second
    rows = []
    for name in dict.fromkeys([*here, *there]):
        one, other = here.get(name), there.get(name)
        rows.append(
            {
                "statistic": name,
                "first": one,
                "second": other,
                "difference": None if one is None or other is None else other - one,
                "gate_differs": (
                    met.get(name) != met_too.get(name) and name in met and name in met_too
                ),
            }
        )
    return rows


def _show(names: tuple[str, ...], rows: list[dict[str, Any]]) -> None:
    first, second = (name[:14] for name in names)
    _output.line(f"\n{'statistic':<31}{first:>15}{second:>15}{'difference':>15}", "-" * 76)
    for row in rows:
        cells = (
            "none" if row[key] is None else f"{row[key]:{sign}.6g}"
            for key, sign in (("first", ""), ("second", ""), ("difference", "+"))
        )
        star = "*" * row["gate_differs"]
        _output.line(
            f"{row['statistic'][:30] + star:<31}" + "".join(f"{cell:>15}" for cell in cells)
        )
