"""The page in a real browser: claims, controls, address, files, keyboard, and a phone."""

import json
import re
from pathlib import Path

import pytest

from explorer.browser import MEASURE, settled, until
from explorer.states import reopened
from whorl.explorer.presets import BY_NAME, PRESETS
from whorl.explorer.state import from_query

pytestmark = [
    pytest.mark.browser,
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


@pytest.fixture
def visit(server, chrome):
    """Open an address in a window of its own.

    Afterwards nothing may have gone wrong, and nobody else been asked.
    """
    contexts, wrong = [], []

    def go(query="", size=(1440, 900), **more):
        context = chrome.new_context(
            viewport={"width": size[0], "height": size[1]},
            bypass_csp=False,
            accept_downloads=True,
            **more,
        )
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on(
            "console",
            lambda message: (
                wrong.append(message.text)
                if message.type == "error" and not EXPECTED.search(message.text)
                else None
            ),
        )
        page.on(
            "request",
            lambda request: (
                None
                if request.url.startswith((server[0], "data:", "blob:"))
                else wrong.append(request.url)
            ),
        )
        page.goto(server[0] + ("?" + query if query else ""))
        settled(page)
        return page

    yield go
    for context in contexts:
        context.close()
    assert wrong == []


# Refusals that a test asks for, and a busy server, which the page asks again by itself.
EXPECTED = re.compile("status of (400|500|503)")


def points(page, view):
    """All numbers a view is drawn from, as text."""
    script = "name => JSON.stringify(document.getElementById('plot-' + name).data.map(t => [t.x, t.y, t.z, t.a, t.b, t.base]))"
    return page.evaluate(script, view)


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.name)
def test_every_claim_opens(visit, preset):
    page = visit()
    page.get_by_role("button", name=preset.title).click()
    settled(page)
    assert from_query(page.evaluate("() => location.search")) == preset.state
    assert page.locator(".story:visible p").first.inner_text() == preset.story
    assert page.inner_text("#finding").startswith("Here")
    shown = page.locator(".view:visible .plot")
    assert shown.count() >= 2
    for number in range(shown.count()):
        assert shown.nth(number).locator(".main-svg").count() > 0
    assert len(page.locator("#verdicts").inner_text()) > 20
    assert page.locator("#refusal").inner_text() == ""


@pytest.mark.parametrize(
    ("control", "value", "views"),
    [
        ("depth", "5", ["network", "simplex", "loss", "heat"]),
        ("width", "5", ["network", "simplex", "loss"]),
        ("imbalance", "3", ["network", "simplex", "heat", "many"]),
        ("floor", "0.3", ["network", "heat"]),
        ("alpha", "2", ["spiral", "loss"]),
        ("omega", "1", ["simplex", "spiral", "loss", "ledger", "many"]),
        ("leak", "0.5", ["spiral", "heat"]),
        ("scale", "0.3", ["simplex", "loss", "ledger", "many"]),
        ("epochs", "10", ["loss", "many"]),
        ("sample", "3", ["network", "simplex", "spiral", "heat"]),
        ("law", "direct", ["simplex", "spiral", "heat"]),
        ("policy", "native", ["simplex"]),
        ("gate", "never", ["simplex"]),
        ("turn", "minus", ["simplex", "spiral", "ledger"]),
        ("shown", "all", ["simplex", "loss"]),
        ("seed", "8", ["network", "simplex", "heat"]),
        ("system", "column", ["network", "simplex", "heat"]),
    ],
)
def test_every_control_moves_its_views(visit, control, value, views):
    page = visit("frame=60&omega=2&leak=0.1")
    before = {view: points(page, view) for view in views}
    field = page.locator(f"#c-{control}")
    if field.evaluate("element => element.tagName") == "SELECT":
        field.select_option(value)
    else:
        field.fill(value)
        field.press("Tab")
    settled(page)
    assert f"{control}={value}" in page.evaluate("() => location.search")
    assert [view for view in views if points(page, view) == before[view]] == []
    still = value in ("direct", "native", "never")  # nothing turns: what would be empty is gone
    assert page.locator("#view-ledger").is_hidden() == still
    assert page.locator("#view-effect").is_hidden() == still


