"""The doors: every value a user hands in passes here once, and leaves as a checked JAX array.

One grammar for every refusal: *argument* must *rule*, but *value*. Values are checked when they are
known; under `jax.jit` and friends only shapes and types are, because a traced value is not there
yet to be looked at.
"""

import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.errors import TracerArrayConversionError
from jax.typing import ArrayLike
from jaxtyping import Bool, Int

from whorl.fields import Field
from whorl.fields import shown as shown

# What may stand where an array is asked for: arrays of JAX and NumPy, numbers, and nested lists.
Numbers = ArrayLike | Sequence[Any]
Kind = TypeVar("Kind")
# Plain values of Python and NumPy, for which JAX's stand where a result was traced. A type checker
# is told of the plain ones.
if TYPE_CHECKING:
    Count = int
    Flag = bool
    Order = np.ndarray
else:
    Count = Int[jax.Array, "*runs"] | int
    Flag = Bool[jax.Array, "*runs"] | bool
    Order = Int[np.ndarray, "*runs updates"] | Int[jax.Array, "*runs updates"]


def known(*values: Any) -> bool:
    """Say whether every value is there to be looked at, rather than traced."""
    return not any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(values))


def need_known(what: str, instead: str, *values: Any) -> None:
    """Refuse traced values where a number has to be looked at, and say what to do instead."""
    if not known(values):
        raise ValueError(
            f"{what} must be known, but it is traced here by jit, vmap or a derivative: {instead}"
        )


def counted(number: Any) -> Count:
    """How often something was done, as a whole number unless it is traced."""
    return int(number) if known(number) else number


def plain(text: str) -> str:
    """A name from somebody's file.

    What would speak to a terminal, or break a line, is shown as its code.
    """
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)


def mass_tolerance(dtype: Any) -> float:
    """How far from one a unit mass may lie.

    1e-12 in double precision, the registered tolerance for column sums.
    """
    return 1e-12 if jnp.finfo(dtype).bits >= 64 else 1e-5


def array(name: str, value: Numbers, ndim: int, dtype: Any = None) -> jax.Array:
    """Turn `value` into a floating array of `ndim` axes with finite entries."""
    result = _floating(name, value, dtype)
    if result.ndim != ndim:
        raise ValueError(f"{name} must have {ndim} axes, but its shape is {result.shape}")
    if known(result):
        every(name, "finite", np.asarray(result), np.isfinite)
    return result


def every(name: str, rule: str, seen: np.ndarray, good: Callable[[np.ndarray], Any]) -> None:
    """Refuse an array by the first of its entries that breaks a rule."""
    bad = ~good(seen)
    if bad.any():
        where = tuple(int(i) for i in np.argwhere(bad)[0])
        raise ValueError(f"{name} must be {rule}, but {entry(where)} is {seen[where]:g}")


def numpy(name: str, value: Any) -> np.ndarray:
    """Whatever NumPy makes of a value, which must be rectangular."""
    try:
        return np.asarray(value)
    except TracerArrayConversionError:
        need_known(name, "give it as a constant", value)
        raise
    except ValueError as ragged:
        raise ValueError(
            f"{name} must be a rectangular array of numbers, but its rows have different lengths"
        ) from ragged


def axes(name: str, value: Any) -> int:
    """How many axes a value has; a traced one says so itself."""
    return (
        value.ndim
        if hasattr(value, "ndim")
        else (numpy(name, value) if known(value) else jnp.asarray(value)).ndim
    )


def columns(name: str, seen: np.ndarray) -> None:
    """Refuse columns, along the first axis, that do not sum to one."""
    sums = seen.sum(axis=0)
    off = np.abs(sums - 1) > mass_tolerance(seen.dtype)
    if off.any():
        where = tuple(int(i) for i in np.argwhere(off)[0])
        which = f"column {where[0] if len(where) == 1 else where}" if where else "its column"
        raise ValueError(f"columns of {name} must sum to 1, but {which} sums to {sums[where]:.15g}")


def _floating(name: str, value: Any, dtype: Any) -> jax.Array:
    if not known(value):
        value = jnp.asarray(value)  # a list may hold traced numbers
    if not isinstance(value, jax.Array):
        value = numpy(name, value)
        if value.dtype.kind not in "fiub" and not jnp.issubdtype(value.dtype, jnp.floating):
            raise ValueError(f"{name} must hold real numbers, but its type is {value.dtype}")
        if value.dtype.itemsize > 8:
            raise ValueError(
                f"{name} must hold numbers of at most 64 bits, but its type is {value.dtype}"
            )
        if value.dtype.kind in "iub":
            value = value.astype(np.float64)
    elif jnp.issubdtype(value.dtype, jnp.complexfloating):
        raise ValueError(f"{name} must hold real numbers, but its type is {value.dtype}")
    target = dtype if dtype is not None else value.dtype
    if not jnp.issubdtype(target, jnp.floating):
        target = np.dtype(np.float64)
    if np.dtype(target).itemsize < 4:  # too few digits for any law, and no LAPACK
        raise ValueError(f"{name} must be float32 or float64, but its type is {np.dtype(target)}")
    if value.dtype == target and isinstance(value, jax.Array):
        return value
    double(name, target)
    return jnp.asarray(value, dtype=target)


def double(name: str, dtype: Any) -> None:
    """Refuse to round double precision to single behind the user's back."""
    if np.dtype(dtype).itemsize == 8 and not jax.config.read("jax_enable_x64"):
        raise ValueError(
            f"{name} must keep its 64 bits, but JAX runs in 32-bit mode and would round it: "
            "call jax.config.update('jax_enable_x64', True) first, or pass float32 arrays"
        )


