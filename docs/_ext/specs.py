"""The tables of docs/studies.md that come from the specifications of the kinds.

`python docs/_ext/specs.py` writes them anew, each between `<!-- spec KIND -->` and `<!-- end -->`.
"""

import re
from itertools import groupby
from pathlib import Path

from whorl.study import kinds

PAGE = Path(__file__).parents[1] / "studies.md"
PART = re.compile(r"(<!-- spec (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def section(name: str) -> str:
    """The parameters of a kind and its tables, as Markdown."""
    kind = kinds.get(name)
    lines = ["| parameter | may be | what it is |", "|---|---|---|"]
    lines += [
        f"| `{one.name}` | {one.rule} | {one.help} |" for one in kind.parameters.declared().values()
    ]
    lines += ["", "| table | rows | columns |", "|---|---|---|"]
    for table, columns in kind.columns.items():
        if table != "statistics":
            keys = ", ".join(one.name for one in columns if one.role == "key")
            rest = groupby((one for one in columns if one.role != "key"), lambda one: one.role)
            said = "; ".join(f"{role} {', '.join(c.name for c in some)}" for role, some in rest)
            lines.append(f"| `{table}` | {keys} | {said} |")
    return "\n".join(lines) + "\n"


def filled(page: str) -> str:
    """A page with its parts made anew."""
    return PART.sub(lambda found: found[1] + section(found[2]) + found[3], page)


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text()))
