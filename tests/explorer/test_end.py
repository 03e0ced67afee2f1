"""The command ends within a second of a signal, also while it compiles."""

import contextlib
import http.client
import os
import signal
import subprocess
import sys
import threading
import time
from urllib.parse import urlsplit

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_it_within_a_second_while_it_computes(sent, code):
    given = ["explore", "--no-browser", "--port", "0", "--json"]
    with subprocess.Popen(
        [sys.executable, "-m", "whorl_cli", *given],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as command:
        lines = "".join(command.stdout.readline() for _ in range(3))
        port = urlsplit(lines.split('"')[3]).port
        for path in ("/paths/light?width=5", "/family/light?depth=4&omega=2"):
            threading.Thread(target=ask, args=(port, path), daemon=True).start()
        time.sleep(4)
        start = time.monotonic()
        os.kill(command.pid, sent)
        command.wait(30)
        took = time.monotonic() - start
    assert command.returncode == code
    assert took < 1.0


def ask(port, path):
    """One request, which may never be answered."""
    with (
        contextlib.closing(http.client.HTTPConnection("127.0.0.1", port)) as one,
        contextlib.suppress(OSError, http.client.HTTPException),  # it ends meanwhile
    ):
        one.request("GET", path)
        one.getresponse().read()
