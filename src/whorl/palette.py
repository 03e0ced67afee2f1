"""What a colour means: the same on every picture and every page.

Colours of data are Okabe and Ito's or close to them: each pair that must be told apart differs for
every kind of colour vision, and a marker, a line style or a word repeats what a colour says. Blue
beside purple does not: the two are one colour to some eyes. Only the illustration has both, because
the caption of the paper's first figure names them, with line styles and markers.
"""

from dataclasses import dataclass, fields

BLUE, VERMILION, GREEN = "#0072b2", "#d55e00", "#009e73"
GOLD, PURPLE, SKY = "#e69f00", "#aa4499", "#56b4e9"
INK, GREY, FAINT, PALE = "#1a1a1a", "#767676", "#bbbbbb", "#e8e8e8"
# Of series that mean nothing but their number: colour, marker, line style.
SERIES = (BLUE, VERMILION, GREEN, GOLD, PURPLE, SKY, INK, GREY)
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "p")
LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)), (0, (8, 2)), (0, (3, 3)))


@dataclass(frozen=True)
class Data:
    """Colours of what was computed or measured."""

    native: str  # the reciprocal learner, a straight path
    turning: str  # a turn, a learner that turns, the adaptive policy
    matched: str  # the step-matched policy
    other: str  # what is compared with: a random direction, somebody else's value
    wrong: str  # a wrong prediction
    quiet: str  # the rest

    @property
    def helps(self) -> str:
        """Where a turn helps, and what lowers a loss."""
        return self.native

    @property
    def hurts(self) -> str:
        """Where a turn hurts, and what raises a loss."""
        return self.turning


@dataclass(frozen=True)
class Theme(Data):
    """Colours of a page and of what is drawn on it."""

    ink: str
    soft: str  # of words that matter less
    line: str
    ground: str  # of the page
    paper: str  # of what lies on it
    link: str
    good: str  # a pass
    good_tint: str
    bad: str  # a failure, and what was not verified
    bad_tint: str
    warn: str  # a failure that was expected, and what was not registered
    warn_tint: str
    calm_tint: str
    streams: tuple[str, ...]
    scale: tuple[tuple[float, str], ...]  # from what helps most to what hurts most

    @property
    def css(self) -> str:
        """The colours as custom properties of a style sheet."""
        named = {one.name.replace("_", "-"): getattr(self, one.name) for one in fields(self)}
        return " ".join(f"--{name}: {value};" for name, value in named.items() if value[0] == "#")


LIGHT = Theme(
    native=BLUE,
    turning=VERMILION,
    matched="#007a59",
    other=GOLD,
    wrong=PURPLE,
    quiet=GREY,
    ink="#1c2024",
    soft="#59626c",
    line="#dcd9d1",
    ground="#fbfaf7",
    paper="#ffffff",
    link="#1f5f9e",
    good="#1b7340",
    good_tint="#e7f3ea",
    bad="#b3261e",
    bad_tint="#fbe9e7",
    warn="#8a5200",
    warn_tint="#fdf1dc",
    calm_tint="#eceef0",
    streams=(BLUE, GOLD, GREEN, "#cc79a7", SKY, "#8a6d00"),
    scale=((0, "#08519c"), (0.25, "#6baed6"), (0.5, "#f7f7f5"), (0.75, "#fdae6b"), (1, "#b34700")),
)
DARK = Theme(
    native=SKY,
    turning="#f0883e",
    matched="#2fc59a",
    other="#d9b44a",
    wrong="#d98acb",
    quiet="#9aa2aa",
    ink="#e6e4df",
    soft="#a7adb4",
    line="#363b41",
    ground="#16181b",
    paper="#1e2125",
    link="#8fbdec",
    good="#74cc92",
    good_tint="#1b2c21",
    bad="#ff9188",
    bad_tint="#3a1f1d",
    warn="#f0b960",
    warn_tint="#35290f",
    calm_tint="#26292e",
    streams=(SKY, GOLD, "#2fc59a", "#e29ac2", "#9bd3f5", "#c9a83a"),
    scale=((0, "#6baed6"), (0.25, "#2c6aa3"), (0.5, "#222c36"), (0.75, "#b3611d"), (1, "#fdae6b")),
)
# On light and on dark ground alike, for pictures that cannot know on which they will lie.
BOTH = Data("#3a7fc4", "#cf6f17", "#14906b", "#a88400", "#b0569f", "#8b939b")
