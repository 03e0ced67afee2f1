r"""Imperfect devices: mismatched ways back, noise, and restricted parameters.

Six things go wrong with devices, and each is given by its size; what is left out is perfect.

| name | what happens |
|---|---|
| `back`, `mismatch` | the way back is that of other blocks: given ones, or the own ones times $e^{\sigma\varepsilon}$ |
| `output_noise` | $\sigma\varepsilon$ is added to every output, in the directions that can be reached |
| `score_noise` | every score is multiplied by $1 + \sigma\varepsilon$ |
| `solve_noise` | the potential that arrives at the outputs is multiplied by $1 + \sigma\varepsilon$ |
| `frozen` | this share of the columns (of a simplex) or numbers does not move |
| `quantum` | blocks stand on a grid of this size in the coordinates of their charts: logarithms of shares and positive numbers |
| `stale` | the way back is that of the state so many updates ago |

Every $\varepsilon$ is standard normal, from a random stream of its own: one source never changes
what another draws. Mismatch and frozen parameters are drawn once, when the device is made; noise is
drawn anew at every state, since `with_blocks` counts on, and stays while a state is looked at. So
everything is a function of key and state, and all learning loops take it.

The response is $\tilde K = J M D_s \tilde J^\mathsf{T} D_v$ with diagonal noise $D$ and the way
back $\tilde J$. It is not symmetric, and the certificate sees it; noise of the outputs moves the
residual and no loop, and what is frozen takes identifiable directions away.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Int

from whorl import _check
from whorl._check import Numbers
from whorl.geometry import Block, Simplex
from whorl.registry import systems
from whorl.system import Blocks, Fields, System, Trace
from whorl.systems._wrapped import Wrapped

# The number of a source is its random stream: it never changes.
STREAMS = {"mismatch": 0, "output_noise": 1, "score_noise": 2, "solve_noise": 3, "frozen": 4}


@systems.register("imperfect")
class Imperfect(Wrapped):
    """A device: any system together with its faults.

    `key` is a whole number or a key of `jax.random`; it is needed where something is random. See
    the table of `whorl.systems.imperfect` for the rest.

    Raises:
        ValueError: Where a size is out of range, `back` does not fit the system, or a random source
            has no key.

    Examples:
        >>> device = wh.Imperfect(net, mismatch=0.3, key=0)
        >>> wh.certify(wh.closed_loop(wh.response(device, x), wh.direct())).reciprocal
        False
        >>> perfect = wh.Imperfect(net)
        >>> wh.certify(wh.closed_loop(wh.response(perfect, x), wh.direct())).reciprocal
        True
    """

    key: Array  # as two whole numbers, so that loops can choose between states
    count: Int[Array, ""]  # states so far
    given: tuple[Block, ...] | None  # blocks of a way back of its own
    gains: tuple[Block, ...] | None  # of the way back
    frozen: tuple[Bool[Array, "..."], ...] | None
    past: tuple[tuple[Block, ...], ...]  # the states that the way back waits for, oldest first
    output_noise: float = eqx.field(static=True)
    score_noise: float = eqx.field(static=True)
    solve_noise: float = eqx.field(static=True)
    quantum: float = eqx.field(static=True)

    def __init__(
        self,
        system: System,
        *,
        key: Any = None,
        back: System | None = None,
        mismatch: float = 0.0,
        output_noise: float = 0.0,
        score_noise: float = 0.0,
        solve_noise: float = 0.0,
        frozen: float = 0.0,
        quantum: float = 0.0,
        stale: int = 0,
    ) -> None:
        _check.instance("system", system, System)
        sizes = {
            "mismatch": mismatch,
            "output_noise": output_noise,
            "score_noise": score_noise,
            "solve_noise": solve_noise,
            "frozen": frozen,
        }
        found = {name: _check.number(name, size, least=0.0) for name, size in sizes.items()}
        _check.number("frozen", found["frozen"], below=1.0)
        random = [name for name, size in found.items() if size]
        given = 0 if key is None and not random else key
        self.key = _check.key(given, f"{random[0]} is" if random else "")
        self.count = jnp.zeros((), dtype=jnp.int32)
        self.output_noise, self.score_noise = found["output_noise"], found["score_noise"]
        self.solve_noise = found["solve_noise"]
        self.quantum = _check.number("quantum", quantum, least=0.0)
        self.system = _on_grid(system, self.quantum)
        self.given = None if back is None else _checked_back(system, back)
        self.gains = self._drawn_gains(found["mismatch"]) if found["mismatch"] else None
        self.frozen = self._drawn_ice(found["frozen"]) if found["frozen"] else None
        self.past = (self.system.blocks,) * _check.count("stale", stale, 0)

    @property
    def sizes(self) -> tuple[int, int]:
        """Those of the inner system."""
        return self.system.sizes

    @property
    def block_rates(self) -> tuple[ArrayLike, ...]:
        """The rates of the inner system, zero where parameters are frozen."""
        if self.frozen is None:
            return self.system.block_rates
        parts = zip(self.frozen, self.system.block_rates, strict=True)
        return tuple(jnp.where(still, 0.0, rate).astype(self.dtype) for still, rate in parts)

    def with_blocks(self, blocks: Blocks) -> "Imperfect":
        """The device at its next state, on its grid; what was the state is one update older."""
        moved = _on_grid(self.system.with_blocks(blocks), self.quantum)
        past = (*self.past[1:], self.system.blocks) if self.past else ()
        return eqx.tree_at(
            lambda device: (device.system, device.count, device.past),
            self,
            (moved, self.count + 1, past),
        )

    @property
    def matched(self) -> bool:
        """Whether nothing is wrong between outputs and parameters."""
        wrong = self.given is not None or self.gains is not None or bool(self.past)
        return self.system.matched and not (wrong or self.score_noise or self.solve_noise)

    def basis(self) -> Float[np.ndarray, "out e"]:
        """The directions of the inner system."""
        return self.system.basis()

    def checked_targets(self, targets: Numbers) -> Fields:
        """Targets that fit the inner system."""
        return self.system.checked_targets(targets)

    def trace(self, inputs: Array) -> Trace:
        """The inner trace, and the outputs as they are measured."""
        inner = self.system.trace(inputs)
        return inputs, inner, self._measured(inner[-1])

    def forward(self, trace: Trace, velocities: Blocks) -> Fields:
        r"""How the outputs move, without their noise: $J\dot\theta$."""
        return self.system.forward(trace[1], velocities)

    def back(self, trace: Trace, potential: Fields) -> tuple[Block, ...]:
        r"""The slope that arrives: $\tilde J^\mathsf{T} D_v v$."""
        if self.solve_noise:
            potential = potential * self._gain("solve_noise", 0, potential.shape)
        return self._behind().back(trace[1], potential)

    def scores_of(self, slopes: Blocks) -> tuple[Block, ...]:
        """The score that answers a slope, with the noise of the scores."""
        scores = super().scores_of(slopes)
        if not self.score_noise:
            return scores
        return tuple(
            score * self._gain("score_noise", number, score.shape)
            for number, score in enumerate(scores)
        )

    def jet(self, inputs: Array, scores: Blocks) -> tuple[Fields, Fields, Fields]:
        outputs, first, second = self.system.jet(inputs, scores)
        return self._measured(outputs), first, second

    def _measured(self, outputs: Fields) -> Fields:
        if not self.output_noise:
            return outputs
        basis = jnp.asarray(self.basis(), dtype=self.dtype)
        drawn = self._normal("output_noise", 0, (outputs.shape[0], basis.shape[1]))
        return outputs + self.output_noise * drawn @ basis.T

    def _behind(self) -> System:
        """The inner system as the way back knows it."""
        if self.given is None and self.gains is None and not self.past:
            return self.system
        blocks = self.past[0] if self.past else self.system.blocks
        blocks = blocks if self.given is None else self.given
        if self.gains is not None:
            blocks = tuple(gain * part for gain, part in zip(self.gains, blocks, strict=True))
        return self.system.with_blocks(blocks)

    def _gain(self, source: str, number: int, shape: tuple[int, ...]) -> Array:
        return 1 + getattr(self, source) * self._normal(source, number, shape)

    def _normal(self, source: str, number: int, shape: tuple[int, ...]) -> Array:
        """Fresh numbers for one array of one source at this state."""
        stream = jax.random.fold_in(jax.random.fold_in(self.key, STREAMS[source]), self.count)
        return jax.random.normal(jax.random.fold_in(stream, number), shape, dtype=self.dtype)

    def _drawn_gains(self, size: float) -> tuple[Block, ...]:
        parts = enumerate(self.system.blocks)
        return tuple(
            jnp.exp(size * self._normal("mismatch", number, part.shape)) for number, part in parts
        )

    def _drawn_ice(self, share: float) -> tuple[Bool[Array, "..."], ...]:
        """What does not move: the nearest whole number of all columns or numbers of a block."""
        masks = []
        for number, (kind, part) in enumerate(zip(self.geometries, self.blocks, strict=True)):
            shape = (1, *part.shape[1:]) if isinstance(kind, Simplex) else part.shape
            drawn = self._normal("frozen", number, (int(np.prod(shape)),))
            order = jnp.argsort(jnp.argsort(drawn))
            masks.append((order < round(share * drawn.size)).reshape(shape))
        return tuple(masks)


def _on_grid(system: System, quantum: float) -> System:
    """The system whose blocks stand on the grid, next to where they are."""
    if not quantum:
        return system
    moved = []
    for kind, part in zip(system.geometries, system.blocks, strict=True):
        chart = kind.chart(part)
        if isinstance(kind, Simplex):
            # Logarithms of shares mean something up to a constant: that of the largest is zero.
            chart = chart - jnp.max(jnp.where(part > 0, chart, -jnp.inf), axis=0, keepdims=True)
        near = kind.point(part, jnp.round(chart / quantum) * quantum)
        # A grid has no slope. Derivatives are those of the device between its steps.
        moved.append(part + jax.lax.stop_gradient(near - part))
    return system.with_blocks(moved)


def _checked_back(system: System, back: System) -> tuple[Block, ...]:
    _check.instance("back", back, System)
    shapes, wanted = ([part.shape for part in one.blocks] for one in (back, system))
    if shapes != wanted:
        raise ValueError(f"back must have blocks of the shapes {wanted}, but it has {shapes}")
    return tuple(part.astype(system.dtype) for part in back.blocks)
