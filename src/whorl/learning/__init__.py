"""Learning in steps: schedules, policies, ledgers, results and loops.

In the order of imports: `schedule` (samples and senses of turns),
`policy` (how far to step and how much to turn), `ledger` (even, handedness, step, drift), `results`
(one family of names for what a run ends with), `trajectory` (one coupled update, and the loop over
it), `baseline` (fair baselines, and any rule), `foresight` (policies that look ahead), `dispatch`
(which kernel does the work) and `ensemble` (many pairs at once).
"""
