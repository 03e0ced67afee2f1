"""What holds for every kind of study, as tests that each of them inherits.

A kind is then computed in one process only.
"""

import csv
import io
from itertools import product

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv as pacsv

from study import from_the_page
from study.small import made, parquet, small
from whorl.ground import store
from whorl.study import kinds, run


def expected_keys(kind, p):
    """Key tuples of every table, in plain loops."""

    def places(depth):
        return list(product(range(depth), range(3), range(3)))

    if kind == "structural":
        families, both = range(p.families), list(product(range(p.families), p.depths))
        updates = [(*pair, update) for pair in both for update in range(p.updates + 1)]
        return {
            "tasks": list(product(families, range(6))),
            "weights": [(f, d, *place) for f, d in both for place in places(d)],
            "responses": [(*pair, i, j) for pair in both for i in range(18) for j in range(18)],
            "operators": both,
            "modes": [(*pair, omega) for pair in both for omega in p.omegas],
            "trajectory_weights": [(*one, *place) for one in updates for place in places(one[1])],
            "trajectories": updates,
            "control_weights": [(d, *place) for d in p.depths for place in places(d)],
            "control_responses": list(product(p.depths, range(3), range(3))),
            "controls": [(d,) for d in p.depths],
            "curvature": list(product(("negative", "positive"), p.steps)),
        }
    if kind == "threshold":
        configurations = list(product(range(p.families), p.depths, p.betas))
        return {
            "tasks": list(product(range(p.families), range(6))),
            "weights": [(*one, *place) for one in configurations for place in places(one[1])],
            "configurations": configurations,
            "draws": [(draw,) for draw in range(p.resamples)],
        }
    trajectories = list(
        product(range(p.trials), p.depths, p.betas, p.scales, ("step_matched", "adaptive"), (0, 1))
    )
    return {
        "tasks": list(product(range(p.trials), range(6))),
        "weights": [
            (*one, *place)
            for one in product(range(p.trials), p.depths, p.betas)
            for place in places(one[1])
        ],
        "schedule": list(product(range(p.trials), range(6 * p.epochs))),
        "trajectories": [(number, *one) for number, one in enumerate(trajectories)],
        "updates": list(product(range(len(trajectories)), range(6 * p.epochs))),
        "final_weights": [
            (number, *place) for number, one in enumerate(trajectories) for place in places(one[1])
        ],
        "trials": list(product(range(p.trials), ("step_matched", "adaptive"))),
        "conditions": list(product(p.depths, p.betas, p.scales)),
        "draws": [(draw,) for draw in range(p.resamples)],
    }


def statistics_of(kind, p, deficient):
    """The names of the statistics, as the page has them."""
    if kind == "structural":
        wanted = {
            f"rows.{name}"
            for name in ("operators", "modes", "trajectories", "controls", "curvature")
        }
        maxima = [
            "factorisation",
            "symmetry",
            "score_residual",
            "pair_residual",
            "dissipation_residual",
            "discrepancy",
        ]
        wanted |= {
            f"{name}.max" for name in (*maxima, "column_residual", "control.null", "control.rank")
        }
        wanted |= {f"{name}.min" for name in ("weight", "rank", "selected_rank", "control.rank")}
        wanted |= {
            f"{name}.depth{depth}"
            for name in ("rank.full", "rank.five", "condition.median")
            for depth in p.depths
        }
        wanted |= {
            f"{name}.{example}"
            for name in ("coefficient", "slope", "relative_error")
            for example in ("negative", "positive")
        }
        return wanted | (
            {"condition.deficient.min", "condition.deficient.max"} if deficient else set()
        )
    if kind == "threshold":
        wanted = {"rows.configurations", "errors", "sign_agreement", "weight.min"}
        wanted |= {
            f"{n}{end}"
            for n in ("auc", "accuracy", "favourable.first", "favourable.last")
            for end in ("", ".lower", ".upper")
        }
        wanted |= {
            f"{name}.max"
            for name in (
                "response_residual",
                "coefficient_residual",
                "column_residual",
                "condition",
            )
        }
        return wanted | {"condition.median", "condition.q1", "condition.q3"}
    wanted = {f"rows.{name}" for name in ("updates", "trajectories", "conditions")}
    wanted |= {
        f"{name}.{policy}"
        for name in ("gap", "step", "drift", "turning")
        for policy in ("step_matched", "adaptive")
    }
    wanted |= {
        f"{n}{end}"
        for n in ("gap.step_matched", "gap.adaptive", "gain")
        for end in (".lower", ".upper")
    }
    wanted |= {
        "gain",
        "conditions.adaptive_better",
        "step.recovered",
        "drift.offset",
        "native.difference",
        "column_residual.max",
    }
    return wanted | {
        "weight.min",
        *(f"closure.{name}.max" for name in ("step", "trajectory", "paired")),
    }


