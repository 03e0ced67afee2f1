"""Formulas are made of characters that mean one thing each."""

import pytest

pytest.importorskip("latex2mathml")
import mathml


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        (r"\mathcal{Q}", "&#x1D4AC;"),
        (r"\mathcal Q", "\U0001d4ac"),
        (r"\mathcal L", "\u2112"),
        (r"J^\mathsf{T}", "\u22a4"),
        (r"J^{\mathsf{T}}", "\u22a4"),
        (r"\mathbf{1}", "\U0001d7cf"),
    ],
)
def test_a_letter_that_looks_like_another_is_another_character(source, shown):
    markup = mathml.rendered(source, "inline")
    assert shown in markup
    assert 'mathvariant="script"' not in markup


def test_the_small_font_has_every_such_character(tmp_path):
    from types import SimpleNamespace

    from fontTools.ttLib import TTFont

    (tmp_path / "_static").mkdir()
    app = SimpleNamespace(builder=SimpleNamespace(format="html"), outdir=str(tmp_path))
    mathml.font(app, None)
    place = tmp_path / "_static" / mathml.FONT
    with TTFont(place) as letters:
        known = letters.getBestCmap() or {}
    assert all(ord(one) in known for one in [*mathml.SCRIPT.values(), mathml.TRANSPOSE])
    assert place.stat().st_size < 60_000
