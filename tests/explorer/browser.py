"""A browser that is installed on the machine, and a page in it that is ready to be used."""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
SERVE = "import sys; from whorl_cli import explore; import argparse; top = argparse.ArgumentParser(); explore.add(top.add_subparsers()); "
SERVE += "given = top.parse_args(sys.argv[1:]); sys.exit(given.call(given))"

# Move a slider twelve times, each when all has settled; how long until the paths, the five views
# and 300 networks are drawn.
MEASURE = """async () => {
  const field = document.getElementById('c-omega'), result = {paths: [], picture: [], family: []};
  for (let k = 0; k < 12; k++) {
    const start = performance.now(), want = {};
    field.value = (1 + 0.3 * k).toFixed(1);
    field.dispatchEvent(new Event('input', {bubbles: true}));
    const query = location.search.slice(1).replace(/&?frame=\\d+/, '');
    const until = async (test) => {
      while (!test()) await new Promise((done) => setTimeout(done, 2));
      return Math.round(performance.now() - start);
    };
    result.paths.push(await until(() => document.body.dataset.paths === query));
    result.picture.push(await until(() => document.body.dataset.shows === query));
    result.family.push(await until(() => document.body.dataset.family === query));
    await until(() => document.body.dataset.settled === location.search.slice(1));
  }
  return result;
}"""


def chromium():
    """Where the browser is."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return found
    raise RuntimeError(
        "these tests must have a Chromium on the path, but none of chromium, chromium-browser and "
        "google-chrome is there"
    )


def free_port():
    with contextlib.closing(socket.socket()) as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@contextlib.contextmanager
def served(cache):
    """The command itself, in a process of its own, warmed up.

    Its address and its process number.
    """
    port = free_port()
    command = [
        sys.executable,
        "-c",
        SERVE,
        "explore",
        "--port",
        str(port),
        "--no-browser",
        "--cache",
        str(cache),
    ]
    process = subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )
    address = f"http://127.0.0.1:{port}/"
    try:
        _wait_until_ready(process, address)
        yield address, process.pid
    finally:
        process.terminate()
        process.communicate(timeout=20)


def _wait_until_ready(process, address):
    for _ in range(600):
        if process.poll() is not None:
            raise RuntimeError(
                "the server must keep running, but it ended: "
                f"{process.stderr.read().decode()[-2000:]}"
            )
        with (
            contextlib.suppress(OSError),
            urllib.request.urlopen(address + "status", timeout=2) as answer,
        ):
            if b'"ready":true' in answer.read().replace(b" ", b""):
                return
        time.sleep(0.5)
    raise RuntimeError("the server must be warm within five minutes, but it is not")


def until(page, script, seconds=60):
    """Wait until a script says yes.

    The page's content policy forbids the browser's own way of waiting, which compiles text there.
    """
    for _ in range(int(seconds * 50)):
        if page.evaluate(script):
            return
        page.wait_for_timeout(20)
    raise AssertionError(f"{script} must come true within {seconds} seconds, but it did not")


def settled(page):
    """Wait until everything asked for is drawn."""
    until(
        page,
        "() => document.body.dataset.settled === location.search.slice(1) && "
        "Boolean(document.body.dataset.drawn)",
    )
