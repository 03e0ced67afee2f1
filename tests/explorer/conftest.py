"""One server for every test that drives a browser; it takes minutes to warm up."""

from pathlib import Path

import pytest

from explorer.browser import ARGUMENTS, chromium, served


@pytest.fixture(scope="session")
def server():
    """Its address and its process number; what it compiles is kept between runs."""
    with served(Path(__file__).parents[2] / ".pytest_cache" / "explorer") as running:
        yield running


@pytest.fixture(scope="module")
def chrome():
    """Playwright runs once per thread, and other folders have a browser of their own."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium(), args=ARGUMENTS)
        yield browser
        browser.close()
