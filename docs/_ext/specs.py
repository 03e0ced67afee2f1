"""The tables of docs/studies.md that come from the specifications of the kinds.

`python docs/_ext/specs.py` writes them anew, each between `<!-- spec KIND -->` and `<!-- end -->`.
Parameters that several kinds share stand once, between `<!-- spec shared -->` and `<!-- end -->`.
"""

import re
from collections import Counter
from itertools import groupby
from pathlib import Path

from whorl.study import kinds

PAGE = Path(__file__).parents[1] / "studies.md"
PART = re.compile(r"(<!-- spec (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
SHARED = "shared"
SHORT = {  # a cell of a table needs no articles
    "a whole number from": "whole,",
    "a number from": "",
    "a list of different whole numbers from": "different whole numbers,",
    "a list of different numbers from": "different numbers,",
    "a list of at least 2 different numbers from": "at least 2 different numbers,",
    "a multiple of 64 from": "multiple of 64,",
}


def parameters(name: str) -> dict[str, str]:
    """The row of every parameter of a kind."""
    kind = kinds.get(name)
    return {
        name: f"| `{name}` | {_short(one.rule)} | {one.help} |"
        for name, one in kind.parameters.declared().items()
    }


def _short(rule: str) -> str:
    """A range as a cell of a table."""
    long = next((long for long in SHORT if rule.startswith(long)), "")
    return (SHORT.get(long, "") + rule.removeprefix(long)).strip()


def tables(name: str) -> list[str]:
    """The rows of the tables of a kind."""
    lines = []
    for table, columns in kinds.get(name).columns.items():
        if table != "statistics":
            keys = ", ".join(one.name for one in columns if one.role == "key")
            rest = groupby((one for one in columns if one.role != "key"), lambda one: one.role)
            said = "; ".join(f"{role} {', '.join(c.name for c in some)}" for role, some in rest)
            lines.append(f"| `{table}` | {keys} | {said} |")
    return lines


def filled(page: str) -> str:
    """A page with its parts made anew."""
    of = {name: parameters(name) for _, name, _ in PART.findall(page) if name != SHARED}
    times = Counter(row for rows in of.values() for row in rows.values())
    head = ["| parameter | may be | what it is |", "|---|---|---|"]

    def section(name: str) -> str:
        if name == SHARED:
            return "\n".join([*head, *(row for row, often in times.items() if often > 1)]) + "\n"
        common = [f"`{one}`" for one, row in of[name].items() if times[row] > 1]
        own = [row for row in of[name].values() if times[row] == 1]
        first = [f"Shared parameters: {', '.join(common)}.", ""] if common else []
        second = ["", "| table | rows | columns |", "|---|---|---|", *tables(name)]
        return "\n".join([*first, *head, *own, *second]) + "\n"

    return PART.sub(lambda found: found[1] + section(found[2]) + found[3], page)


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text()))