def test_an_address_shows_what_its_sender_saw(visit):
    one = visit("depth=4&omega=2.5&seed=11")
    one.locator("#c-imbalance").fill("2.5")
    one.locator("#frame").fill("77")
    settled(one)
    two = visit(one.evaluate("() => location.search.slice(1)"))
    for view in ("network", "simplex", "spiral", "heat", "loss", "ledger"):
        assert points(one, view) == points(two, view) or close(one, two, view)
    assert two.locator("#frame-value").inner_text() == "77"
    assert one.locator("#verdicts").inner_text() == two.locator("#verdicts").inner_text()


def close(one, two, view):
    """The same to the digits that a frame is sent with."""
    numbers = [flat(json.loads(points(page, view))) for page in (one, two)]
    return len(numbers[0]) == len(numbers[1]) and all(
        abs(a - b) <= 1e-5 * max(1.0, abs(a)) for a, b in zip(*numbers, strict=True)
    )


def flat(value):
    if isinstance(value, dict):
        value = value.get("_inputArray") or list(value.values())
    if isinstance(value, list):
        return [number for item in value for number in flat(item)]
    return [value] if isinstance(value, int | float) else []


def test_a_broken_address_is_answered_by_a_sentence(visit):
    page = visit("depth=99")
    assert (
        page.locator("#refusal").inner_text()
        == "depth must be a whole number from 1 to 6, but it is 99"
    )


def test_it_plays_pauses_steps_and_scrubs(visit):
    page = visit("frame=0")
    page.get_by_role("button", name="One step ahead").click()
    assert page.locator("#frame-value").inner_text() == "1"
    page.get_by_role("button", name="Play").click()
    until(page, "() => Number(document.getElementById('frame').value) > 8")
    page.get_by_role("button", name="Pause").click()
    stopped = int(page.locator("#frame-value").inner_text())
    page.wait_for_timeout(400)
    assert int(page.locator("#frame-value").inner_text()) == stopped
    page.get_by_role("button", name="One step back").click()
    assert int(page.locator("#frame-value").inner_text()) == stopped - 1
    page.locator("#frame").fill("120")
    settled(page)
    assert "frame=120" in page.url
    length = page.evaluate("() => document.getElementById('plot-spiral').data[2].x.length")
    assert length == 121


def test_states_and_views_are_taken_home(visit):
    page = visit("depth=2&omega=2")
    with page.expect_download() as download:
        page.locator("#get-json").click()
    assert reopened(Path(download.value.path()).read_text()) == from_query("depth=2&omega=2")
    with page.expect_download() as download:
        page.locator("#get-py").click()
    compile(Path(download.value.path()).read_text(), "state.py", "exec")
    for view in ("network", "simplex", "heat", "ledger"):
        for kind, start in (("svg", b"<svg"), ("png", b"\x89PNG")):
            with page.expect_download() as download:
                page.locator(f"#view-{view} [data-save={kind}]").click()
            assert Path(download.value.path()).read_bytes().startswith(start)
            assert download.value.suggested_filename == f"whorl-{view}.{kind}"


def test_a_downloaded_file_brings_its_settings_back(visit, tmp_path):
    page = visit()
    state = tmp_path / "state.json"
    state.write_text(BY_NAME["helps"].state.to_json())
    with page.expect_navigation():
        page.locator("#file").set_input_files(state)
    settled(page)
    assert from_query(page.evaluate("() => location.search")) == BY_NAME["helps"].state
    for text, sentence in (
        ('{"depth": 3}', 'it does not hold "whorl": "explorer"'),
        ("[", "The file must hold a state of the explorer, but "),
    ):
        state.write_text(text)
        page.locator("#file").set_input_files(state)
        told = f"document.getElementById('refusal').textContent.includes({json.dumps(sentence)})"
        until(page, f"() => {told}")
    state.write_text('{"whorl": "explorer", "depth": 99}')
    with page.expect_navigation():
        page.locator("#file").set_input_files(state)
    assert "depth must be a whole number from 1 to 6" in page.inner_text("#refusal")


