"""Two marks on a compiled program that decide the speed of small elementwise work on a CPU.

Neither changes a value.

Left to itself XLA's CPU compiler recomputes a shared value inside each of its readers, and
dispatches every fusion of a loop by itself. Both marks are attributes of XLA calls; a compiler that
does not know them ignores them, and on other devices they are not set.
"""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.core import Tracer
from jax.experimental.xla_metadata import set_xla_metadata


def on_cpu() -> bool:
    """Whether programs will run on the CPU."""
    return jax.default_backend() == "cpu"


def at_hand(tree: Any) -> Any:
    """Arrays as NumPy views on a CPU, which are cheap to read; unchanged on other devices."""
    return jax.tree.map(np.asarray, tree) if on_cpu() else tree


def keep(tree: Any) -> Any:
    """Compute these arrays once.

    A call of the identity that may not be inlined: fusion stops there, and running it costs
    nothing.

    `optimization_barrier` does not serve: the CPU compiler drops it before it fuses. Outside a
    compiled program nothing fuses, and every call would be a program of its own.
    """
    if not on_cpu() or not any(isinstance(one, Tracer) for one in jax.tree.leaves(tree)):
        return tree
    with set_xla_metadata(inlineable="false"):
        return jax.jit(lambda same: same)(tree)


def whole(function: Callable[..., Any], *, inlined: bool = False) -> Callable[..., Any]:
    """Compile `function`, loops and all, into one machine-code function instead of one dispatch for
    each fusion.

    The marks reach everything inside, so that bodies of loops stay calls; `inlined` takes the first
    mark off them, so their slices are read in place. Last bits may depend on it.
    """
    if not on_cpu():
        return function
    inside = {"inlineable": "true", "xla_cpu_small_call": "false"} if inlined else {}

    def plain(*arguments: Any) -> Any:
        with set_xla_metadata(**({"inlineable": None, "xla_cpu_small_call": None} | inside)):
            return function(*arguments)

    def marked(*arguments: Any) -> Any:
        with set_xla_metadata(inlineable="false", xla_cpu_small_call="true"):
            return jax.jit(plain)(*arguments)

    return marked


def compiler_options(*, quick: bool = False) -> dict[str, Any] | None:
    """AVX-512 registers where there are any; elsewhere the compiler takes what the machine has.

    With `quick` the compiler makes one pass where it would make several: programs of `layers` run
    as fast and are there a third sooner.
    """
    if not on_cpu():
        return None
    return {"xla_cpu_prefer_vector_width": 512} | (
        {"xla_backend_optimization_level": 1} if quick else {}
    )
