"""`whorl.train_many` as a user calls it.

Through `lanes`, every core, every check of its input, the account of every update kept.
"""

import jax
import numpy as np

jax.config.update("jax_enable_x64", True)

import whorl as wh  # noqa: E402
from peers.problem import SCALE  # noqa: E402
from whorl.learning.ensemble import stacked  # noqa: E402

POLICY = wh.step_matched(SCALE)


def host(net):
    return np.stack([np.asarray(layer) for layer in net.layers], axis=1)


def run(layers, inputs, targets, schedule, turns, policy=POLICY, record=True):
    result = wh.train_many(
        stacked(layers),
        inputs,
        targets,
        policy=policy,
        schedule=schedule,
        turns=turns,
        record=record,
    )
    account = result.ledger.updates if record else result.ledger.sums
    ledger = np.stack(
        [
            np.asarray(term)
            for term in (account.even, account.handedness, account.step, account.drift)
        ]
    )
    return ledger, host(result.nonreciprocal), host(result.native)
