"""The page in a real Chromium.

It asks nobody, sorts, filters, shows values, prints, and can be used by everybody.
"""

import io
import re
import shutil
import subprocess

import numpy as np
import pytest
from PIL import Image

from report import folders
from whorl.study import conduct, report

pytestmark = pytest.mark.browser
expect = pytest.importorskip("playwright.sync_api").expect
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def chromium():
    from playwright.sync_api import sync_playwright

    place = (
        shutil.which("chromium")
        or shutil.which("chromium-browser")
        or shutil.which("google-chrome")
    )
    if place is None:
        pytest.skip("there is no Chromium on this machine")
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=place, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def visit(chromium):
    """Open a folder's page; whatever it asks for or complains about is kept."""
    contexts = []

    def opened(root, viewport=WIDE, **options):
        context = chromium.new_context(viewport=viewport, **options)
        contexts.append(context)
        page = context.new_page()
        page.asked, page.complaints = [], []
        page.on("request", lambda request: page.asked.append(request.url))
        page.on("console", lambda message: page.complaints.append(message.text))
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.goto((root / "report.html").as_uri())
        page.wait_for_selector("html[data-charts]", timeout=60_000)
        return page

    yield opened
    for context in contexts:
        context.close()


def column(page, number):
    return page.eval_on_selector_all(
        "#numbers tbody tr:not([hidden])",
        f"rows => rows.map(row => row.cells[{number}].textContent.trim())",
    )


def serious(page):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    found = axe.run(page, options={"resultTypes": ["violations"]}).response["violations"]
    return [
        (one["id"], [node["html"][:200] for node in one["nodes"]][:5])
        for one in found
        if one["impact"] in ("serious", "critical")
    ]


def test_the_page_asks_nobody_and_complains_of_nothing(visit, paper):
    page = visit(paper)
    assert page.evaluate("document.documentElement.dataset.charts") == "ready"
    assert page.asked == [(paper / "report.html").as_uri()]
    assert page.complaints == []


def test_a_title_that_looks_like_a_script_is_shown_and_not_run(visit, mine):
    page = visit(mine)
    assert page.locator(".lead").inner_text() == "<script>alert(1)</script>"
    assert page.complaints == []


def test_the_table_sorts_by_mouse_and_by_keyboard(visit, paper):
    page = visit(paper)
    printed = column(page, 1)
    published = page.locator("#numbers thead th", has_text="published")
    published.locator("button").click()
    assert published.get_attribute("aria-sort") == "ascending"
    keys = page.eval_on_selector_all(
        "#numbers tbody td[data-label=published]",
        "cells => cells.map(cell => Number(cell.dataset.key))",
    )
    assert keys == sorted(keys)
    published.locator("button").focus()
    page.keyboard.press("Enter")
    assert published.get_attribute("aria-sort") == "descending"
    keys = page.eval_on_selector_all(
        "#numbers tbody td[data-label=published]",
        "cells => cells.map(cell => Number(cell.dataset.key))",
    )
    assert keys == sorted(keys, reverse=True)
    page.keyboard.press("Space")
    assert published.get_attribute("aria-sort") == "none"
    assert column(page, 1) == printed


def test_the_table_is_filtered_by_mouse_and_by_keyboard(visit, paper):
    page = visit(paper)
    total = len(column(page, 0))
    page.locator("select[name=study]").select_option("horizon")
    assert set(column(page, 0)) == {"horizon"}
    page.locator("select[name=class]").focus()
    page.keyboard.type("identity")
    assert set(column(page, 4)) == {"identity"}
    page.locator("input[name=text]").fill("closure")
    assert all("closure" in name for name in column(page, 1))
    assert (
        page.locator(".filters output").inner_text() == f"{len(column(page, 0))} of {total} shown"
    )
    page.get_by_role("button", name="Show all").click()
    expect(page.locator(".filters output")).to_have_text(f"{total} of {total} shown")
    assert len(column(page, 0)) == total


