"""The command ends within a second of a signal, also while it compiles."""

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
    command = subprocess.Popen(
        [sys.executable, "-m", "whorl_cli", "explore", "--no-browser", "--port", "0", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    lines = "".join(command.stdout.readline() for _ in range(3))
    port = urlsplit(lines.split('"')[3]).port

    def ask(path):
        one = http.client.HTTPConnection("127.0.0.1", port)
        try:
            one.request("GET", path)
            one.getresponse().read()
        except (OSError, http.client.HTTPException):
            pass  # it ends meanwhile

    for path in ("/paths/light?width=5", "/family/light?depth=4&omega=2"):
        threading.Thread(target=ask, args=(path,), daemon=True).start()
    time.sleep(4)
    start = time.monotonic()
    os.kill(command.pid, sent)
    command.wait(30)
    took = time.monotonic() - start
    assert command.returncode == code
    assert took < 1.0
