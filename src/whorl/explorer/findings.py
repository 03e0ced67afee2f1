"""What a preset's numbers say, as one or two sentences whose words follow from the signs."""

import numpy as np

from whorl.explorer.compute import Played
from whorl.explorer.cycle import Orbit
from whorl.explorer.held import Held
from whorl.explorer.wires import Wires


def turning(run: Played) -> str:
    """How far the residual turns, and how the watched loss falls beside the native one."""
    losses = {who: np.sum(run.residual(who) ** 2, axis=1) / 2 for who in ("native", "learner")}
    falls = int(np.sum(np.diff(losses["learner"]) < 0))
    faster = "slower" if losses["learner"][-1] > losses["native"][-1] else "faster"
    return (
        f"Here the residual turns by {turned(run.residual('learner')):.0f}° in {run.made} updates, "
        f"and its loss falls at {falls} of them, {faster} than the native learner's."
    )


def turned(path: np.ndarray) -> float:
    """By how many degrees a path in the plane goes around the origin."""
    angle = np.unwrap(np.arctan2(path[:, 1], path[:, 0]))
    return float(np.degrees(abs(angle[-1] - angle[0])))


def straight(run: Played) -> str:
    """Whether the eigenvalues of the loop stay real."""
    complex_ones = int(np.any(np.abs(np.imag(run.eigenvalues)) > 0, axis=1).sum())
    moments = len(run.eigenvalues)
    return f"Here the eigenvalues are real at {moments - complex_ones} of {moments} moments."


def one_turn(run: Played) -> str:
    """What both senses of the first turn do on average."""
    even = float(run.entries[0, 0])
    return (
        f"Here, at the first update, both senses together land {abs(even):.2g} "
        f"{'lower' if even < 0 else 'higher'} than the straight step."
    )


def account(run: Played) -> str:
    """What turns, steps and states do to the final loss."""
    even, handed, step, drift = run.entries.sum(axis=0)
    gap = float(run.losses[run.state.policy][-1] - run.losses["native"][-1])
    return (
        f"Here the turns by themselves {_moved(even + handed)} the loss by "
        f"{abs(even + handed):.2g}. Other steps than the native ones {_moved(step)} it by "
        f"{abs(step):.2g}, other states {_moved(drift)} it by {abs(drift):.2g}, so that it ends "
        f"{abs(gap):.2g} {'above' if gap > 0 else 'below'} the native learner's."
    )


def _moved(value: float) -> str:
    return "lower" if value < 0 else "raise"


def cycling(orbit: Orbit) -> str:
    """Whether the product of the shares stays, and the circulation beside a gradient's."""
    product = orbit.shares.prod(axis=1)
    here, gradient = orbit.circulations.values()
    return (
        f"Here the product of the shares stays within {np.ptp(product) / product[0]:.0e} of "
        f"itself. The score does {here:.2g} of work per round; that of a gradient does "
        f"{abs(gradient):.0e}."
    )


def lines(wires: Wires) -> str:
    """At which angle the straight lines of the plane meet, if there are any."""
    if not len(wires.straight):
        ways = {float(np.sign(x * v - y * u)) for (x, y), (u, v) in _first_steps(wires)}
        same = "all the same way" if len(ways) == 1 else "not all the same way"
        return f"Here no line is straight, and {wires.paths.shape[1]} residuals turn {same}."
    one, other = wires.straight
    cosine = abs(one @ other) / np.linalg.norm(one) / np.linalg.norm(other)
    angle = np.degrees(np.arccos(min(cosine, 1.0)))
    return f"Here two straight lines meet at an angle of {angle:.3g}°."


def _first_steps(wires: Wires) -> zip:
    return zip(wires.paths[0], wires.paths[1], strict=True)


def meeting(held: Held) -> str:
    """Where the eigenvalues meet, and what the turn gains there."""
    gain = float(held.bounds.turning) / float(held.bounds.reciprocal)
    return (
        f"Here they meet at φ = {np.degrees(held.critical):.3g}°, where the slowest error decays "
        f"{gain:.3g} times as fast as under direct feedback."
    )
