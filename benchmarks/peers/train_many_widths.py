"""`whorl.train_many` at any widths, from host arrays to host arrays."""

import jax
import numpy as np

jax.config.update("jax_enable_x64", True)

import equinox as eqx  # noqa: E402
import jax.numpy as jnp  # noqa: E402

import whorl as wh  # noqa: E402
from peers.widths import LEAK  # noqa: E402
from whorl.learning.ledger import TERMS  # noqa: E402


def weight(values):
    return 1 / (LEAK + jnp.sqrt(jnp.maximum(values, 0.0)))


LAWS = {
    "leaky": wh.leaky(LEAK),
    "direct": wh.direct(),
    "repair": wh.repair(),
    "spectral": wh.spectral(weight),
}


def policy(case):
    law = wh.rotational(base=LAWS[case.law])
    if case.policy == "native":
        return wh.native(case.scale, law=law)
    return getattr(wh, case.policy)(case.scale, gate=case.gate, law=law)


def stacked(layers, rates):
    like = wh.Network([np.full(layer.shape[1:], 1 / layer.shape[1]) for layer in layers])
    arrays = tuple(map(jnp.asarray, layers)), tuple(map(jnp.asarray, rates))
    return eqx.tree_at(lambda net: (net.layers, net.rates), like, arrays)


def run(case, layers, rates, inputs, targets, schedule, turns, record=True):
    made = wh.train_many(
        stacked(layers, rates),
        inputs,
        targets,
        policy=policy(case),
        schedule=schedule,
        turns=turns,
        record=record,
    )
    entry = made.updates.terms if record else made.ledger.sums
    ledger = np.stack([np.asarray(getattr(entry, term)) for term in TERMS], 1)
    ends = (
        [np.asarray(layer) for layer in net.layers] for net in (made.nonreciprocal, made.native)
    )
    return ledger, *ends
