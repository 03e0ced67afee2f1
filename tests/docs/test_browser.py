"""The site in a real Chromium.

It asks nobody, complains of nothing, fits a phone, and can be used by everybody.
"""

import shutil

import pytest

pytestmark = pytest.mark.browser
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
PAGES = (
    "index",
    "tutorials/see_a_turn",
    "certify",
    "theory/argument",
    "theory/protocol",
    "equations",
    "reference/response",
    "reference/index",
    "howto/baseline",
    "about/neighbours",
)


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
def visit(chromium, site):
    """Open a page; whatever it asks for or complains about is kept."""
    contexts = []

    def opened(name, viewport=WIDE, **options):
        context = chromium.new_context(viewport=viewport, **options)
        context.set_default_timeout(120_000)  # on a machine that does much else a browser is slow
        contexts.append(context)
        page = context.new_page()
        page.asked, page.complaints = [], []
        page.on("request", lambda request: page.asked.append(request.url))
        page.on("console", lambda message: page.complaints.append(message.text))
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.goto((site / f"{name}.html").as_uri())
        page.wait_for_load_state("networkidle")
        return page

    yield opened
    for context in contexts:
        context.close()


def serious(page):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    found = axe.run(page, options={"resultTypes": ["violations"]}).response["violations"]
    return [
        (one["id"], [node["html"][:200] for node in one["nodes"]][:5])
        for one in found
        if one["impact"] in ("serious", "critical")
    ]


@pytest.mark.parametrize("name", PAGES)
def test_a_page_asks_nobody_and_complains_of_nothing(visit, name):
    page = visit(name)
    assert [url for url in page.asked if not url.startswith(("file:", "data:"))] == []
    assert page.complaints == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing_serious(visit, name, scheme):
    assert serious(visit(name, color_scheme=scheme)) == []


@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_a_phone(visit, name):
    page = visit(name, PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert serious(page) == []


def test_the_search_finds_a_function_without_a_server(visit, site):
    page = visit("index")
    page.goto((site / "search.html").as_uri() + "?q=quarter_turn")
    page.wait_for_selector("#search-results li a")
    assert page.locator("#search-results li", has_text="quarter_turn").count() >= 1
    assert [url for url in page.asked if not url.startswith(("file:", "data:"))] == []
