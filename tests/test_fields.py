"""A field takes the values of its rule, from Python and from text, and refuses the rest."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from whorl import fields, registry
from whorl.fields import Field

PATH = Path(fields.__file__)
STEP = Field("step", 0.5, 0, 1)
SHARE = Field("share", above=0, below=1)
COUNT = Field("count", low=1, type="whole")
CHUNK = Field("chunk", 256, 64, 640, type="whole", multiple=64)
ORDER = Field("order", "permuted", type="choice", among=("permuted", ("fixed", "as it is")))
GATE = Field("gate", "always", type="choice", among=registry.gates)
FLIPS = Field("flips", False, type="flag")
TITLE = Field("title", low=1, high=5, type="text")
DEPTHS = Field("depths", low=1, high=64, type="wholes")
STEPS = Field("steps", low=0, high=1, type="numbers", least=2)
PARTS = Field("parts", type="proportions")
FIELDS = [STEP, SHARE, COUNT, CHUNK, ORDER, GATE, FLIPS, TITLE, DEPTHS, STEPS, PARTS]


@pytest.mark.parametrize(
    ("field", "rule", "good", "bad"),
    [
        (STEP, "a number from 0 to 1", [0, 1, 0.5, np.float32(0.5)], [-1e-300, 1.1, True, "0.5"]),
        (SHARE, "a number greater than 0 and less than 1", [0.5], [0, 1, np.nan, None]),
        (COUNT, "a whole number of at least 1", [1, np.int64(3)], [0, 1.0, True, "1", [1]]),
        (CHUNK, "a multiple of 64 from 64 to 640", [64, 640], [0, 100, 704, 64.0]),
        (ORDER, "one of permuted, fixed", ["fixed"], ["as it is", 1, None, ["fixed"]]),
        (GATE, "one of curvature, always, never", ["never"], ["often", 1, None, []]),
        (FLIPS, "true or false", [True], [1, "true", None]),
        (TITLE, "a text of 1 to 5 characters", ["a", "abcde"], ["", "abcdef", 1]),
        (DEPTHS, "a list of different whole numbers from 1 to 64", [[1], [2, 1]], [[], [1, 1], 1]),
        (STEPS, "a list of at least 2 different numbers from 0 to 1", [[0, 1]], [[0], [0, 2]]),
        (
            PARTS,
            "three positive numbers, none below 1e-4 of their sum",
            [[1, 1, 8], (0.1, 0.2, 0.3)],
            [[1, 1], [0, 1, 1], [1e-9, 1, 1], [[1], 1, 1], "abc", 1],
        ),
    ],
    ids=lambda one: getattr(one, "name", None),
)
def test_a_field_allows_what_its_rule_says(field, rule, good, bad):
    assert field.rule == rule
    assert [one for one in good if not field.allows(one)] == []
    for one in [*bad, fields.MISSING]:
        assert not field.allows(one)
        with pytest.raises(ValueError) as refusal:
            field.check(one, "it")
        assert str(refusal.value).startswith(f"it must be {rule}, but it is ")


@pytest.mark.parametrize("field", FIELDS, ids=lambda one: one.name)
def test_what_a_field_writes_it_reads(field):
    values = {"share": 0.1, "count": 3, "title": "abc", "depths": [1, 3], "steps": [0.25, 1]}
    value = values.get(field.name, (1, 1, 8) if field is PARTS else field.default)
    assert field.read(field.write(value)) == field.check(value)


@pytest.mark.parametrize(
    ("field", "text"),
    [
        (STEP, "nan"),
        (STEP, "1e999"),
        (STEP, "0x1"),
        (STEP, "1" * 5000),
        (COUNT, "two"),
        (COUNT, "1.0"),
        (COUNT, "9" * 5000),
        (DEPTHS, "1,two"),
        (FLIPS, "yes"),
        (PARTS, "1,1"),
    ],
)
def test_text_that_is_no_value_is_refused_in_one_short_sentence(field, text):
    with pytest.raises(ValueError, match=f"^{field.name} must be ") as refusal:
        field.read(text)
    assert len(str(refusal.value)) < 200


def test_a_default_that_breaks_the_rule_is_refused():
    with pytest.raises(ValueError, match=r"^the default of step must be a number from 0 to 1, but"):
        Field("step", 2.0, 0, 1)


def test_a_number_that_no_index_holds_is_refused():
    with pytest.raises(ValueError, match=r"^count must be a whole number of at most 63 bits, but"):
        COUNT.check(2**63)


def test_fields_are_declared_without_jax_and_numpy():
    script = (
        "import runpy, sys; runpy.run_path(sys.argv[1]); "
        "print(sorted({'jax', 'numpy', 'whorl'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(PATH)], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["[]"]
