"""Files for `whorl certify`.

A finding, or code 2 and one line that names the file and what is wrong with it.
"""

import pytest
from hypothesis import strategies as st

from fuzz import tables
from fuzz.anything import ANYTHING, mostly
from fuzz.doors import command_ends_well, ends_well
from whorl import measured

TEXTS = st.one_of(
    tables.csvs(),
    tables.csvs(),
    tables.csvs(),
    st.binary(max_size=100),
    st.text(max_size=100).map(str.encode),
)
FILES = {"csv": TEXTS, "parquet": tables.parquets()}


@pytest.mark.parametrize("kind", sorted(FILES))
def test_any_file_is_judged_or_refused(fuzz, kind, tmp_path):
    path = tmp_path / f"mine.{kind}"

    def judged(content):
        path.write_bytes(content)
        return command_ends_well("certify", path, *(["--json"] if len(content) % 2 else []))

    fuzz(FILES[kind], judged)


def test_any_arrays_are_judged_or_refused(fuzz):
    columns = tables.sound(12)
    good = [
        tables.np.stack([columns[f"{role}_{number}"] for number in (1, 2, 3)], axis=1)
        for role in ("residual", "velocity")
    ]
    options = {
        "potentials": st.one_of(st.just(good[0]), ANYTHING),
        "sample": st.one_of(st.just(["a"] * 12), ANYTHING),
        "repeat": st.one_of(st.just(list(range(12))), ANYTHING),
        "uncertainty": mostly(st.floats(0.01, 2)),
        "time_scale": mostly(st.floats(0.01, 2)),
        "alpha": mostly(st.floats(0.01, 0.5)),
        "seed": mostly(st.integers(0, 9)),
    }
    named = st.lists(st.sampled_from(sorted(options)), max_size=2, unique=True).flatmap(
        lambda names: st.fixed_dictionaries({name: options[name] for name in names})
    )
    drawn = st.tuples(mostly(st.just(good[0])), mostly(st.just(good[1])), named)
    fuzz(
        drawn,
        lambda given: ends_well(lambda: str(measured.certify(given[0], given[1], **given[2]))),
    )
