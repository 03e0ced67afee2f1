"""Registered studies.

A design that is fixed before the run, the tables the run writes, and the verdict that follows from
both; `conduct` does all of it.

Data flows one way: schema -> design -> lock -> draws -> a kind -> columns and store -> gates ->
run -> figures, published -> report -> conduct; `replicate` repeats a study under other seeds.
`store` is the only file that writes results. docs/studies.md fixes every number in them.
"""

from whorl.study.conduct import Conducted as Conducted
from whorl.study.conduct import conduct as conduct
