"""Connections: bounded in number and in time, whatever a stranger does with them."""

import contextlib
import http.client
import json
import socket
import threading
import time

import pytest

from whorl.explorer import listening, server
from whorl.explorer.work import Work


@pytest.fixture
def port(monkeypatch):
    """A server whose connections have little time."""
    monkeypatch.setattr(listening, "HEAD", 0.3)
    monkeypatch.setattr(listening, "BODY", 0.6)
    monkeypatch.setattr(listening, "TAKE", 0.6)
    monkeypatch.setattr(listening, "CONNECTIONS", 6)
    monkeypatch.setattr(listening, "EACH", 4)
    work = Work()
    one = listening.Listening("127.0.0.1", 0, server.application(work=work))
    thread = threading.Thread(target=one.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield one.port
    one.shutdown()
    one.server_close()
    thread.join()
    work.close()


@contextlib.contextmanager
def connected(port, *sent, address="127.0.0.1"):
    with socket.create_connection(("127.0.0.1", port), 5, source_address=(address, 0)) as one:
        for part in sent:
            one.sendall(part)
        yield one


def seconds_until_closed(one, letter=None):
    """How long the server keeps a connection on which nothing comes, or a letter now and then."""
    start = time.monotonic()
    one.settimeout(0.05)
    while time.monotonic() - start < 5:
        try:
            if letter is not None:
                one.sendall(letter)
            if not one.recv(65536):
                break
        except TimeoutError:
            continue
        except OSError:
            break
    return time.monotonic() - start


def status(port, address="127.0.0.1"):
    with contextlib.closing(
        http.client.HTTPConnection("127.0.0.1", port, timeout=5, source_address=(address, 0))
    ) as one:
        one.request("GET", "/status")
        answer = one.getresponse()
        return answer.status, answer.headers.get("Retry-After"), json.loads(answer.read())


HALF = b"POST /upload/light HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: multipart/form-data; boundary=x\r\nContent-Length: 9000\r\n\r\n"


@pytest.mark.parametrize(
    ("sent", "letter", "most"),
    [
        ((), None, 0.3),
        ((), b"G", 0.3),
        ((b"GET /status HTTP/1.1\r\nHost: 127.0.0.1\r\n",), None, 0.3),
        ((b"GET /status HTTP/1.1\r\n",), b"a: b\r\n", 0.3),
        ((HALF,), None, 0.6),
        ((HALF, b"--x\r\n"), b"-", 0.6),
    ],
    ids=[
        "silent",
        "a letter at a time",
        "half a head",
        "a header at a time",
        "no body",
        "a body a letter at a time",
    ],
)
def test_a_request_has_to_come_in_time(port, sent, letter, most):
    with connected(port, *sent) as one:
        assert (
            seconds_until_closed(one, letter) < most + 2.0
        )  # the rest is what a busy machine takes


def test_an_answer_has_to_be_taken_in_time(port):
    def answering():
        return any("process_request_thread" in thread.name for thread in threading.enumerate())

    with connected(port, b"GET /assets/plotly.min.js HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"):
        start = time.monotonic()
        for wanted in (True, False):
            while answering() != wanted:
                assert time.monotonic() - start < 5
                time.sleep(0.001)


def test_one_address_cannot_take_every_connection(port, monkeypatch):
    monkeypatch.setattr(listening, "HEAD", 20.0)
    with contextlib.ExitStack() as stack:
        for _ in range(4):
            stack.enter_context(connected(port, b"GET"))
        code, again, words = refused(port)
        assert (code, again, words["busy"]) == (503, "2", True)
        assert status(port, "127.0.0.2")[0] == 200
        for _ in range(2):
            stack.enter_context(connected(port, b"GET", address="127.0.0.3"))
        assert refused(port, "127.0.0.4")[0] == 503
    for _ in range(100):  # they are let go of
        with contextlib.suppress(OSError):
            if status(port)[0] == 200:
                return
        time.sleep(0.02)
    raise AssertionError("connections that ended must not count, but they do")


def refused(port, address="127.0.0.1"):
    """The answer to one connection too many, for which nothing has to be sent."""
    with connected(port, address=address) as one:
        answer = b""
        while part := one.recv(65536):
            answer += part
    head, _, body = answer.partition(b"\r\n\r\n")
    fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:])
    return int(head.split()[1]), fields["Retry-After"], json.loads(body)


def test_a_port_that_is_taken_is_a_sentence(port):
    with pytest.raises(OSError, match=f"127.0.0.1:{port}"):
        server.Server(port=port)


def test_a_file_too_large_gets_its_sentence_and_no_more_time(port):
    # More is announced than is allowed, and it keeps coming.
    head = HALF.replace(b"9000", b"90000000")
    with connected(port, head) as one:
        start = time.monotonic()
        answer = b""
        with contextlib.suppress(OSError):
            while b"\r\n\r\n" not in answer or b"}" not in answer:
                with contextlib.suppress(OSError):
                    one.sendall(b"-" * 65536)
                part = one.recv(65536)
                if not part:
                    break
                answer += part
        assert b" 413 " in answer
        assert time.monotonic() - start < 4