def test_a_value_that_is_corrected_to_the_one_before_is_no_longer_refused(visit):
    page = visit("system=column")
    for wrong in ("1,banana,8", "0,0,1"):
        page.fill("#c-start", wrong)
        page.dispatch_event("#c-start", "change")
        until(page, "() => document.getElementById('refusal').textContent !== ''")
        assert page.get_attribute("#c-start", "aria-invalid") == "true"
        page.fill("#c-start", "1,1,8")
        page.dispatch_event("#c-start", "change")
        assert page.inner_text("#refusal") == ""
        assert page.get_attribute("#c-start", "aria-invalid") == "false"
        settled(page)
    assert page.locator("[aria-busy=true]").count() == 0


def test_a_computation_that_fails_leaves_a_sentence_and_no_spinner(visit):
    page = visit("depth=2")
    failing = json.dumps({"error": "This picture cannot be computed (no reason)."})
    page.route("**/picture/**", lambda route: route.fulfill(status=500, body=failing))
    page.locator("#c-omega").fill("1")
    until(page, "() => document.getElementById('refusal').textContent.includes('cannot be')")
    assert page.locator("[aria-busy=true]").count() == 0
    page.unroute("**/picture/**")
    page.locator("#c-omega").fill("1.5")
    settled(page)
    assert page.inner_text("#refusal") == ""


def test_the_keyboard_is_enough(visit):
    page = visit()
    seen = []
    for _ in range(60):
        page.keyboard.press("Tab")
        seen.append(
            page.evaluate(
                "() => document.activeElement.id || document.activeElement.dataset.preset || "
                "document.activeElement.className"
            )
        )
    for wanted in (
        "copy",
        "get-py",
        "file",
        "theme",
        "turn",
        "drift",
        "play",
        "frame",
        "c-system",
        "c-depth",
        "c-omega",
        "c-epochs",
        "save",
    ):
        assert wanted in seen
    page.locator("#c-omega").focus()
    page.keyboard.press("ArrowRight")
    settled(page)
    assert "omega=3.1" in page.url


def test_a_phone_shows_everything_without_scrolling_sideways(visit):
    page = visit(size=(390, 844), has_touch=True)
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 390
    assert not page.locator("#controls").is_visible()
    page.get_by_role("button", name="Settings").click()
    assert page.locator("#c-depth").is_visible()
    box = page.locator("#plot-heat").bounding_box()
    assert box is not None
    assert 300 < box["width"] <= 390


@pytest.mark.parametrize(
    ("query", "scheme"),
    [
        ("", "light"),
        ("", "dark"),
        ("claim=cycle&system=rps&start=6,2,2", "light"),
        ("system=circuit", "dark"),
        ("system=held&frame=60", "light"),
        ("system=graph", "light"),
    ],
)
def test_nothing_serious_stands_in_the_way_of_anybody(visit, query, scheme):
    import axe_playwright_python

    page = visit(query, color_scheme=scheme)
    page.evaluate((Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text())
    found = page.evaluate("() => axe.run(document, {resultTypes: ['violations']})")["violations"]
    serious = [
        (one["id"], one["nodes"][0]["html"][:120])
        for one in found
        if one["impact"] in ("serious", "critical")
    ]
    assert serious == []


def test_every_move_of_a_slider_reaches_all_views(visit):
    times = visit("depth=6&shown=all&turn=fair").evaluate(MEASURE)
    assert [len(times[name]) for name in ("paths", "picture", "family")] == [12, 12, 12]
