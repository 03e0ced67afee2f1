"""One specification per kind, which library, auditor and page read."""

import re
from pathlib import Path

import pytest

import specs
from whorl.study import kinds, spec
from whorl_audit import kinds as audited

GOOD = """statistics = [
  "largest",
  "gap.depth{depths}",
]

[parameters]
seed = { type = "whole", from = 0, to = 100, help = "root seed" }
scale = { type = "number", from = 0.5, to = 2.0, help = "a size" }
depths = { type = "wholes", from = 1, to = 9, help = "depths" }
chunk = { type = "whole", from = 64, to = 640, multiple = 64, help = "a piece" }

[tables.swings]
swing = ["key", "int64", "", "number"]
angle = ["computed", "float64", "Eq. 1", "angle", "rad"]
"""


def test_a_specification_says_parameters_columns_and_statistics():
    found = spec.read(GOOD.encode())
    assert found.statistics == ("largest", "gap.depth{depths}")
    assert found.fields["chunk"].rule == "a multiple of 64 from 64 to 640"
    assert [found.fields["chunk"].allows(one) for one in (128, 100, 704, True)] == [
        True,
        False,
        False,
        False,
    ]
    assert found.columns["swings"][1] == spec.Column(
        "angle", "computed", "float64", "Eq. 1", "angle", "rad"
    )
    assert list(found.columns) == ["swings", "statistics"]


@pytest.mark.parametrize(
    ("old", "new", "line", "rule"),
    [
        (
            "{depths}",
            "{scale}",
            3,
            "braces must be a parameter that is a list, in gap.depth{scale}",
        ),
        ("{depths}", "{lost}", 3, "a name in braces must be a parameter that is a list"),
        ('type = "number"', 'type = "numbr"', 8, "type must be one of whole, number, wholes,"),
        ("from = 0.5, ", "", 8, "from of scale must be a number"),
        ("to = 2.0", "to = 0.2", 8, "to of scale must be at least from"),
        ("to = 2.0", "up = 2.0, to = 2.0", 8, "the parameter scale may hold type, help, from, to"),
        (', help = "depths" }', " }", 9, "depths must be a table with a type and a help"),
        ('["key",', '["seen",', 13, "the column swing must be .role, type, equation, meaning."),
        ('"float64"', '"float"', 14, "the column angle must be"),
        (', "angle", "rad"', "", 14, "the column angle must be"),
        (
            "[tables.swings]",
            "[tables.none]\n[tables.swings]",
            12,
            "the table none must have columns",
        ),
        ("seed =", "root =", 6, "parameters must hold a seed"),
    ],
)
def test_a_mistake_is_refused_with_its_file_and_line(old, new, line, rule):
    assert old in GOOD
    text = GOOD.replace(old, new, 1)
    with pytest.raises(ValueError, match=re.escape(f"mine/spec.toml, line {line}: ")) as refused:
        spec.read(text.encode(), "mine/spec.toml")
    assert re.search(rule.replace("{", r"\{").replace("}", r"\}"), str(refused.value))


def test_a_kind_without_a_specification_says_so(tmp_path):
    with pytest.raises(ValueError, match=r"spec.toml must be the specification of a kind, but it "):
        spec.beside(str(tmp_path / "kind.py"))


@pytest.mark.parametrize("name", kinds.names())
def test_library_and_auditor_read_the_same_columns(name):
    types = {"int64": "int64", "float64": "double", "string": "string"}
    ours = {
        table: [(one.name, one.role, types[one.type]) for one in columns]
        for table, columns in kinds.get(name).columns.items()
    }
    theirs = {
        table: [(one.name, one.role, one.type) for one in columns]
        for table, columns in audited.find(name).columns.items()
    }
    assert ours == theirs


def test_the_page_has_what_the_specifications_say():
    page = Path(specs.PAGE).read_text()
    assert specs.filled(page) == page
    assert set(re.findall(r"<!-- spec (\w+) -->", page)) == {"shared", *kinds.names()}
    shared, *parts = (found[0] for found in specs.PART.finditer(page))
    for part in parts:
        rows = specs.parameters(part.split()[2])
        named, _, own = part.partition("| parameter |")
        for one, row in rows.items():
            assert row in own or (f"`{one}`" in named and row in shared)
