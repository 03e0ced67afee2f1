"""How long does a slider take to move the picture.

Depth 6, width 3, 300 networks, in a real browser on the same machine?

Needs a Chromium and the test dependencies. Prints medians of twelve moves, each made when
everything had settled.

    python benchmarks/slider.py
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import timing
from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from explorer.browser import ARGUMENTS, MEASURE, chromium, served, settled

NAMES = {
    "paths": "both paths have moved",
    "picture": "all five views of the run",
    "family": "300 networks",
}


def main():
    smoke = timing.asked(
        argparse.ArgumentParser(
            description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
        )
    ).smoke
    depth, measure = (1, MEASURE.replace("k < 12", "k < 2")) if smoke else (6, MEASURE)
    with (
        tempfile.TemporaryDirectory() as cache,
        served(cache) as (address, _),
        sync_playwright() as play,
    ):
        browser = play.chromium.launch(executable_path=chromium(), args=ARGUMENTS)
        # What is warmed in the background would be measured too; a smoke run measures nothing and
        # does not wait for it.
        while not smoke and json.load(urllib.request.urlopen(f"{address}status"))["warming"]:
            time.sleep(1)
        page = browser.new_context(viewport={"width": 1400, "height": 900}).new_page()
        page.goto(f"{address}?depth={depth}&shown=all&turn=fair")
        settled(page)
        page.evaluate(measure)  # what is compiled at a first change is not a slider's time
        times = page.evaluate(measure)
        browser.close()
    rows = []
    for name, what in NAMES.items():
        found = times[name]
        rows.append([what, f"{statistics.median(found):.0f}", f"{min(found)} to {max(found)}"])
    print(timing.table(["from the slider until", "median, ms", "range"], rows))


if __name__ == "__main__":
    main()
