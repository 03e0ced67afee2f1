"""Texts that look like somebody's design file, more or less."""

import json

from hypothesis import strategies as st

SIGNS = [
    "[[",
    "]]",
    "=",
    '"',
    "'''",
    "{",
    "}",
    "\n",
    "\r",
    "\t",
    ",",
    ".",
    "#",
    "\\u0000",
    "\u2028",
    "\x00",
]
NUMBERS = [
    "0",
    "1",
    "-1",
    "0.5",
    "0x",
    "1e9999",
    "nan",
    "-inf",
    "1979-05-27",
    "9" * 30,
    "1" * 5000,
    "true",
    "[]",
    "{}",
    '""',
    "[[1], 2]",
]


def pieces(words):
    return st.sampled_from([*words, *SIGNS, *NUMBERS])


def soups(words):
    """Words in any order, any text, and any bytes."""
    soup = st.lists(pieces(words), max_size=40).map(" ".join)
    return st.one_of(
        st.binary(max_size=200), soup.map(str.encode), st.text(max_size=200).map(str.encode)
    )


@st.composite
def mutations(draw, sources, words):
    """A sound text with a few pieces replaced, taken out or put in."""
    source = draw(st.sampled_from(sources))
    for _ in range(draw(st.integers(1, 4))):
        at, many = draw(st.integers(0, len(source))), draw(st.integers(0, 12))
        new = draw(st.one_of(pieces(words), st.text(max_size=4)))
        source = source[:at] + new + source[at + many :]
    return source.encode(errors="replace")


@st.composite
def shuffled(draw, sources):
    """A sound text with lines lost, doubled or moved."""
    lines = draw(st.sampled_from(sources)).splitlines()
    for _ in range(draw(st.integers(1, 3))):
        at, to = (draw(st.integers(0, len(lines) - 1)) for _ in range(2))
        lines[to : to + draw(st.integers(0, 1))] = [lines[at]] * draw(st.integers(0, 2))
        lines = lines or [""]
    return "\n".join(lines).encode()


def plain(entry):
    """TOML of a number, a word, a list or a table."""
    if isinstance(entry, dict):
        return "{ " + ", ".join(f"{key} = {plain(value)}" for key, value in entry.items()) + " }"
    if isinstance(entry, list):
        return "[" + ", ".join(map(plain, entry)) + "]"
    return str(entry).lower() if isinstance(entry, bool | float) else json.dumps(entry)


NUMBER = st.one_of(
    st.integers(-3, 12),
    st.integers(),
    st.floats(0, 1),
    st.floats(),
    st.sampled_from([1e308, 5e-324, 2**63 - 1, 2**63, 10**400]),
)
WORD = st.sampled_from(["adaptive", "native", "permuted", "own", "stated", "PASS", "", "x" * 600])
VALUES = st.one_of(
    NUMBER,
    st.booleans(),
    WORD,
    st.lists(st.one_of(NUMBER, WORD), max_size=4),
    st.fixed_dictionaries(
        {"from": NUMBER, "to": NUMBER}, optional={"log": st.booleans(), "value": NUMBER}
    ),
)


@st.composite
def other_values(draw, sources):
    """A sound text in which some keys have other values, of any type."""
    lines = draw(st.sampled_from(sources)).splitlines()
    places = [
        number for number, line in enumerate(lines) if " = " in line and not line.startswith("#")
    ]
    for at in draw(st.lists(st.sampled_from(places), min_size=1, max_size=4)):
        key, _, rest = lines[at].partition(" = ")
        value = plain(draw(VALUES))
        lines[at] = (
            f'{key} = {{ value = {value}, origin = "own" }}'
            if rest.startswith("{ value") and draw(st.booleans())
            else f"{key} = {value}"
        )
    return "\n".join(lines).encode()
