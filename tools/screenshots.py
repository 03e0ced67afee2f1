"""Make the screenshots of the documentation again: `python tools/screenshots.py`.

Each is what the command on its page gives: the page of `whorl certify`, the report of the study
that the tutorial registers, and the explorer. (The picture of the sweep is drawn by the code of its
page.) They have few colours, so that files stay below 150 kB.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs" / "images"
READY = "#plot-many .main-svg"  # of the explorer: the view that is drawn last
WINDOWS = {"explorer": (1440, 1020)}  # others are 1180 wide and 760 high
WHORL = Path(sys.executable).with_name("whorl")
COLOURS = 96


def main() -> int:
    """Make all of them, or those that are named."""
    wanted = sys.argv[1:] or ["certify", "own_study", "explorer"]
    place = shutil.which("chromium") or shutil.which("google-chrome")
    with (
        sync_playwright() as play,
        tempfile.TemporaryDirectory() as folder,
    ):
        browser = play.chromium.launch(executable_path=place, args=["--no-sandbox"])
        for name in wanted:
            with PAGES[name](Path(folder)) as (address, ready):
                window = WINDOWS.get(name, (1180, 760))
                shoot(browser, address, ready, window, IMAGES / f"{name}_page.png")
        browser.close()
    return 0


def shoot(browser: Browser, address: str, ready: str, window: tuple[int, int], place: Path) -> None:
    """What a window shows of a page once something on it is there."""
    page = browser.new_page(
        viewport={"width": window[0], "height": window[1]}, color_scheme="light"
    )
    page.goto(address)
    page.wait_for_selector(ready, timeout=300_000)
    page.wait_for_timeout(1000)
    page.screenshot(path=place)
    page.close()
    Image.open(place).convert("RGB").quantize(COLOURS).save(place, optimize=True)


def run(folder: Path, *words: str) -> None:
    """A command of whorl; some end with a code that is their answer."""
    subprocess.run([WHORL, *words], cwd=folder, stdout=subprocess.DEVNULL, check=False)


@contextmanager
def certify(folder: Path) -> Iterator[tuple[str, str]]:
    """The page of the measurements that ship."""
    data = str(ROOT / "examples" / "measurements.csv")
    run(folder, "certify", data, "--time-unit", "s", "--page", "verdict.html")
    yield (folder / "verdict.html").as_uri(), "body"


@contextmanager
def own_study(folder: Path) -> Iterator[tuple[str, str]]:
    """The report of the study on its page."""
    text = (ROOT / "docs" / "tutorials" / "own_study.md").read_text()
    found = re.search(r"```toml\n(# thin\.toml\n.*?)```", text, re.DOTALL)
    assert found is not None
    (folder / "thin.toml").write_text(found[1])
    run(folder, "register", "thin.toml")
    run(folder, "run", "thin.toml", "--out", "thin")
    yield (folder / "thin" / "report.html").as_uri(), "html[data-charts]"


@contextmanager
def explorer(folder: Path) -> Iterator[tuple[str, str]]:
    """The explorer as it opens."""
    command = [WHORL, "explore", "--port", "0", "--no-browser", "--json"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        found = (re.search(r'http[^"]*', line) for line in server.stdout)
        yield next(one[0] for one in found if one), READY
        server.terminate()


PAGES = {"certify": certify, "own_study": own_study, "explorer": explorer}


if __name__ == "__main__":
    raise SystemExit(main())
