"""What the modes of a closed loop do, in the complex plane."""

from typing import TYPE_CHECKING

import numpy as np

from whorl import _check
from whorl.palette import FAINT
from whorl.plot._canvas import Drawn, canvas, theme
from whorl.reciprocity import Certificate, ClosedLoop, certify

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def eigenvalues(loop: Certificate | ClosedLoop, *, ax: "Axes | None" = None) -> Drawn:
    """Draw the eigenvalues of a closed loop in the complex plane, with the verdict.

    To the right, an error decays faster; left of zero, it grows. Modes off the line rotate, and
    come in pairs; they have another colour and an open mark.

    Args:
        loop: A certificate, or a closed loop, which is certified first.
        ax: Axes to draw on; a new figure if left out.

    Returns:
        The axes that were given, or the new figure.

    Raises:
        ValueError: Where `loop` is neither, or was traced.

    Examples:
        >>> loop = wh.closed_loop(wh.response(net, x, selected=0), wh.rotational(omega=0.5))
        >>> figure = wh.plot.eigenvalues(loop)
    """
    if isinstance(loop, ClosedLoop):
        loop = certify(loop)
    _check.instance("loop", loop, Certificate, "a Certificate or a ClosedLoop")
    values = np.asarray(loop.eigenvalues)
    real, imaginary = np.real(values), np.imag(values)
    size = float(np.abs(values).max(initial=0.0))
    limit = max(loop.tol, loop.roundoff, float(np.finfo(values.dtype).eps)) * size
    turns = np.abs(imaginary) > limit
    axes, drawn = canvas(ax, (4.8, 3.6))
    axes.axhline(0, color=FAINT, linewidth=0.8, zorder=0)
    axes.axvline(0, color=FAINT, linewidth=0.8, zorder=0)
    for name, which, colour, face in (
        ("decays or grows only", ~turns, theme().native, theme().native),
        ("rotates", turns, theme().turning, "none"),
    ):
        if which.any():
            axes.plot(real[which], imaginary[which], "o", color=colour, label=name,
                      markerfacecolor=face, markeredgewidth=1.6, markersize=6, gid=name,
                      zorder=3)  # fmt: skip
    # Zero is always in view, and round-off off the line does not fill the picture.
    reach = float(np.abs(imaginary[turns]).max(initial=0.3 * size)) or 1.0
    low, high = min(0.0, real.min(initial=0.0)), max(0.0, real.max(initial=0.0))
    room = 0.08 * ((high - low) or 1.0)
    axes.set(xlim=(low - room, high + room), ylim=(-1.15 * reach, 1.15 * reach))
    axes.set(xlabel="decay rate (real part)", ylabel="rotation rate (imaginary part)")
    axes.set_title(f"{loop.verdict} ({len(values)} identifiable)")
    if turns.any() and not turns.all():
        axes.legend(frameon=False, fontsize="small")
    axes.spines[["top", "right"]].set_visible(False)
    return drawn