def test_a_link_to_a_number_shows_its_row_although_the_table_is_filtered(visit, paper):
    page = visit(paper)
    link = page.locator(".facts a[href^='#number-']").first
    row = page.locator(f"tr:has([id='{link.get_attribute('href')[1:]}'])")
    for _ in range(2):  # the second time the address does not change
        page.locator("select[name='agrees']").select_option("yes")
        assert row.is_hidden()
        link.click()
        expect(row).to_be_in_viewport()
        every = page.locator("#numbers tbody tr").count()
        expect(page.locator(".filters output")).to_have_text(f"{every} of {every} shown")


def test_a_chart_shows_the_value_under_the_pointer(visit, paper):
    page = visit(paper)
    chart = page.locator("#study-threshold-scatter")
    chart.scroll_into_view_if_needed()
    point = chart.locator(".scatterlayer .trace").nth(0).locator("path.point").nth(3)
    box = point.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(chart.locator(".readout")).to_have_text(
        re.compile(r"family \d+, depth \d+, β [\d.]+, ratio .+, coefficient −")
    )
    expect(chart.locator(".hoverlayer")).to_contain_text("coefficient")


def test_a_chart_is_read_with_the_keyboard(visit, paper):
    page = visit(paper)
    chart = page.locator("#study-horizon-trials")
    chart.locator(".plot").focus()
    said = []
    for key in ("ArrowRight", "ArrowRight", "ArrowRight", "ArrowLeft", "Home", "End"):
        page.keyboard.press(key)
        said.append(chart.locator(".readout").inner_text())
    assert all(re.match(r"(trial \d+|mean), (step-matched|adaptive), gap", one) for one in said)
    assert said[0] != said[1] != said[2]
    assert said[3] == said[1]
    assert said[4] == said[0]
    assert said[5].startswith("mean, ")
    expect(chart.locator(".hoverlayer")).to_contain_text("mean")


def test_another_distribution_can_be_chosen(visit, paper):
    page = visit(paper)
    chart = page.locator("#replication")
    before = chart.locator(".of-choice").inner_text()
    chart.get_by_label("Quantity").select_option(label="threshold: auc")
    assert chart.locator(".of-choice").inner_text() != before
    chart.locator(".plot").focus()
    page.keyboard.press("ArrowRight")
    expect(chart.locator(".readout")).to_have_text(re.compile(r"\d+ seeds from .+ to .+"))


def test_a_figure_is_enlarged_and_put_away_with_the_keyboard(visit, paper):
    page = visit(paper)
    button = page.get_by_role("button", name="Enlarge the figure one").first
    button.focus()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Larger").click()
    assert dialog.locator("img").get_attribute("src").startswith("data:image/png")
    page.keyboard.press("Escape")
    assert not dialog.is_visible()
    assert page.evaluate("document.activeElement.className") == "enlarge"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_word_can_be_read_and_everything_reached(visit, paper, mine, scheme):
    for root in (paper, mine):
        page = visit(root, color_scheme=scheme)
        page.eval_on_selector_all("details", "all => all.forEach(one => { one.open = true; })")
        assert serious(page) == []


def test_the_ground_follows_the_scheme(visit, paper):
    ground = "getComputedStyle(document.body).backgroundColor"
    light, dark = (
        visit(paper, color_scheme=scheme).evaluate(ground) for scheme in ("light", "dark")
    )
    assert (light, dark) == ("rgb(251, 250, 247)", "rgb(22, 24, 27)")


def test_nothing_is_wider_than_a_phone(visit, paper, mine):
    for root in (paper, mine):
        page = visit(root, PHONE, is_mobile=True, has_touch=True)
        page.eval_on_selector_all("details", "all => all.forEach(one => { one.open = true; })")
        assert page.evaluate(
            "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
        )
        assert serious(page) == []


def test_the_page_prints(visit, paper, tmp_path):
    page = visit(paper, color_scheme="dark")
    target = tmp_path / "report.pdf"
    page.pdf(path=target, format="A4", print_background=True)
    assert target.read_bytes().startswith(b"%PDF")
    if reader := shutil.which("pdftotext"):
        text = subprocess.run(
            [reader, "-layout", target, "-"], capture_output=True, text=True, check=True
        ).stdout
        for words in (
            "Verdicts",
            "What failed",
            "joint rank",
            "Provenance",
            "curvature ratio of one sample",
        ):
            assert words in text


