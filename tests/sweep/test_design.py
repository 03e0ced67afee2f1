"""Designs of sweeps: what may stand in one, and that a refusal names the line."""

import pytest

from sweep.small import GRID, RANDOM, changed, design
from whorl import sweep


def test_a_grid_has_every_value_and_the_usual_ones_where_nothing_is_said():
    made = design()
    assert made.values["imbalance"] == (0.0, 4.0, 8.0)
    assert made.values["policy"] == ("step_matched", "adaptive")
    assert (made.values["leak"], made.values["width"], made.values["gate"]) == (
        (0.1,),
        (3,),
        ("curvature",),
    )
    assert (made.chunk, made.shard, made.trials, made.flips) == (64, 50, 5, True)
    assert [shape["policy"] for shape in made.shapes] == ["step_matched", "adaptive"]


def test_the_shipped_example_is_a_design(pytestconfig):
    made = sweep.read(pytestconfig.rootpath / "examples" / "sweep.toml")
    assert sweep.Plan(made).cases == 50 * 2 * 2 * 3 * 2 * 2


@pytest.mark.parametrize(
    ("line", "instead", "refusal"),
    [
        (
            "seed",
            "seed = -1",
            "line 4: seed must be a whole number from 0 to 9223372036854775807, but it is -1",
        ),
        (
            "chunk",
            "chunk = 100",
            "line 7: chunk must be a multiple of 64 from 64 to 65536, but it is 100",
        ),
        ("flips", "flips = 2", "line 6: flips must be true or false, but it is 2"),
        (
            "imbalance",
            "imbalance = []",
            r"line 11: imbalance must be a value or a list of different values, but it is \[\]",
        ),
        (
            "imbalance",
            "imbalance = [1, 1]",
            "line 11: imbalance must be a value or a list of different values",
        ),
        (
            "imbalance",
            "imbalance = [0, -1]",
            "line 11: imbalance must be a number from 0 to 10000, but it is -1",
        ),
        (
            "imbalance",
            "imbalance = { from = 0, to = 1 }",
            "line 11: imbalance must be a value or a list in a grid",
        ),
        (
            "imbalance",
            "beta = 1",
            "line 11: network may hold depth, width, imbalance, floor, but it holds 'beta'",
        ),
        (
            "imbalance",
            "width = 2",
            "line 11: width must be a whole number from 3 to 128, but it is 2",
        ),
        (
            "policy",
            'policy = "greedy"',
            "line 14: policy must be one of native, step_matched, adaptive, but it is 'greedy'",
        ),
        ("scale", "scale = 1.5", "line 15: scale must be a number from 1e-09 to 1, but it is 1.5"),
        (
            "scale",
            "scale = true",
            "line 15: scale must be a number from 1e-09 to 1, but it is True",
        ),
        (
            "epochs",
            "epochs = 0",
            "line 18: epochs must be a whole number from 1 to 1000000, but it is 0",
        ),
        ("trials", "points = 5", "line 5: points must be left out of a grid"),
        (
            "trials",
            "trials = 999999999999",
            "line 5: trials must be a whole number from 1 to 1000000000",
        ),
        (
            "design",
            'design = "latin"',
            "line 3: design must be one of grid, random, but it is 'latin'",
        ),
        ("name", 'name = "../up"', "line 1: name must be lower-case letters"),
        ("title", "tilte = 'x'", "line 2: a sweep may hold .*, but it holds 'tilte'"),
        ("seed", "seed 5", "mine.toml must be a TOML file, but it cannot be read"),
    ],
)
def test_a_refusal_names_the_line(line, instead, refusal):
    lines = [instead if one.split(" = ")[0] == line else one for one in GRID.splitlines()]
    with pytest.raises(ValueError, match=refusal):
        sweep.parse("\n".join(lines).encode(), "mine.toml")


@pytest.mark.parametrize(
    ("key", "value", "refusal"),
    [
        (
            "imbalance",
            "{ from = 8, to = 0 }",
            "line 10: imbalance must go from less to more, but it is",
        ),
        (
            "imbalance",
            "{ from = 0, to = 8, log = true }",
            "line 10: imbalance must go from less to more, and from above 0 in the logarithm",
        ),
        (
            "imbalance",
            "{ from = 0 }",
            r"line 10: imbalance must be written as \{ from = ..., to = ... \}",
        ),
        (
            "imbalance",
            "{ from = -1, to = 8 }",
            "line 10: imbalance must be a number from 0 to 10000, but it is -1",
        ),
        (
            "epochs",
            "{ from = 1, to = 8 }",
            "line 20: epochs must be a value or a list because each value is compiled by itself",
        ),
        ("points", "0", "line 5: points must be a whole number from 1 to 1000000000, but it is 0"),
    ],
)
def test_a_random_design_is_refused_by_line_too(key, value, refusal):
    with pytest.raises(ValueError, match=refusal):
        design(RANDOM, **{key: value})


def test_a_design_of_too_many_cases_is_refused():
    with pytest.raises(
        ValueError, match=r"line 5: a sweep must have at most 10000000000000 cases, but it has \d+"
    ):
        sweep.parse(
            changed(GRID, trials=10**9, imbalance=[n / 100 for n in range(1, 5000)]).encode(),
            "mine.toml",
        )


def test_files_that_are_no_design_are_refused(tmp_path):
    with pytest.raises(ValueError, match="must be a design file, but it is a folder"):
        sweep.read(tmp_path)
    (tmp_path / "big.toml").write_bytes(b"#" * 1_000_001)
    with pytest.raises(ValueError, match="must be a design of at most 1000000 bytes"):
        sweep.read(tmp_path / "big.toml")
    with pytest.raises(ValueError, match="must be UTF-8 text, but byte 0 is not"):
        sweep.parse(b"\xff")
