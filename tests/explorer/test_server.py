"""The server, without a browser: what it answers, to whom, and how it refuses."""

import argparse
import json
import subprocess
import sys

import pytest

from explorer.states import SMALL, reopened
from whorl.explorer import Explorer, gallery, server, views, work
from whorl.explorer.state import State
from whorl_cli import explore

QUERY = SMALL.to_query()


@pytest.fixture(scope="module")
def client():
    return server.application().test_client()


def test_the_page_asks_nothing_of_anybody_else(client):
    page = client.get("/?depth=2")
    assert page.status_code == 200
    assert "http://" not in page.text.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in page.text
    assert "script-src 'self';" in page.headers["Content-Security-Policy"]


@pytest.mark.parametrize(
    "name", ["page.css", "page.js", "frames.js", "theme.js", "plotly.min.js", "whorl.svg"]
)
def test_every_file_of_the_page_is_here(client, name):
    assert client.get(f"/assets/{name}").status_code == 200


@pytest.mark.parametrize("name", ["..%2Fserver.py", "server.py", "page.html", "%2Fetc%2Fpasswd"])
def test_no_other_file_is(client, name):
    assert client.get(f"/assets/{name}").status_code == 404


@pytest.mark.parametrize("portion", ["paths", "picture", "instant", "family"])
def test_every_portion_is_json(client, portion):
    answer = client.get(f"/{portion}/light?{QUERY}&law=leaky")
    assert answer.status_code == 200
    assert set(answer.json["figures"]) <= {view.place for view in views.of("family", portion)}


def test_a_broken_address_is_answered_by_a_sentence(client):
    answer = client.get("/picture/light?depth=99")
    assert answer.status_code == 400
    assert answer.json["error"] == "depth must be a whole number from 1 to 6, but it is 99"
    assert "depth must be a whole number" in client.get("/?depth=99").text


def test_what_an_address_says_is_never_written_as_html(client):
    text = client.get("/?law=%3Cscript%3Ealert(1)%3C/script%3E").text
    assert "<script>alert" not in text
    assert "&lt;script&gt;" in text


def test_downloads_remake_the_state(client):
    state = State(depth=2, omega=1.5)
    assert reopened(client.get(f"/state.json?{state.to_query()}").text) == state
    script = client.get(f"/state.py?{state.to_query()}")
    assert "attachment" in script.headers["Content-Disposition"]
    compile(script.text, "state.py", "exec")


def test_strangers_are_refused(client):
    assert client.get("/status", headers={"Host": "evil.example"}).status_code == 400
    assert client.get("/status", headers={"Origin": "http://evil.example"}).status_code == 403
    assert client.get("/status", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
    assert client.get("/status", headers={"Origin": "http://localhost"}).status_code == 200
    # A page without an origin (a file, a sandboxed frame), and another port of this machine, which
    # is the same site.
    assert client.get("/status", headers={"Origin": "null"}).status_code == 403
    assert client.get("/status", headers={"Origin": "http://localhost:3000"}).status_code == 403
    assert client.get("/status", headers={"Sec-Fetch-Site": "same-site"}).status_code == 403
    assert client.get("/status", headers={"Sec-Fetch-Site": "none"}).status_code == 200
    assert client.get("/", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 200
    for host in (
        "evil.example",
        "localhost.evil.example",
        "evil.example:8642",
        "127.0.0.1.evil.example",
        "2130706433",
        "",
    ):
        assert client.get("/paths/light", headers={"Host": host}).status_code == 400, host
    assert (
        client.get(
            "/status", headers={"Host": "evil.example", "X-Forwarded-Host": "localhost"}
        ).status_code
        == 400
    )


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/", 200),
        ("/status", 200),
        ("/assets/page.js", 200),
        ("/nowhere", 404),
        ("/picture/light?depth=99", 400),
    ],
)
def test_every_answer_is_sealed(client, path, code):
    answer = client.get(path)
    assert answer.status_code == code
    policy = dict(
        part.split(None, 1) for part in answer.headers["Content-Security-Policy"].split("; ")
    )
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["connect-src"] == "'self'"
    assert "frame-ancestors" in policy
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Referrer-Policy"] == "same-origin"
    assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"


@pytest.mark.parametrize("path", ["/", "/paths/light", "/state.json", "/assets/page.js", "/status"])
@pytest.mark.parametrize("method", ["post", "put", "delete", "patch"])
def test_nothing_can_be_sent(client, path, method):
    assert getattr(client, method)(path, data=b"x" * 100).status_code == 405


