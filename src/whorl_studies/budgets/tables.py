"""The tables and statistics of the budgets study."""

from typing import Any

import numpy as np

from whorl.study import bootstrap, frames
from whorl.study.draws import tasks
from whorl.study.frames import Parts, Table, Tables, exact_sum
from whorl_studies.budgets import arms, frozen
from whorl_studies.budgets.arms import LAWS, RIVALS, Stage
from whorl_studies.budgets.frozen import MEASURED, RESPONSES, Frozen
from whorl_studies.budgets.parameters import Budgets

FLOOR = 1e-30  # losses below it are round-off and count as it
NONE = -1  # no number of updates of the design
EQUAL = ("compute", "effort")
SETTINGS = tuple(LAWS)
ROBUST = (*SETTINGS, "wide")


def tables(p: Budgets, parts: Parts) -> Tables:
    """All tables but the statistics, rows in the order of docs/studies.md."""
    x, y = tasks(p.seed, p.trials, p.concentration)
    built: Tables = {"tasks": frames.tasks(x, y, trial=range(p.trials))}
    built |= _frozen(p, parts)
    built["learners"], built["rivals"] = _learners(p, parts), _rivals(p, parts)
    built["troubled"] = _troubled(p, parts)
    built["advantages"] = _advantages(p, built)
    built["onsets"] = _onsets(p, built["advantages"])
    built["robustness"] = _robustness(p, built["troubled"])
    return built


def _stages(p: Budgets) -> list[Frozen]:
    return [Frozen(name, depth) for name in frozen.populations(p) for depth in p.frozen_depths]


def _frozen(p: Budgets, parts: Parts) -> Tables:
    stages = _stages(p)
    at = [(stage, name) for stage in stages for name in RESPONSES]
    trials = np.arange(p.trials)

    def keys(stage: Frozen, name: str, **more: Any) -> Table:
        return frames.product(
            **more.pop("first", {}),
            population=[stage.population],
            depth=[stage.depth],
            response=[name],
            trial=trials,
            **more,
        )

    values = {key: parts[key[0]][f"{key[1]}_values"] for key in at}
    spectra = frames.joined(
        keys(*key, mode=range(values[key].shape[1])) | {"eigenvalue": values[key].ravel()}
        for key in at
    )
    bounds = []
    for key in at:
        kept = values[key] > p.rank_tol * values[key][:, :1]
        rank = kept.sum(axis=1)
        logs = np.where(kept, np.log(np.where(kept, values[key], 1.0)), 0.0)
        column = {
            "rank": rank,
            "weakest": values[key][trials, rank - 1],
            "geometric": np.exp(exact_sum(logs) / rank),
            "arithmetic": exact_sum(np.where(kept, values[key], 0.0)) / rank,
        }
        stored = {n: parts[key[0]][f"{key[1]}_{n}"] for n in frozen.REACHED}
        bounds.append(keys(*key) | column | stored)
    measured = [
        keys(*key, first={"law": [law]})
        | dict(zip(MEASURED, parts[key[0]][f"{key[1]}_measured"][number], strict=True))
        | _reach(law, part, values[key], parts[key[0]][f"{key[1]}_measured"][number])
        for number, law in enumerate(frozen.LAWS)
        for key, part in zip(at, bounds, strict=True)
    ]
    joined = frames.joined
    return {"spectra": spectra, "bounds": joined(bounds), "frozen": joined(measured)}


def _reach(law: str, bound: Table, values: np.ndarray, measured: np.ndarray) -> Table:
    """A rate over its bound, and an impulse over the least: the root mean square of 1 / K."""
    found = dict(zip(MEASURED, measured, strict=True))
    turning = law in ("paired", "kept", "geometric")
    limit = bound["geometric" if turning else "weakest"] * found["gain"]
    kept = np.arange(values.shape[1]) < bound["rank"][:, None]
    squares = np.where(kept, 1 / np.where(kept, values, 1.0) ** 2, 0.0)
    least = np.sqrt(exact_sum(squares) / bound["rank"])
    return {"reach": found["rate"] / limit, "thrift": found["impulse"] / least}


def _conditions(p: Budgets, setting: str) -> dict[str, Any]:
    marks = p.updates if setting == "selected" else p.joint_updates
    return {
        "depth": p.depths,
        "beta": frames.floats(p.betas),
        "gain": frames.floats(p.gains),
        "updates": marks,
    }


