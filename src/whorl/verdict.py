"""The verdicts on a learner, each with its word, colour and exit code.

A loop that is not symmetric need not turn. whorl distinguishes a loop that is symmetric in the
metric of the outputs, one that a change of metric makes symmetric, and one whose modes rotate.
Three more verdicts say why there is no answer.
"""

from enum import StrEnum

from whorl.palette import BOTH


class Verdict(StrEnum):
    """The finding in a word, which is also its value.

    Examples:
        >>> wh.Verdict.TURNS, wh.Verdict.TURNS.code, wh.Verdict("reciprocal").follows
        ('turns', 1, True)
    """

    colour: str  # for pages and pictures, legible on light and on dark
    code: int  # with which `whorl certify --exit-code` ends; without it every verdict ends with 0
    meaning: str

    # symmetric in the metric of the outputs
    RECIPROCAL = "reciprocal", BOTH.native, 0, "it follows a gradient"
    # real spectrum and diagonalisable: some G > 0 makes G R symmetric
    GRADIENT = (
        "gradient in another metric",
        BOTH.matched,
        3,
        "it follows a gradient once distances are measured differently, and no mode turns",
    )
    # complex eigenvalues
    TURNS = "turns", BOTH.turning, 1, "some of its modes rotate"
    # not symmetric, and on the edge between the last two: nearly defective, or within the noise
    BORDERLINE = (
        "borderline",
        BOTH.wrong,
        4,
        "it is not symmetric, and whether a mode turns is decided by less than can be known",
    )
    # symmetric is not rejected, and a skew part that matters would hardly have been seen
    INCONCLUSIVE = (
        "inconclusive",
        BOTH.quiet,
        4,
        "nothing is rejected, and a turn that matters would hardly have been seen",
    )
    # round-off hides even the skew part, or a periodic signal drives the states of a series
    CANNOT_TELL = "cannot tell", BOTH.quiet, 4, "what decides is hidden"

    def __new__(cls, word: str, colour: str, code: int, meaning: str) -> "Verdict":
        """A text with what belongs to it."""
        made = str.__new__(cls, word)
        made._value_ = word
        made.colour, made.code, made.meaning = colour, code, meaning
        return made

    @property
    def follows(self) -> bool:
        """Whether the learner is found to follow a gradient, in whatever metric."""
        return self in (Verdict.RECIPROCAL, Verdict.GRADIENT)

    def __repr__(self) -> str:
        return repr(self.value)
