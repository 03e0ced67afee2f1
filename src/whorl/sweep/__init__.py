"""Sweeps.

Many cases over any parameter, in shards that survive whatever happens to those who compute them.

    from pathlib import Path
    from whorl import sweep

    design = sweep.read(Path("examples/sweep.toml"))
    print(sweep.Plan(design).estimate())
    sweep.sweep(design, "runs/mine", engine=sweep.Processes(2))
    print(sweep.conditions("runs/mine"))

Data flows from `design` through `plan`, `draws` and `compute` to `guard` (what goes wrong),
`shards` (the store), `work` (what a worker does), the engines (`engines`, `processes`, `cluster`)
and `table`.
"""

from whorl.ground.engines import Devices as Devices
from whorl.ground.engines import Engine as Engine
from whorl.ground.engines import InProcess as InProcess
from whorl.ground.engines import Job as Job
from whorl.ground.engines.cluster import Cluster as Cluster
from whorl.ground.engines.processes import Processes as Processes
from whorl.sweep.design import Sweep as Sweep
from whorl.sweep.design import parse as parse
from whorl.sweep.design import read as read
from whorl.sweep.picture import picture as picture
from whorl.sweep.plan import Cases as Cases
from whorl.sweep.plan import Plan as Plan
from whorl.sweep.plan import Shard as Shard
from whorl.sweep.run import Result as Result
from whorl.sweep.run import sweep as sweep
from whorl.sweep.shards import Store as Store
from whorl.sweep.table import conditions as conditions
from whorl.sweep.table import export as export
from whorl.sweep.table import scan as scan
from whorl.sweep.work import Report as Report
