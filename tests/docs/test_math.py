"""Formulas are made of characters that mean one thing each."""

import re

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


@pytest.mark.parametrize("source", [r"\| e \|^2", r"\lVert e \rVert", r"\lvert e_i \rvert", "|e|"])
def test_bars_around_a_norm_do_not_grow_and_open_and_close(source):
    markup = mathml.rendered(source, "inline")
    assert re.findall('<mo stretchy="false" form="([a-z]+)">', markup) == ["prefix", "postfix"]


def test_the_small_fonts_have_every_such_character(tmp_path):
    from types import SimpleNamespace

    from fontTools.ttLib import TTFont

    (tmp_path / "_static").mkdir()
    app = SimpleNamespace(builder=SimpleNamespace(format="html"), outdir=str(tmp_path))
    mathml.fonts(app, None)
    script, whole = (tmp_path / "_static" / name for name in mathml.FONTS)
    with TTFont(script) as letters:
        known = letters.getBestCmap() or {}
    assert all(ord(one) in known for one in mathml.SCRIPT.values())
    assert script.stat().st_size < 60_000
    pytest.importorskip("ziamath")
    with TTFont(whole) as letters:
        known = letters.getBestCmap() or {}
        assert "MATH" in letters  # how large a sum is, and how far below it its limits lie
    assert all(ord(one) in known for one in mathml.SIGNS)
    assert whole.stat().st_size < 250_000
