"""Which parameters of a budgets study fit together."""

from dataclasses import dataclass

from whorl.study.parameters import Fault, Parameters


@dataclass(frozen=True, kw_only=True)
class Budgets(Parameters):
    """What must hold of several parameters of a budgets study."""

    def together(self) -> Fault | None:
        """Lists of updates that do not grow, and a width whose directions do not pair."""
        for name in ("updates", "joint_updates", "robust_updates"):
            marks = getattr(self, name)
            if marks != sorted(marks):
                return name, f"{name} must grow", marks
        return ("wide", "wide must be odd", self.wide) if self.wide % 2 == 0 else None
