r"""Composition regression: where did each share go?

One layer of a flow network is the transition matrix that ecologists, geologists, election
researchers and marketing people estimate. `FlowRegressor` fits it, exactly; `bootstrap`,
`permutation` and `compare` say how far it can be trusted; `ecological` goes on to the inner cells
of every unit; `draw` shows it, and `page` writes all of it into one file.

    from whorl.regress import FlowRegressor
    model = FlowRegressor(loss="kl").fit(before, after)
    print(model.summary())
"""

from whorl.regress.draw import flows as flows
from whorl.regress.draw import intervals as intervals
from whorl.regress.draw import ternary as ternary
from whorl.regress.ecological import bounds as bounds
from whorl.regress.ecological import contextual as contextual
from whorl.regress.ecological import inner_cells as inner_cells
from whorl.regress.ecological import misallocated as misallocated
from whorl.regress.estimator import FlowRegressor as FlowRegressor
from whorl.regress.page import write as write
from whorl.regress.reading import read as read
from whorl.regress.resample import Intervals as Intervals
from whorl.regress.resample import Permuted as Permuted
from whorl.regress.resample import bootstrap as bootstrap
from whorl.regress.resample import compare as compare
from whorl.regress.resample import permutation as permutation
from whorl.regress.words import to_dict as to_dict
