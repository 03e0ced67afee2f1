"""A claim is true of what is on the screen: computed from the data that the browser plots."""

import base64
from pathlib import Path

import numpy as np
import pytest

from explorer.browser import ARGUMENTS, chromium, served, settled, until
from whorl.explorer.presets import BY_NAME

pytestmark = [
    pytest.mark.browser,
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
PLOTTED = """(name) => document.getElementById(`plot-${name}`).data.map((trace) => ({
  name: trace.name, mode: trace.mode, y: trace.y && (trace.y.bdata ? trace.y : Array.from(trace.y)),
}))"""
CAPTION = "(name) => document.getElementById(`plot-${name}`).layout.annotations[0].text"
SHOWN = (
    "() => [...document.querySelectorAll('.view:not([hidden])')].map((view) => view.id.slice(5))"
)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    from playwright.sync_api import sync_playwright

    kept = Path(__file__).parents[2] / ".pytest_cache" / "explorer"
    with served(kept) as (address, _), sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium(), args=ARGUMENTS)
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.goto(address)
        settled(page)
        yield page
        browser.close()


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
    taken, opposite, mean = numbers(bars["y"])
    assert mean == pytest.approx((taken + opposite) / 2, rel=1e-5)
    assert sign * mean > 0
    assert BY_NAME[name].state.frame == 0


def test_turns_gain_by_themselves_and_step_and_drift_cost_more(page):
    opened(page, "drift")
    (bars,) = page.evaluate(PLOTTED, "ledger")
    native, even, handed, step, drift, adaptive = numbers(bars["y"])
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


def test_numbers_beside_bars_never_touch(page):
    boxes = """(name) => [...document.querySelectorAll(`#plot-${name} .annotation-text-g, #plot-${name} .bartext`)]
      .map((one) => one.getBoundingClientRect()).map((box) => [box.left, box.top, box.right, box.bottom])"""
    for name in ("turn", "drift", "helps"):
        opened(page, name)
        for view in ("ledger", "effect"):
            found = [box for box in page.evaluate(boxes, view) if box[2] > box[0]]
            for number, one in enumerate(found):
                for other in found[number + 1 :]:
                    apart = (
                        one[2] <= other[0] + 1
                        or other[2] <= one[0] + 1
                        or one[3] <= other[1] + 1
                        or other[3] <= one[1] + 1
                    )
                    assert apart, (name, view, one, other)
