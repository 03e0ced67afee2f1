"""Registered studies.

A design that is fixed before the run, the tables the run writes, and the verdict that follows from
both; `conduct` does all of it.

Data flows one way: spec, a file in the folder of each kind -> kind -> kinds -> design -> lock ->
gates -> run -> figures, published -> report -> conduct; `replicate` repeats a study under other
seeds. `ground.store` is the only file that writes results. docs/studies.md fixes every number in
them.
"""

from whorl.study.conduct import Conducted as Conducted
from whorl.study.conduct import conduct as conduct
