"""Records of the updates of many pairs.

A user wants rows of pairs, a loop makes one number of all pairs at a time. A CPU writes each number
where it belongs, in the column of its update: turning whole tables afterwards would take twice as
long. On a device, where every number would be a call of its own, they are stacked, and turned at
the end.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from whorl.fast.fused import keep, on_cpu

TERMS, SEEN = 4, 7  # numbers of the account and of the outcome; a choice is the eighth of these
Row = tuple[Sequence[Array], Sequence[Array]]  # both of one update, each number (lanes,)
Rows = tuple[list[Array], list[Array]] | None  # both of all updates, each number (lanes, updates)


def updated(
    body: Callable[[Any, Any], tuple[Any, Row]],
    start: Any,
    given: Any,
    like: Array,
    record: bool,
    chooses: bool = False,
) -> tuple[Any, Rows]:
    """`jax.lax.scan` of an update over what is given for each, with rows if they are recorded.

    Numbers have the type and the lanes of `like`.
    """
    if not record:
        return jax.lax.scan(lambda carry, now: (body(carry, now)[0], None), start, given)
    if not on_cpu():
        return _stacked(body, start, given)
    updates = jax.tree.leaves(given)[0].shape[0]
    room = jnp.zeros((like.shape[-1], updates), like.dtype)

    def one(carry: tuple, now: Any) -> tuple[tuple, None]:
        inner, rows, number = carry
        inner, row = body(inner, now)
        rows = jax.tree.map(
            lambda to, new: jax.lax.dynamic_update_slice_in_dim(to, keep(new)[:, None], number, 1),
            rows,
            tuple(map(list, row)),
        )
        return (inner, rows, number + 1), None

    empty = ([room] * TERMS, [room] * (SEEN + chooses))
    (end, rows, _), _ = jax.lax.scan(one, (start, empty, jnp.int32(0)), given)
    return end, rows


def _stacked(body: Callable[[Any, Any], tuple[Any, Row]], start: Any, given: Any) -> Any:
    def one(carry: Any, now: Any) -> tuple[Any, tuple[Array, ...]]:
        carry, row = body(carry, now)
        return carry, tuple(jnp.stack(list(part)) for part in row)

    end, rows = jax.lax.scan(one, start, given)
    return end, tuple([table.T for table in jnp.moveaxis(part, 1, 0)] for part in rows)
