"""Registered studies.

A design that is fixed before the run, the tables the run writes, and the verdict that follows from
both.

Data flows one way: parameters and columns -> kind -> kinds, a folder each -> design -> lock -> gates
-> run -> published -> replicate -> reproduce. `ground.store` is the only file that writes results.
docs/studies.md fixes every number in them.
"""
