"""A claim is true of what is on the screen: computed from the data that the browser plots."""

import base64
import re

import numpy as np
import pytest

from explorer.browser import settled, until
from whorl.explorer.presets import BY_NAME, PRESETS

pytestmark = [
    pytest.mark.browser,
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
PLOTTED = """(name) => document.getElementById(`plot-${name}`).data.map((trace) => ({
  name: trace.name, mode: trace.mode, opacity: trace.opacity,
  x: trace.x && (trace.x.bdata ? trace.x : Array.from(trace.x)), y: trace.y && (trace.y.bdata ? trace.y : Array.from(trace.y)),
}))"""
CAPTION = "(name) => document.getElementById(`plot-${name}`).layout.annotations[0].text"
SHOWN = (
    "() => [...document.querySelectorAll('.view:not([hidden])')].map((view) => view.id.slice(5))"
)


@pytest.fixture(scope="module")
def page(server, chrome):
    page = chrome.new_page(viewport={"width": 1440, "height": 900})
    page.goto(server[0])
    settled(page)
    yield page
    page.close()


def opened(page, name):
    page.click(f'[data-preset="{name}"]')
    settled(page)


def numbers(given):
    if isinstance(given, dict):
        return np.frombuffer(base64.b64decode(given["bdata"]), dtype=given["dtype"])
    return np.asarray(given, dtype=float)


def plotted(page, view, **wanted):
    (trace,) = (
        one
        for one in page.evaluate(PLOTTED, view)
        if all(one.get(key) == value for key, value in wanted.items())
    )
    return numbers(trace["y"])


def path(page, view, name):
    """A whole path, which is drawn faintly, as complex numbers."""
    (trace,) = (
        one
        for one in page.evaluate(PLOTTED, view)
        if one["name"] == name and one["opacity"] == 0.35
    )
    return numbers(trace["x"]) + 1j * numbers(trace["y"])


def test_three_ports_turn_and_the_error_falls_at_every_update(page):
    opened(page, "turn")
    for name in ("native", "adaptive"):
        assert np.all(np.diff(plotted(page, "loss", name=name, mode="lines")) < 0)
    assert page.evaluate(CAPTION, "spiral") == "eigenvalues  1 ± 3 i"


def test_spectral_feedback_stays_real_and_the_loss_that_it_minimises_falls(page):
    opened(page, "spectral")
    assert np.all(np.diff(plotted(page, "loss", name="native", mode="lines")) < 0)
    assert "i" not in page.evaluate(CAPTION, "spiral").removeprefix("eigenvalues")
    assert "effect" not in page.evaluate(SHOWN)


@pytest.mark.parametrize(("name", "sign"), [("helps", -1), ("hurts", 1)])
def test_the_same_turn_lands_lower_or_higher_on_average(page, name, sign):
    opened(page, name)
    (bars,) = page.evaluate(PLOTTED, "effect")
    taken, opposite, mean = numbers(bars["x"])
    assert mean == pytest.approx((taken + opposite) / 2, rel=1e-5)
    assert sign * mean > 0
    assert BY_NAME[name].state.frame == 0


def test_turns_gain_by_themselves_and_step_and_drift_cost_more(page):
    opened(page, "drift")
    (bars,) = page.evaluate(PLOTTED, "ledger")
    native, even, handed, step, drift, adaptive = numbers(bars["x"])
    assert even < 0
    assert handed < 0
    assert step + drift > -(even + handed)
    assert native + even + handed + step + drift == pytest.approx(adaptive, rel=1e-4)


def test_a_cycle_comes_back_and_loses_nothing(page):
    opened(page, "cycle")
    rock, paper, scissors = (
        plotted(page, "loss", name=name, mode="lines") for name in ("rock", "paper", "scissors")
    )
    np.testing.assert_allclose(rock + paper + scissors, 1, atol=1e-6)
    product = rock * paper * scissors
    np.testing.assert_allclose(product, product[0], rtol=1e-4)
    assert "many" not in page.evaluate(SHOWN)


def test_a_preset_goes_out_when_its_settings_are_left_and_back_brings_it_again(page):
    opened(page, "drift")
    lit = "() => [...document.querySelectorAll('.preset[aria-pressed=true]')].map((one) => one.dataset.preset)"
    assert page.evaluate(lit) == ["drift"]
    page.select_option("#c-turn", "plus")
    assert page.evaluate(lit) == []
    assert page.evaluate(
        "() => [...document.querySelectorAll('.story')].every((one) => one.hidden)"
    )
    assert page.evaluate("() => document.querySelectorAll('.view.stale').length") > 0
    settled(page)
    assert page.evaluate("() => document.querySelectorAll('.view.stale, .view.late').length") == 0
    page.go_back()
    settled(page)
    assert page.evaluate(lit) == ["drift"]
    page.go_forward()
    settled(page)
    assert page.input_value("#c-turn") == "plus"


def test_an_invalid_field_is_marked_blocks_no_other_system_and_is_not_shared(page):
    opened(page, "helps")
    page.fill("#c-start", "1,banana,8")
    page.dispatch_event("#c-start", "change")
    until(page, "() => document.getElementById('refusal').textContent !== ''")
    assert page.get_attribute("#c-start", "aria-invalid") == "true"
    page.click("#copy")
    assert "cannot be shared" in page.inner_text("#status")
    page.select_option("#c-system", "family")
    settled(page)
    assert page.inner_text("#refusal") == ""
    assert page.input_value("#c-start") == "1,1,8"


@pytest.mark.parametrize(
    ("name", "kind"),
    [("propagation", "square"), ("coupled", "bent"), ("alignment", "none")],
)
def test_a_rule_has_straight_lines_at_right_angles_or_bent_or_none(page, name, kind):
    opened(page, name)
    drawn = page.evaluate(PLOTTED, "spiral")
    lines = [
        complex(np.diff(numbers(one["x"]))[0], np.diff(numbers(one["y"]))[0])
        for one in drawn
        if one["name"] == "straight"
    ]
    paths = [
        numbers(one["x"]) + 1j * numbers(one["y"])
        for one in drawn
        if one["opacity"] == 0.35 and one["name"] == "residual"
    ]
    turned = np.array([np.ptp(np.unwrap(np.angle(one))) for one in paths])
    if kind == "none":
        assert lines == []
        ways = {tuple(np.sign(np.diff(np.unwrap(np.angle(one))))) for one in paths}
        assert len(ways) == 1
        return
    one, other = (line / abs(line) for line in lines)
    cosine = abs((one * other.conjugate()).real)
    assert cosine < 1e-9 if kind == "square" else 0.1 < cosine < 0.99
    assert (turned < np.pi).all()


def test_two_eigenvalues_meet_where_the_rate_is_largest(page):
    opened(page, "critical")
    slow, fast = (path(page, "simplex", name) for name in ("slower", "faster"))
    weak, strong = slow[0].real, fast[0].real
    meeting = np.degrees(np.arccos(2 * np.sqrt(weak * strong) / (weak + strong)))
    rate = path(page, "spiral", "rate")
    degrees, rates = rate.real, rate.imag
    gaps = np.abs(fast - slow)
    assert abs(degrees[np.argmin(gaps)] - meeting) <= degrees[1]
    assert abs(degrees[np.argmax(rates)] - meeting) <= degrees[1]
    assert rates.max() <= np.sqrt(weak * strong)
    assert rates.max() > 0.99 * np.sqrt(weak * strong)
    assert rates[0] == pytest.approx(plotted(page, "spiral", name="direct")[0])
    assert page.inner_text("#clock") == "Angle"
    # The page opens where they meet, and the keyboard alone moves the angle.
    assert abs(float(page.inner_text("#frame-value").rstrip("°")) - meeting) < degrees[1]
    page.focus("#frame")
    page.keyboard.press("End")
    assert page.inner_text("#frame-value") == "90°"
    assert abs(plotted(page, "spiral", name="rate", mode="markers")[0]) < 1e-6
    page.keyboard.press("Home")
    settled(page)
    assert "reciprocal" in page.inner_text("#verdicts").splitlines()[0]


BOXES = """() => [...document.querySelectorAll('.view:not([hidden]) .plot')].map((plot) => {
  const at = plot.getBoundingClientRect();
  const words = [...plot.querySelectorAll('svg text')].map((one) => [one.textContent, one.getBoundingClientRect()]);
  return {name: plot.id, size: [at.width, at.height], words: words.filter(([text, box]) => text.trim() && box.width)
    .map(([text, box]) => [text, box.left - at.left, box.top - at.top, box.right - at.left, box.bottom - at.top])};
})"""


def collisions(views):
    """Words that leave their card or lie on one another by more than their own leading."""
    for view in views:
        words, (width, height) = view["words"], view["size"]
        for number, (text, left, top, right, bottom) in enumerate(words):
            if min(left, top) < -1 or right > width + 1 or bottom > height + 1:
                yield view["name"], text
            for other, *box in words[number + 1 :]:
                across = min(right, box[2]) - max(left, box[0])
                if across > 2 and min(bottom, box[3]) - max(top, box[1]) > 3:
                    yield view["name"], text, other


@pytest.mark.parametrize("size", [(390, 844), (1280, 800), (1440, 900)])
def test_no_label_leaves_its_card_or_touches_another(server, chrome, size):
    page = chrome.new_page(viewport={"width": size[0], "height": size[1]})
    page.goto(server[0])
    settled(page)
    for preset in PRESETS:
        opened(page, preset.name)
        assert (preset.name, list(collisions(page.evaluate(BOXES)))) == (preset.name, [])
    page.close()


def test_no_number_of_a_verdict_breaks_at_its_exponent(page):
    opened(page, "spectral")
    words = page.inner_text("#verdicts")
    assert "e−" in words
    assert not re.search(r"\de-\d", words)


def test_the_words_of_every_choice_fit_their_field(page):
    opened(page, "propagation")
    needed = """(select) => {
      const style = getComputedStyle(select), pen = document.createElement("canvas").getContext("2d");
      pen.font = `${style.fontSize} ${style.fontFamily}`;
      return pen.measureText(select.selectedOptions[0].text).width + parseFloat(style.paddingLeft) + 20;
    }"""
    for select in page.locator("#controls select:visible").all():
        assert select.evaluate(needed) <= select.evaluate("(select) => select.clientWidth")
