"""Does a skew part come from the device or from its boundary?"""

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import whorl as wh
from measured.loops import series
from whorl import measured
from whorl.measured.state import matched
from whorl.simplex import tangent_basis

INPUTS = wh.Task.random(3, 3, seed=1).inputs
NET = wh.Network.random((3, 3, 3), imbalance=2.0, floor=0.15, seed=3)
BACK = [
    np.asarray(layer)[:, ::-1] + 0.3 * np.eye(3) for layer in NET.layers
]  # a way back that has little to do with the way forward
MATCHED, MISMATCHED = (
    wh.response(NET, INPUTS, selected=0),
    wh.response(NET, INPUTS, selected=0, adjoint=BACK),
)


def table(response, law, *, level=0.01, repeats=40, seed=0):
    """Residuals, potentials, velocities and repeats of a bench with noise in the velocities."""
    applied, runs = series(3, repeats)
    applied = applied @ np.diag([1.0, 0.8, 1.3])
    applied -= applied.mean(axis=1, keepdims=True)
    boundary = tangent_basis(3) @ np.asarray(law.matrix(response)) @ tangent_basis(3).T
    potentials = applied @ boundary.T
    seen = potentials @ np.asarray(response.dense()).T
    return (
        applied,
        potentials,
        seen + level * np.abs(seen).max() * np.random.default_rng(seed).standard_normal(seen.shape),
        runs,
    )


def recorded(path, applied, seen, runs):
    """The same with the network's inputs and columns beside every measurement."""
    columns = {f"residual_{k + 1}": applied[:, k] for k in range(3)} | {
        f"velocity_{k + 1}": seen[:, k] for k in range(3)
    }
    columns |= {f"input_{k + 1}": np.full(len(applied), float(INPUTS[0, k])) for k in range(3)}
    for number, layer in enumerate(NET.layers):
        for (entry, column), value in np.ndenumerate(np.asarray(layer)):
            columns[f"column_{number + 1}_{column + 1}_{entry + 1}"] = np.full(len(applied), value)
    pyarrow.parquet.write_table(pa.table(columns | {"repeat": runs}), path)
    return measured.judge(measured.read(path))


def test_a_turn_at_the_boundary_leaves_the_response_reciprocal():
    applied, potentials, seen, runs = table(MATCHED, wh.rotational(alpha=1.0, omega=1.0))
    finding = measured.certify(applied, seen, potentials=potentials, repeat=runs)
    origin = finding.leading.diagnosis.response
    assert finding.turns
    assert origin.p > 0.05
    assert origin.adjoint.low < 0.0 < origin.adjoint.high or abs(origin.adjoint.estimate) < 0.05
    assert "the physical response K is reciprocal as far as can be seen" in str(finding)


def test_a_way_back_that_does_not_match_is_found_in_the_response():
    applied, potentials, seen, runs = table(MISMATCHED, wh.direct())
    finding = measured.certify(applied, seen, potentials=potentials, repeat=runs)
    origin = finding.leading.diagnosis.response
    assert finding.verdict != "reciprocal"
    assert origin.p <= 0.05
    assert origin.adjoint.estimate == pytest.approx(
        1.0, abs=1e-6
    )  # with v = e the loop is the response


def test_the_two_shares_of_an_exact_measurement_are_those_of_the_matrices():
    law = wh.rotational(alpha=1.0, omega=0.5, base=wh.leaky(0.1))
    applied, potentials, seen, runs = table(MISMATCHED, law, level=0.0)
    origin = measured.certify(
        applied, seen, potentials=potentials, repeat=runs
    ).leading.diagnosis.response
    response, boundary = np.asarray(MISMATCHED.reduced()), np.asarray(law.matrix(MISMATCHED))
    skew = lambda matrix: (matrix - matrix.T) / 2  # noqa: E731
    whole, own = skew(response @ boundary), skew(skew(response) @ boundary)
    assert origin.adjoint.estimate == pytest.approx(
        np.sum(own * whole) / np.sum(whole**2), abs=1e-8
    )


def test_the_recorded_state_gives_the_librarys_response():
    state = {f"input_{k + 1}": float(INPUTS[0, k]) for k in range(3)}
    for number, layer in enumerate(NET.layers):
        state |= {
            f"column_{number + 1}_{c + 1}_{r + 1}": float(value)
            for (r, c), value in np.ndenumerate(np.asarray(layer))
        }
    found = matched(state, 3)
    np.testing.assert_allclose(found.response, np.asarray(MATCHED.reduced()), atol=1e-14)
    by_layer = np.asarray(MATCHED.by_block())[-1]
    np.testing.assert_allclose(
        found.top, tangent_basis(3).T @ by_layer @ tangent_basis(3), atol=1e-14
    )
    assert len(found.ways) == 1
    with pytest.raises(ValueError, match="layer 1 must be recorded whole"):
        matched({name: value for name, value in state.items() if name != "column_1_2_2"}, 3)
    with pytest.raises(ValueError, match="must lead from 3 inputs to 4 outputs"):
        matched(state, 4)


def test_from_the_recorded_state_a_boundary_term_is_told_from_a_mismatched_adjoint(tmp_path):
    applied, _, seen, runs = table(MATCHED, wh.rotational(alpha=1.0, omega=1.0, base=wh.leaky(0.1)))
    turned = recorded(tmp_path / "boundary.parquet", applied, seen, runs)
    assert turned.turns
    assert turned.leading.diagnosis.boundary.misfit < 0.02
    assert turned.leading.diagnosis.favoured in ("boundary", None)
    applied, _, seen, runs = table(MISMATCHED, wh.direct(), level=0.002)
    crossed = recorded(tmp_path / "adjoint.parquet", applied, seen, runs)
    assert crossed.p <= 0.05
    assert crossed.leading.diagnosis.favoured == "adjoint"
    assert "a mismatched adjoint explains the loop better" in str(crossed)


def test_a_state_that_changes_under_way_is_refused(tmp_path):
    applied, _, seen, runs = table(MATCHED, wh.direct())
    recorded(tmp_path / "state.parquet", applied, seen, runs)
    good = pyarrow.parquet.read_table(tmp_path / "state.parquet")
    moved = good.column("input_1").to_numpy().copy()
    moved[50] += 0.1
    pyarrow.parquet.write_table(
        good.set_column(good.column_names.index("input_1"), "input_1", pa.array(moved)),
        tmp_path / "state.parquet",
    )
    with pytest.raises(
        ValueError, match="row 51, column input_1: the state must be the same in all rows"
    ):
        measured.read(tmp_path / "state.parquet")