class EveryKind:
    """Inherit, and say which kind."""

    kind = ""

    def test_every_column_says_what_it_is(self):
        for name, table in made(self.kind)[1].items():
            schema = pq.read_schema(
                io.BytesIO(store.parquet(kinds.get(self.kind).arrow(name, table)))
            )
            assert schema.names == list(table)
            assert (schema.metadata[b"study"], schema.metadata[b"table"]) == (
                self.kind.encode(),
                name.encode(),
            )
            for field, column in zip(schema, kinds.get(self.kind).columns[name], strict=True):
                about = {
                    "role": column.role,
                    "unit": "1",
                    "description": column.meaning,
                    "equation": column.equation,
                }
                assert (
                    about.items()
                    <= {
                        key.decode(): value.decode() for key, value in field.metadata.items()
                    }.items()
                )
                assert column.role in ("key", "drawn", "computed", "derived")
                assert column.meaning
                # Numbers of rows and statistics have no equation; every quantity has one.
                assert column.equation or column.name in ("update", "trajectory", "name", "value")
                assert not field.nullable

    def test_no_value_is_missing_or_infinite(self):
        for table in made(self.kind)[1].values():
            assert all(
                column.dtype.kind in "iU" or np.isfinite(column).all() for column in table.values()
            )

    def test_rows_are_complete_and_in_the_order_of_the_page(self):
        p, tables = made(self.kind)
        wanted = expected_keys(self.kind, p)
        assert [*wanted, "statistics"] == list(kinds.get(self.kind).columns)
        assert tables.keys() == set(kinds.get(self.kind).columns)
        for name, keys in wanted.items():
            names = [
                column.name for column in kinds.get(self.kind).columns[name] if column.role == "key"
            ]
            assert list(zip(*(tables[name][one].tolist() for one in names), strict=True)) == keys

    def test_two_runs_give_the_same_bytes(self):
        assert parquet(self.kind, run.compute(small(self.kind))) == parquet(
            self.kind, made(self.kind)[1]
        )

    def test_text_reads_back_to_the_same_numbers(self):
        for name, columns_ in made(self.kind)[1].items():
            table = kinds.get(self.kind).arrow(name, columns_)
            written = store.csv(table)
            again = pacsv.read_csv(
                io.BytesIO(written), convert_options=pacsv.ConvertOptions(column_types=table.schema)
            )
            assert again.equals(
                table.cast(pa.schema([pa.field(f.name, f.type) for f in table.schema]))
            )
            lines = list(csv.DictReader(io.StringIO(written.decode())))
            for column, values in columns_.items():
                read = {"i": int, "f": float, "U": str}[values.dtype.kind]
                assert [read(line[column]) for line in lines] == values.tolist()

    def test_the_statistics_of_the_page_are_there_and_no_others(self):
        p, tables = made(self.kind)
        names = tables["statistics"]["name"].tolist()
        deficient = self.kind == "structural" and bool((tables["operators"]["rank"] < 6).any())
        assert sorted(names) == sorted(statistics_of(self.kind, p, deficient))

    def test_the_drawn_tables_follow_from_the_page_to_the_bit(self):
        p, tables = made(self.kind)
        for name, redone in from_the_page.DRAWN[self.kind](vars(p)).items():
            roles = {column.name: column.role for column in kinds.get(self.kind).columns[name]}
            assert list(redone) == list(roles)
            assert set(roles.values()) == {"key", "drawn"}
            for column, values in redone.items():
                np.testing.assert_array_equal(
                    tables[name][column], values, err_msg=f"{name}.{column}"
                )

    def test_no_drawn_column_is_left_out_of_the_page(self):
        drawn = {
            name
            for name in kinds.get(self.kind).columns
            for one in kinds.get(self.kind).columns[name]
            if one.role == "drawn"
        }
        assert drawn == set(from_the_page.DRAWN[self.kind](vars(made(self.kind)[0])))