def test_a_closed_explorer_asks_to_be_asked_again():
    closed = work.Work()
    closed.close()
    answer = server.application(work=closed).test_client().get("/paths/light")
    assert (answer.status_code, (answer.json or {})["busy"]) == (503, True)


def test_a_failed_computation_is_answered_by_a_sentence(client, monkeypatch):
    def broken(state, theme):
        raise AttributeError("partially initialized module 'pandas'")

    monkeypatch.setitem(gallery.PORTIONS, "paths", broken)
    answer = client.get(f"/paths/light?{QUERY}")
    assert answer.status_code == 500
    assert answer.json["error"] == (
        "This picture cannot be computed (AttributeError: partially initialized module 'pandas')."
    )


def test_a_failed_warming_does_not_keep_the_page_waiting(monkeypatch):
    def broken(state):
        raise AttributeError("partially initialized module 'pandas'")

    for portion in gallery.PORTIONS:
        monkeypatch.setitem(gallery.PORTIONS, portion, broken)
    app = server.application()
    app.extensions["whorl"].warm(server.presets_first()).join(20)
    report = app.test_client().get("/status").json or {}
    assert report["ready"]
    assert report["done"] == report["needed"] > 20


def test_pandas_is_there_before_any_thread():
    pytest.importorskip("pandas")
    script = "import sys, whorl.explorer.server; print(hasattr(sys.modules['pandas'], 'Series'))"
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert answer.stdout == "True\n"


def test_a_port_that_is_taken_is_a_sentence():
    one = server.Server()
    with pytest.raises(OSError, match=one.address.removeprefix("http://").rstrip("/")):
        server.Server(port=one._server.port)
    one._server.server_close()


def test_a_trusted_host_is_let_in():
    guest = server.application(trusted=["lab.example"]).test_client()
    assert guest.get("/status", headers={"Host": "lab.example"}).status_code == 200


def test_an_unknown_place_is_a_sentence_too(client):
    assert client.get("/nowhere").status_code == 404
    assert client.get("/picture/pink").json["error"].startswith("theme must be one of light, dark")


def test_an_explorer_hands_out_its_figures_and_its_script():
    explorer = Explorer(depth=2, epochs=2, law="leaky")
    nothing = {"ledger", "effect", "many"}  # nothing turns
    assert set(explorer.figures()) == {view.place for view in views.of("family")} - nothing
    assert "wh.train" in explorer.python()
    assert Explorer.at("http://127.0.0.1:1/?depth=2").state == State(depth=2)


@pytest.mark.slow  # its server ends while programs compile, which once ended a worker
def test_an_explorer_shows_itself_in_a_notebook(monkeypatch):
    monkeypatch.setattr(server, "presets_first", list)
    explorer = Explorer(depth=2)
    try:
        assert explorer._repr_html_().startswith(f'<iframe src="{explorer.address}"')
        assert explorer.address.startswith("http://127.0.0.1:")
        assert json.loads(json.dumps(explorer.address)).endswith("?depth=2")
    finally:
        explorer.close()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--port", "70000"], "--port must be a whole number from 0 to 65535, but it is 70000"),
        (
            ["--host", "0.0.0.0"],
            (
                "--trust must name a host under which visitors may come where --host is not this "
                "machine"
            ),
        ),
        (["depth=9", "--port", "0"], "depth must be a whole number from 1 to 6, but it is 9"),
    ],
)
def test_the_command_refuses_in_one_sentence(arguments, sentence):
    top = argparse.ArgumentParser()
    explore.add(top.add_subparsers())
    given = top.parse_args(["explore", "--no-browser", *arguments])
    with pytest.raises(ValueError) as refusal:
        given.call(given)
    assert sentence in str(refusal.value)


@pytest.mark.slow
def test_a_script_that_ends_lets_the_compiler_finish_first():
    script = """
import threading, time
from whorl.explorer import Explorer, server
done = threading.Event()
server.presets_first = lambda: [("paths", lambda: (time.sleep(0.3), done.set())), ("paths", lambda: print("too late"))]
Explorer().address
import atexit; atexit.register(lambda: print("compiled" if done.is_set() else "left alone", flush=True))
"""
    answer = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False
    )
    assert (answer.returncode, answer.stdout, answer.stderr) == (0, "compiled\n", "")
