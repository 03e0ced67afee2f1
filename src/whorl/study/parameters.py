"""The parameters of studies.

A kind has one frozen class of parameters, with a field for every parameter of its `spec.toml`. The
reader of designs, the audit's tests, the estimate of costs and the pages read them from it.
"""

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from whorl.fields import Field

Fault = tuple[str, str, Any]  # the parameter, the rule that it breaks, and its value


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """What every class of parameters has; its fields come from a `spec.toml`.

    Examples:
        >>> from whorl.study import kinds
        >>> list(kinds.get("threshold").parameters.declared())[:2]
        ['seed', 'depths']
    """

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    @classmethod
    def declared(cls) -> dict[str, Field]:
        """Every parameter by its name, in the order of the specification."""
        return {one.name: one.metadata["field"] for one in fields(cls)}

    def together(self) -> Fault | None:
        """What is wrong where parameters that are good one by one do not fit together."""
        return None


@dataclass(frozen=True, kw_only=True)
class Coupled(Parameters):
    """What follows from the parameters of a study of coupled pairs."""

    @property
    def updates(self) -> int:
        """Updates of a trajectory: every epoch shows three vertices and three mixtures."""
        return 6 * self.epochs

    @property
    def conditions(self) -> dict[str, Any]:
        """The keys of a condition and their values."""
        betas, scales = (np.asarray(values, dtype=float) for values in (self.betas, self.scales))
        return {"depth": self.depths, "beta": betas, "scale": scales}

    @property
    def chunk_bytes(self) -> int:
        """Memory of one compiled call."""
        return 400 * self.chunk * self.updates + 4000 * self.chunk * max(self.depths)