def entry(index: tuple[int, ...]) -> str:
    """Name one entry of an array in an error."""
    return "its value" if not index else f"entry {index[0] if len(index) == 1 else index}"


def scalar(name: str, value: ArrayLike, **ends: float) -> jax.Array:
    """A finite real number, optionally `> above`, `>= least`, `< below` or `<= most`."""
    if not isinstance(value, jax.Array):
        seen = numpy(name, value)
        if seen.ndim or seen.dtype.kind not in "fiu":
            raise ValueError(f"{name} must be a real number, but it is {shown(value)}")
        # A Python number stays weakly typed, so that it takes on the precision of the network it
        # meets, and known, even under jit.
        with jax.ensure_compile_time_eval():
            value = jnp.asarray(float(seen))
    result = array(name, value, 0)
    if known(result):
        _within(name, float(result), **ends)
    return result


ENDS: dict[str, tuple[str, Callable[[float, float], bool]]] = {
    "above": ("greater than", operator.gt),
    "least": ("at least", operator.ge),
    "below": ("less than", operator.lt),
    "most": ("at most", operator.le),
}


def _within(name: str, value: float, **ends: float) -> None:
    for key, end in ends.items():
        words, good = ENDS[key]
        if not good(value, end):
            raise ValueError(f"{name} must be {words} {end:g}, but it is {value:g}")


def number(name: str, value: ArrayLike, **ends: float) -> float:
    """A finite real number that decides something in Python, and so cannot be traced."""
    need_known(name, "give it as a constant", value)
    if isinstance(value, float) and np.isfinite(value):  # with all its digits, also in 32-bit JAX
        _within(name, value, **ends)
        return float(value)
    return float(scalar(name, value, **ends))


def numbers(name: str, value: Numbers, **ends: float) -> jax.Array:
    """One number as `scalar` takes it, or a row of them, one per pair of an ensemble, each of which
    it would take.
    """
    if axes(name, value) == 0:
        return scalar(name, value, **ends)  # pyright: ignore[reportArgumentType]
    row = array(name, value, 1)
    if row.size == 0:
        raise ValueError(f"{name} must be a number or a row of numbers, but the row is empty")
    if known(row):
        for one in (np.min(np.asarray(row)), np.max(np.asarray(row))):
            scalar(name, float(one), **ends)
    return row


def instance(name: str, value: Any, kind: type[Kind], rule: str = "") -> Kind:
    """An object of the library's own; `rule` says which in other words than its class."""
    if not isinstance(value, kind):
        rule = rule or f"a {kind.__name__}"
        raise ValueError(f"{name} must be {rule}, but it is {shown(value)}")
    return value


def listed(name: str, value: Any) -> list[Any]:
    """The items of a list, or of an array along its first axis."""
    counted = hasattr(value, "__len__") and hasattr(value, "__getitem__")
    if (
        isinstance(value, str | bytes | dict | type)
        or not counted
        or getattr(value, "ndim", 1) == 0
    ):
        raise ValueError(f"{name} must be a list, but it is {shown(value)}")
    return [value[number] for number in range(len(value))]


def count(name: str, value: Any, least: int = 1) -> int:
    """A whole number of at least `least`."""
    return Field(name, low=least, type="whole").check(value)


def index(name: str, value: Any, size: int) -> int:
    """A whole number in [0, size)."""
    return Field(name, low=0, high=size - 1, type="whole").check(value)


def key(value: Any, random: str) -> jax.Array:
    """A random key as two whole numbers; `random` says what needs one."""
    if value is None:
        raise ValueError(
            f"key must be given where {random}, as a whole number or a key of jax.random, but it "
            "is None"
        )
    if isinstance(value, jax.Array) and jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
        return jax.random.key_data(value)
    if isinstance(value, jax.Array) and value.dtype == jnp.uint32 and value.shape == (2,):
        return value
    return jax.random.PRNGKey(count("key", value, 0))


def compositions(
    name: str, value: Numbers, width: int, dtype: Any, *, pairs: int | None = None
) -> jax.Array:
    """Rows of unit mass.

    Non-negative entries that sum to one, `width` of them; for a stack of `pairs`, one table of rows
    each.
    """
    rows = array(name, value, 2 if pairs is None else 3, dtype)
    wanted = ("samples", width) if pairs is None else (pairs, "samples", width)
    if (
        rows.shape[-1] != width
        or rows.shape[-2] == 0
        or (pairs is not None and rows.shape[0] != pairs)
    ):
        shape = ", ".join(map(str, wanted))
        raise ValueError(
            f"{name} must have shape ({shape}) with at least one sample, but its shape is "
            f"{rows.shape}"
        )
    if known(rows):
        seen = np.asarray(rows)
        every(name, "non-negative", seen, lambda one: one >= 0)
        sums = seen.sum(axis=-1)
        off = np.abs(sums - 1) > mass_tolerance(seen.dtype)
        if off.any():
            where = tuple(int(i) for i in np.argwhere(off)[0])
            raise ValueError(
                f"{name} must have rows of unit mass, but row "
                f"{where[0] if pairs is None else where} sums to {sums[where]:.15g}"
            )
    return rows


def same_samples(inputs: jax.Array, targets: jax.Array) -> None:
    """One target for every input."""
    if inputs.shape[0] != targets.shape[0]:
        raise ValueError(
            f"targets must have one row per input, but there are {targets.shape[0]} targets and "
            f"{inputs.shape[0]} inputs"
        )


def finite(what: str, *values: Any) -> None:
    """Refuse to hand out a number that is not one."""
    if known(values):
        for leaf in jax.tree.leaves(values):
            if not np.isfinite(np.asarray(leaf)).all():
                raise ValueError(
                    f"{what} must be finite, but it overflowed or is undefined at this state"
                )