def _shaped(p: Budgets, setting: str, values: np.ndarray) -> np.ndarray:
    """(depths, marks, rows) in the order of the keys: depth, beta, gain, updates, trial."""
    depths, marks, _ = values.shape
    split = values.reshape(depths, marks, len(p.betas), len(p.gains), p.trials)
    return np.moveaxis(split, 1, 3).ravel()


def _learners(p: Budgets, parts: Parts) -> Table:
    found = []
    for setting in SETTINGS:
        for arm in arms.main(setting):
            columns = {}
            for name in ("loss", "effort"):
                seen = []
                for depth in p.depths:
                    family = "modes" if arm.act in arms.MODES else "linear"
                    stage = Stage(setting, family, depth)
                    number = [one.name for one in arms.of(p, stage)].index(arm.name)
                    seen.append(parts[stage][name][number])
                columns[name] = _shaped(p, setting, np.stack(seen))
            keys = {"setting": [setting], "law": [arm.name]} | _conditions(p, setting)
            found.append(frames.product(**keys, trial=range(p.trials)) | columns)
    return frames.joined(found)


def _rivals(p: Budgets, parts: Parts) -> Table:
    found = []
    for setting in SETTINGS:
        family = "linear" if setting == "selected" else "modes"
        stages = [Stage(setting, family, depth) for depth in p.depths]
        for number, law in enumerate(LAWS[setting]):
            for rival in EQUAL:
                losses = [
                    parts[one]["compute"]
                    if rival == "compute"
                    else parts[one]["effort_equal"][number]
                    for one in stages
                ]
                keys: dict[str, Any] = {"setting": [setting], "law": [law], "rival": [rival]}
                rows = frames.product(**keys, **_conditions(p, setting), trial=range(p.trials))
                found.append(rows | {"loss": _shaped(p, setting, np.stack(losses))})
    return frames.joined(found)


def robust_depths(p: Budgets, setting: str) -> list[int]:
    """The depths at which a setting is troubled."""
    return p.robust_depths[:1] if setting == "wide" else p.robust_depths


def _troubled(p: Budgets, parts: Parts) -> Table:
    found = []
    for setting in ROBUST:
        depths = robust_depths(p, setting)
        for arm in arms.troubled(p, setting):
            family = "robust_modes" if arm.act in arms.MODES else "robust_linear"
            stages = [Stage(setting, family, depth) for depth in depths]
            losses = [parts[one]["loss"][arms.of(p, one).index(arm)] for one in stages]
            rows = frames.product(
                setting=[setting],
                law=[arm.name],
                trouble=[arm.trouble],
                level=[float(arm.level)],
                depth=depths,
                updates=p.robust_updates,
                trial=range(p.trials),
            )
            found.append(rows | {"loss": np.stack(losses).ravel()})
    return frames.joined(found)


def _compared(p: Budgets, rival: np.ndarray, law: np.ndarray) -> Table:
    """Rows (rows, trials) of losses against each other, trials resampled together."""
    logs = [np.log10(np.maximum(part, FLOOR)) for part in (rival, law)]
    gain = logs[0] - logs[1]
    drawn = bootstrap.resampled(p.bootstrap_seed, p.trials, p.resamples)
    ends = np.array([bootstrap.interval(row[drawn].mean(axis=1)) for row in gain])
    return {
        "advantage": exact_sum(gain) / p.trials,
        "lower": ends[:, 0],
        "upper": ends[:, 1],
        "share": (gain > 0).sum(axis=1) / p.trials,
    }


def rivals(setting: str, law: str) -> tuple[str, ...]:
    """Whom a law is compared with; `kept` has no twin of random sense."""
    twin = (f"{law}_random",) if law != "kept" else ()
    return (*RIVALS, *EQUAL, *twin)


def _advantages(p: Budgets, t: Tables) -> Table:
    rows, equal, found = t["learners"], t["rivals"], []
    for setting in SETTINGS:
        for law in LAWS[setting]:
            mine = _losses(p, rows, setting=setting, law=law)
            for rival in rivals(setting, law):
                other = (
                    _losses(p, equal, setting=setting, law=law, rival=rival)
                    if rival in EQUAL
                    else _losses(p, rows, setting=setting, law=rival)
                )
                keys: dict[str, Any] = {"setting": [setting], "law": [law], "rival": [rival]}
                keys |= _conditions(p, setting)
                found.append(frames.product(**keys) | _compared(p, other, mine))
    return frames.joined(found)


