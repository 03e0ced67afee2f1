"""The page on a real circuit quotes what its script computes, where the measurements are there."""

import os
from pathlib import Path

import pytest

import real_circuit
import session
from whorl.measured import series

PAGE = (session.DOCS / "real_circuit.md").read_text()


def folder():
    places = [Path(os.environ["WHORL_DATA"])] if "WHORL_DATA" in os.environ else []
    places += [parent / "shared" / "data" for parent in Path(__file__).resolve().parents]
    for place in places:
        if (place / "circuits").is_dir():
            return place / "circuits"
    pytest.skip("the measurements of the circuit are not there: set WHORL_DATA to their folder")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("experiment", [1, 2])
@pytest.mark.parametrize("constant", ["0.02", "0.08", "0.2"])
def test_every_verdict_on_the_page_is_that_of_the_script(experiment, constant):
    state = real_circuit.cycle(folder() / f"bowtie-exp{experiment}-{constant}s.csv")
    rows = PAGE.split("## The cycle")[0].splitlines()
    (line,) = [row for row in rows if row.startswith(f"| {experiment}, {constant} s |")]
    for answer, quoted in zip(
        real_circuit.found(state).values(), line.split("|")[2:4], strict=True
    ):
        if isinstance(answer, str):
            assert quoted.strip() == "no answer"
            continue
        (phase,) = answer.phases
        span = phase.intervals.skewness
        numbers = f"{span.estimate:.2g} ({span.low:.2g} to {span.high:.2g})"
        assert quoted.strip().startswith(str(phase.verdict))
        assert quoted.strip().endswith(numbers)


@pytest.mark.slow
def test_nothing_turns_in_the_circuit():
    for path in sorted(folder().glob("bowtie-*.csv")):
        for answer in real_circuit.found(real_circuit.cycle(path)).values():
            assert isinstance(answer, str) or not answer.turns


def test_areas_and_exponents_on_the_page_are_those_of_the_script():
    for name in ("exp1-0.02", "exp1-0.08", "exp1-0.2", "exp3-0.4", "exp3-1.592"):
        area = series.area(real_circuit.cycle(folder() / f"bowtie-{name}s.csv"))
        assert f"{area.estimate:.3g} ({area.low:.3g} to {area.high:.3g})" in PAGE
    for number in (1, 2, 3):
        slope, error = real_circuit.exponent(folder() / f"measured-DG2-exp{number}.csv")
        assert f"{slope:.2f} ± {error:.2f}" in PAGE
