"""A foresight that is spoilt on purpose, to see what foresight is worth.

Three tables spoil it, each with one row per update and, in an ensemble, one such table per pair.
`foreseen` is the order of samples that it believes in. `angles` turn the residual by another angle
than a right one: at random, a direction without meaning takes the place of the turn. `errors` are
relative errors of the losses that it reads, one per action.
"""

from dataclasses import fields
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from whorl import Policy, View
from whorl.study.compute import Rollout

TABLES = ("foreseen", "angles", "errors")


class Spoilt(Rollout):
    """A rollout that believes, turns or reads something else."""

    foreseen: Int[Array, "*pairs updates"] | None
    angles: Float[Array, "*pairs updates"] | None
    errors: Float[Array, "*pairs updates actions"] | None
    kernel: ClassVar[str | None] = "rollout"

    def seen(self, view: View) -> View:
        """The view with the turning score of the residual rotated by the angle of the update."""
        if self.angles is None:
            return view
        angle = self.angles[view.number]
        parts = zip(view.straight, view.turning, strict=True)
        turning = tuple(jnp.cos(angle) * b + jnp.sin(angle) * r for b, r in parts)
        return eqx.tree_at(lambda old: old.turning, view, turning)

    def ends(self, view: View) -> Float[Array, "actions"]:
        """The losses ahead as they are read, by the order that is believed in."""
        if self.foreseen is not None:
            view = eqx.tree_at(lambda old: old.order, view, self.foreseen)
        losses = super().ends(view)
        if self.errors is None:
            return losses
        read = losses * (1 + self.errors[view.number])
        return jnp.where(jnp.isfinite(losses), read, jnp.inf)

    def kernel_tables(self, order: np.ndarray) -> list[np.ndarray]:
        numbers, foreseen, mixture, errors = super().kernel_tables(order)
        if self.angles is not None:
            mixture = np.stack([np.cos(self.angles), np.sin(self.angles)], axis=2)
        return [
            numbers,
            foreseen if self.foreseen is None else np.asarray(self.foreseen),
            mixture,
            errors if self.errors is None else np.asarray(self.errors),
        ]

    def per_pair(self) -> Any:
        def tables(policy: Any) -> list[Any]:
            return [one for name in TABLES if (one := getattr(policy, name)) is not None]

        spec = super().per_pair()
        rows = tables(self)
        return spec if not rows else eqx.tree_at(tables, spec, replace=[True] * len(rows))


def spoilt(policy: Policy, **tables: np.ndarray) -> Policy:
    """The same policy with its foresight spoilt by some tables; without any, itself."""
    if not tables:
        return policy
    own = (getattr(policy, field.name) for field in fields(Rollout))
    arrays = (tables.get(name) for name in TABLES)
    return Spoilt(*own, *(None if one is None else jnp.asarray(one) for one in arrays))