def _onsets(p: Budgets, rows: Table) -> Table:
    found = []
    for setting in SETTINGS:
        conditions = _conditions(p, setting)
        marks = conditions.pop("updates")
        for law in LAWS[setting]:
            here = (rows["setting"] == setting) & (rows["law"] == law) & (rows["rival"] == "direct")
            wins = (rows["lower"][here] > 0).reshape(-1, len(marks))
            onward = np.logical_and.accumulate(wins[:, ::-1], axis=1)[:, ::-1]
            first = np.where(onward.any(axis=1), np.array(marks)[onward.argmax(axis=1)], NONE)
            keys = frames.product(setting=[setting], law=[law], **conditions)
            found.append(keys | {"onset": first})
    return frames.joined(found)


def _losses(p: Budgets, table: Table, **where: Any) -> np.ndarray:
    """The losses of some rows, (rows, trials)."""
    here = np.all([table[name] == value for name, value in where.items()], axis=0)
    return table["loss"][here].reshape(-1, p.trials)


def _robustness(p: Budgets, rows: Table) -> Table:
    found = []
    for setting in ROBUST:
        for arm in arms.troubled(p, setting):
            if arm.name == "direct":
                continue
            spoilt = {"trouble": arm.trouble, "level": float(arm.level)}
            # Direct feedback needs no response: noise alone troubles it too.
            rival = spoilt if arm.trouble == "noise" else {"trouble": "none", "level": 0.0}
            mine = _losses(p, rows, setting=setting, law=arm.name, **spoilt)
            other = _losses(p, rows, setting=setting, law="direct", **rival)
            keys = frames.product(
                setting=[setting],
                law=[arm.name],
                trouble=[arm.trouble],
                level=[float(arm.level)],
                depth=robust_depths(p, setting),
                updates=p.robust_updates,
            )
            found.append(keys | _compared(p, other, mine))
    return frames.joined(found)


def statistics(p: Budgets, t: Tables) -> dict[str, Any]:
    """Every number that a gate or the report speaks of."""
    found = frames.counts(t, "bounds", "frozen", "learners", "troubled", "advantages")
    bounds, rows = t["bounds"], t["frozen"]
    found["reach.max"] = max(rows["reach"].max(), (bounds["random"] / bounds["geometric"]).max())
    for law in frozen.LAWS:
        here = rows["law"] == law
        found[f"reach.{law}.min"] = rows["reach"][here].min()
        for name in ("transient", "noise", "worst_3"):
            found[f"{name}.{law}.median"] = np.median(rows[name][here])
    found |= {f"{name}.max": bounds[name].max() for name in ("diagonal", "below", "gyration")}
    found["thrift.min"] = rows["thrift"].min()
    found["thrift.repair.max"] = rows["thrift"][rows["law"] == "repair"].max()
    found["factor.median"] = np.median(bounds["geometric"] / bounds["weakest"])
    return found | _counts(p, t)


def _counts(p: Budgets, t: Tables) -> dict[str, Any]:
    """Conditions in which a law ends lower than a rival after the last update, and in which higher,
    as the bounds say; and those with an onset.
    """
    rows, found = t["advantages"], {}
    for setting in SETTINGS:
        last = _conditions(p, setting)["updates"][-1]
        for law in LAWS[setting]:
            mine = (rows["setting"] == setting) & (rows["law"] == law) & (rows["updates"] == last)
            for rival in rivals(setting, law):
                here = mine & (rows["rival"] == rival)
                name = f"{setting}.{law}.{rival}"
                found[f"{name}.wins"] = np.sum(rows["lower"][here] > 0)
                found[f"{name}.loses"] = np.sum(rows["upper"][here] < 0)
            onsets = t["onsets"]
            some = (onsets["setting"] == setting) & (onsets["law"] == law)
            found[f"{setting}.{law}.onsets"] = np.sum(onsets["onset"][some] != NONE)
            # The end of a run is nearest where its laws are strongest.
            twin = mine & (rows["rival"] == f"{law}_random") & (rows["gain"] == max(p.gains))
            if twin.any():
                found[f"{setting}.{law}.sense.lower"] = rows["lower"][twin].min()
    return found
