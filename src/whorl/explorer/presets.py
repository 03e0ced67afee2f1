"""Claims of the paper and of studies, each as a state, a story, an equation and what is found."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from whorl.explorer import findings
from whorl.explorer.state import State


@dataclass(frozen=True)
class Preset:
    """A claim to be seen.

    A story holds for every network or names an idea; what this one network does is found from its
    numbers when they are computed.
    """

    name: str
    title: str
    story: str
    equation: str  # HTML, written here and nowhere else
    finding: Callable[[Any], str]  # from what the page shows to a sentence
    state: State


PRESETS = (
    Preset(
        "turn",
        "Three ports turn",
        "Three outputs leave a plane for the residual, just enough to turn in. An antisymmetric "
        "term at the boundary makes learning "
        "spiral, and the error still falls at every instant, at the rate α, however fast it turns. "
        "Per update its steps are shorter, because they must leave room for the turn.",
        "<var>ė</var> = −(<var>αP</var> + <var>ΩC</var>) <var>e</var>, &nbsp; "
        "<var>C</var><sup>T</sup> = −<var>C</var>, "
        "&nbsp; eigenvalues <var>α</var> ± <var>iΩ</var>",
        findings.turning,
        State(frame=180),
    ),
    Preset(
        "cycle",
        "Conservation is not a gradient",
        "Rock, paper and scissors conserve the total at every moment, yet their shares go round "
        "and round. "
        "Conservation says where a system may move, not that it descends anything.",
        "<var>ṗ</var> = <var>Q</var>(<var>p</var>)<var>s</var>, &nbsp; <var>Q</var> = "
        "diag(<var>p</var>) − <var>pp</var><sup>T</sup>; "
        "&nbsp; a gradient if and only if d<var>ω</var><sub><var>s</var></sub> = 0",
        findings.cycling,
        State(system="rps", start=(6.0, 2.0, 2.0), target=(1.0, 1.0, 1.0), frame=40),
    ),
    Preset(
        "spectral",
        "Spectral feedback cannot turn",
        "Errors that travel back by the matching adjoint and are fed back mode by mode make a "
        "symmetric loop: a preconditioned gradient. "
        "Try direct, repair and leaky: the eigenvalues move, and stay real.",
        "<var>v</var> = <var>r</var>(<var>K</var>)<var>e</var>, &nbsp; "
        "<var>K</var> = <var>JMJ</var><sup>T</sup> = <var>K</var><sup>T</sup> "
        "&nbsp;⟹&nbsp; <var>Kr</var>(<var>K</var>) symmetric",
        findings.straight,
        State(law="leaky", leak=0.1, imbalance=2.0, seed=12, scale=0.3, frame=180),
    ),
    Preset(
        "helps",
        "Same turn, Q below zero",
        "One column starts where the map is blue: averaged over both senses, a turn lands lower "
        "than the straight step. The start is an example of the paper.",
        "½(<var>L</var><sub>+</sub> + <var>L</var><sub>−</sub>) − <var>L</var><sub>0</sub> = "
        "<var>η</var>²<var>Ω</var>²<b>Q</b>, &nbsp; "
        "<b>Q</b> = (‖<var>G</var>‖² − "
        "<var>e</var><sup>T</sup><var>H</var><sub><var>V</var></sub>)/2<var>N</var>",
        findings.one_turn,
        State(
            system="column",
            start=(1.0, 1.0, 8.0),
            target=(3.0, 4.0, 3.0),
            omega=1.0,
            turn="alternating",
            gate="curvature",
        ),
    ),
    Preset(
        "hurts",
        "Same turn, Q above zero",
        "The same turn from the centre, where the map is orange: both senses together land higher "
        "than the straight step. The turn is the same, the place is not.",
        "½(<var>L</var><sub>+</sub> + <var>L</var><sub>−</sub>) − <var>L</var><sub>0</sub> = "
        "<var>η</var>²<var>Ω</var>²<b>Q</b>, &nbsp; "
        "<b>Q</b> = (‖<var>G</var>‖² − "
        "<var>e</var><sup>T</sup><var>H</var><sub><var>V</var></sub>)/2<var>N</var>",
        findings.one_turn,
        State(
            system="column",
            start=(1.0, 1.0, 1.0),
            target=(5.0, 3.0, 2.0),
            omega=1.0,
            turn="alternating",
        ),
    ),
    Preset(
        "drift",
        "Local gain, lost in the end",
        "Turns are taken only where curvature allows them. A turn needs room, which shortens "
        "steps, and leads to other states. The ledger says what each of these does to the final "
        "loss: turns (even, handedness), steps and states (drift).",
        "<var>L</var><sup>NR</sup> − <var>L</var><sup>R</sup> = "
        "Σ<sub><var>t</var></sub> (<var>E</var> + <var>H</var> + <var>S</var> + <var>D</var>)",
        findings.account,
        State(
            depth=4,
            imbalance=4.0,
            leak=0.1,
            omega=1.0,
            gate="curvature",
            turn="fair",
            shown="all",
            scale=0.2,
            seed=35,
            frame=180,
        ),
    ),
    Preset(
        "propagation",
        "Equilibrium propagation goes straight",
        "A circuit is pushed at its outputs by currents in proportion to the error, and compares "
        "its drops with those at rest. Two directions of the residual fall along straight lines at "
        "right angles: the loop is symmetric, and learning follows a gradient.",
        "<var>ġ</var> = <var>J</var><sup>T</sup><var>e</var> &nbsp;⟹&nbsp; "
        "<var>ė</var> = −<var>Ke</var>, &nbsp; <var>K</var> = <var>K</var><sup>T</sup>",
        findings.lines,
        State(system="circuit", seed=180, frame=60),
    ),
    Preset(
        "coupled",
        "Coupled learning bends",
        "The outputs of the same circuit are held a little nearer to their targets. The straight "
        "lines are still there, but no longer at right angles: learning follows a gradient in "
        "another metric, that of the output impedance, and does not turn.",
        "<var>ė</var> = −<var>KZ</var><sup>−1</sup><var>e</var>, &nbsp; "
        "real eigenvalues, &nbsp; <var>Z</var><sup>−1</sup><var>KZ</var><sup>−1</sup> symmetric",
        findings.lines,
        State(system="circuit", rule="coupled_learning", seed=180, frame=60),
    ),
    Preset(
        "alignment",
        "Feedback alignment can turn",
        "The error travels back through another circuit, fixed and random. Then the loop need not be "
        "symmetric: learning may bend, and where no straight line is left, every residual turns.",
        "<var>ė</var> = −<var>JJ</var><sub>0</sub><sup>T</sup><var>e</var>, &nbsp; "
        "<var>J</var><sub>0</sub> ≠ <var>J</var>: &nbsp; eigenvalues may be complex",
        findings.lines,
        State(system="circuit", rule="feedback_alignment", seed=180, frame=60),
    ),
    Preset(
        "critical",
        "The critical turn",
        "A network is held still, and a law of gain one turns every error by φ before it is fed "
        "back. Drag the angle: two eigenvalues come closer at a constant product, meet, and part "
        "as a pair. Where they meet, the slowest error decays fastest, at their geometric mean; "
        "direct feedback (φ = 0), the fastest symmetric law of this gain, is as slow as the "
        "smaller one.",
        "cos <var>φ</var>* = 2√(<var>λ</var><sub>1</sub><var>λ</var><sub>2</sub>) / "
        "(<var>λ</var><sub>1</sub> + <var>λ</var><sub>2</sub>), &nbsp; "
        "<var>a</var>(<var>φ</var>) ≤ <var>a</var>(<var>φ</var>*) = "
        "√(<var>λ</var><sub>1</sub><var>λ</var><sub>2</sub>), &nbsp; "
        "<var>a</var>(0) = <var>λ</var><sub>2</sub>",
        findings.meeting,
        State(system="held", imbalance=2.0, frame=72),
    ),
)
BY_NAME = {preset.name: preset for preset in PRESETS}


def found(state: State, seen: Any) -> str:
    """What is found where a state is that of a preset, and nothing elsewhere."""
    shown = [one for one in PRESETS if one.state.still() == state.still()]
    return shown[0].finding(seen) if shown else ""
