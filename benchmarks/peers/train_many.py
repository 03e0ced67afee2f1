"""`whorl.train_many` as a user calls it.

Through `lanes`, every core, every check of its input, the account of every update kept.
"""

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)

import whorl as wh  # noqa: E402
from peers.problem import SCALE  # noqa: E402

POLICY = wh.step_matched(SCALE)


def stacked(layers):
    """Many networks as one, from one array (pairs, depth, 3, 3).

    `whorl.stack` does it for a list of networks.
    """
    one = wh.Network(list(layers[0]))
    many = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (len(layers), *leaf.shape)), one)
    return many.with_blocks([jnp.asarray(layer) for layer in layers.swapaxes(0, 1)])


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
