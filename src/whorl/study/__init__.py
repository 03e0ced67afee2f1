"""Registered studies.

A design that is fixed before the run, the tables the run writes, and the verdict that follows from
both.

Data flows one way: schema -> design -> lock -> draws -> a kind (structural, threshold, horizon) ->
columns and store -> gates -> run -> published -> replicate -> reproduce. `store` is the only file
that writes results. docs/studies.md fixes every number in them.
"""
