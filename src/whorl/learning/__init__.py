"""Learning in steps: what is shown when, how far to step and turn, and what came of it.

In the order in which they know each other: `schedule` (who is shown when, and which way to turn),
`policy` (how far to step and how much to turn), `ledger` (even, handedness, step, drift), `results`
(one family of names for what a run ends with), `trajectory` (one coupled update, and the loop over
it), `baseline` (fair baselines, and any rule), `foresight` (policies that look ahead), `dispatch`
(which kernel does the work) and `ensemble` (many pairs at once).
"""
