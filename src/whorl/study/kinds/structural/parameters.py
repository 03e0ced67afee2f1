"""Which parameters of a structural study fit together."""

from dataclasses import dataclass

from whorl.study.parameters import Fault, Parameters

STEEPEST = 5  # steps, in leaks: a residual out of reach is amplified by step / leak


@dataclass(frozen=True, kw_only=True)
class Structural(Parameters):
    """What must hold of several parameters of a structural study."""

    def together(self) -> Fault | None:
        """A step is bounded by the leak."""
        most = STEEPEST * self.leak
        if self.step > most:
            return "step", f"step must be at most {STEEPEST} times leak, {most:g}", self.step
        return None
