"""Files of replicates: gone on from, or refused in one sentence."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import strategies as st

from fuzz.doors import ends_well
from fuzz.folders import other_bytes, other_table
from study.small import small
from whorl.ground import store
from whorl.study import replicate

ABOUT = {"study": "mine", "design": small().sha256, "quick": "False"}


def file(seeds=(1, 2), names=("one", "other"), about=ABOUT):
    columns = {
        "seed": pa.array([seed for seed in seeds for _ in names], pa.int64()),
        "statistic": pa.array([name for _ in seeds for name in names]),
        "value": pa.array(
            [0.5 * number for number in range(len(seeds) * len(names))], pa.float64()
        ),
    }
    return store.parquet(pa.Table.from_pydict(columns).replace_schema_metadata(about))


@st.composite
def kept_metadata(draw, content):
    """Another table that says it was made from the same design."""
    table = pq.ParquetFile(pa.BufferReader(draw(other_table(content)))).read()
    return store.parquet(
        table.replace_schema_metadata(
            draw(st.sampled_from([ABOUT, ABOUT, ABOUT, {}, ABOUT | {"quick": "True"}]))
        )
    )


@pytest.fixture
def instant(monkeypatch):
    """Seeds whose statistics are there at once."""
    monkeypatch.setattr(
        replicate,
        "statistics",
        lambda design, quick, seeds: {seed: {"one": 1.0, "other": 2.0} for seed in seeds},
    )


def test_any_file_of_replicates_is_gone_on_from_or_refused(fuzz, instant, tmp_path):
    path, sound = tmp_path / "many.parquet", file()

    def went_on(content):
        path.write_bytes(content)
        return ends_well(lambda: replicate.summary(replicate.replicate(small(), [1, 3], path)))

    fuzz(
        st.one_of(
            st.just(sound),
            other_bytes(sound),
            other_table(sound),
            kept_metadata(sound),
            kept_metadata(sound),
            st.binary(max_size=50),
        ),
        went_on,
    )