def test_a_stamp_stays_in_sight(visit, tmp_path):
    root = folders.write_run(tmp_path / "run", [folders.own("threshold")], audit=(folders.FAILS,))
    report.write(root)
    page = visit(root)
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    stripe = page.locator(".stripe")
    assert stripe.inner_text() == "UNVERIFIED"
    assert stripe.bounding_box()["y"] == 0
    assert stripe.evaluate("it => getComputedStyle(it).backgroundColor") == "rgb(179, 38, 30)"
    assert serious(page) == []


def test_without_scripts_everything_but_the_charts_is_there(chromium, paper):
    context = chromium.new_context(viewport=WIDE, java_script_enabled=False)
    page = context.new_page()
    page.goto((paper / "report.html").as_uri())
    assert page.locator("#numbers tbody tr").count() > 10
    assert page.locator(".filters").is_hidden()
    assert page.locator(".says").first.is_visible()
    context.close()


def test_a_figure_on_a_phone_opens_at_a_size_that_can_be_read(visit, paper):
    page = visit(paper, PHONE, is_mobile=True, has_touch=True, color_scheme="dark")
    assert page.locator(".tap").first.is_visible()
    page.locator(".enlarge").first.tap()
    image = page.get_by_role("dialog").locator("img")
    assert image.bounding_box()["width"] > 2 * PHONE["width"]
    assert "invert" in image.evaluate("it => getComputedStyle(it).filter")  # no white in the dark
    page.emulate_media(media="print")
    assert (
        page.locator(".enlarge img").first.evaluate("it => getComputedStyle(it).filter") == "none"
    )


def test_a_figure_can_be_read_on_a_phone_and_has_no_box_of_its_own_in_the_dark(visit, tmp_path):
    conduct("threshold", tmp_path / "run", quick=True)
    for viewport, narrow in ((PHONE, True), (WIDE, False)):
        page = visit(tmp_path / "run", viewport, color_scheme="dark")
        image = page.locator("#study-threshold .enlarge img").first
        image.scroll_into_view_if_needed()
        wide, high = (image.evaluate(f"it => it.natural{side}") for side in ("Width", "Height"))
        assert (high > wide) == narrow
        # Two dots of the image at least for one of the page: 7.5 points at 200 per inch are 20 dots.
        scale = image.bounding_box()["width"] / wide
        assert scale * 7.5 / 72 * (200 if narrow else 300) > 9
        content = np.array(Image.open(io.BytesIO(page.locator(".picture").first.screenshot())))
        frame = content[30:-30, 30:-30, :3].reshape(-1, 3)
        colours, often = np.unique(frame, axis=0, return_counts=True)
        assert tuple(colours[often.argmax()]) == (0x1E, 0x21, 0x25)  # the paper of the page


def test_values_that_coincide_and_condition_numbers_are_drawn_so_that_one_sees_them(
    visit, tmp_path
):
    root = folders.write_run(tmp_path / "run", folders.paper())
    report.write(root)  # beside the distributions that ship
    page = visit(root)
    plot = "document.querySelector('#replication .plot')"

    def drawn(study, name):
        page.locator("#replication select").select_option(label=f"{study}: {name}")
        page.wait_for_function(f"{plot}.layout.xaxis.title.text === '{name}'")
        return page.evaluate(f"[{plot}.data, {plot}.layout.xaxis]")

    (bars, published, here), axis = drawn("structural", "rank, full, depth 2")
    assert published["y"][1] != here["y"][1]  # two markers, though the values are one
    assert axis["ticktext"][0] == "25"
    _, axis = drawn("structural", "condition, deficient, largest")
    assert axis["type"] == "log"
    assert axis["exponentformat"] == "power"
    (bars, published, _), axis = drawn("threshold", "weight, smallest")
    assert bars["width"][0] > 0.02 * abs(bars["x"][0] - published["x"][0])
    assert axis["range"][0] < published["x"][0] < bars["x"][0] < axis["range"][1]
