"""Turns, lanes and patience: who is computed for when many ask, without a server."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from whorl.explorer.turns import Job, Turns
from whorl.explorer.work import FILE, BusyError, Work


def queue(*clients, most=100):
    """A queue in which these asked, in this order; jobs are called after their place."""
    turns, gone = Turns(most), []
    for number, client in enumerate(clients):
        refused = turns.add(Job("p", lambda: None, number), tuple(client))
        gone += [] if refused is None else [refused.key]
    return turns, gone


def order(turns):
    taken = []
    while (job := turns.take(lambda _: True)) is not None:
        taken.append(job.key)
    return taken


def test_addresses_take_turns_and_then_the_visitors_of_an_address():
    # One address floods with two visitors; another asks twice.
    turns, _ = queue("Ax", "Ax", "Ax", "Ay", "Ay", "Bz", "Bz")
    assert order(turns) == [0, 5, 3, 6, 1, 4, 2]


def test_who_comes_late_is_not_behind_a_flood():
    turns, _ = queue(*["Ax"] * 50)
    assert [turns.take(lambda _: True).key for _ in range(3)] == [0, 1, 2]
    turns.add(Job("p", lambda: None, "late"), ("B", "z"))
    assert turns.take(lambda _: True).key == "late"


def test_only_what_fits_is_taken():
    turns, _ = queue("Ax", "By")
    assert turns.take(lambda job: job.key == 1).key == 1
    assert turns.take(lambda job: job.key == 1) is None


def test_a_full_queue_sends_away_the_newest_of_whoever_has_most():
    turns, gone = queue("Ax", "Ax", "Ax", "By", "Cz", most=4)
    assert gone == [2]
    assert order(turns) == [0, 3, 4, 1]
    assert queue("Ax", "Ax", "Ax", most=2)[1] == [2]


def test_visitors_long_gone_are_forgotten():
    turns, _ = queue(*((str(number), "") for number in range(100)), most=100)
    turns._most = 5
    order(turns)
    assert len(turns._turns) == 20


def test_what_several_ask_for_is_computed_once():
    work, gate, calls = Work(workers=4), threading.Event(), []
    work.mark("p")

    def call():
        calls.append(1)
        gate.wait(10)
        return "answer"

    with ThreadPoolExecutor(20) as pool:
        asked = [
            pool.submit(work.do, "p", call, key="same", client=(number % 3, number))
            for number in range(20)
        ]
        while not calls or len(work._asked["same"].clients) < 20:
            time.sleep(0.001)
        gate.set()
        assert [one.result(10) for one in asked] == ["answer"] * 20
    assert len(calls) == 1
    assert work.do("p", lambda: "anew", key="same") == "anew"
    work.close()


def test_a_mistake_reaches_everybody_who_asked():
    work = Work()
    with pytest.raises(ValueError, match="depth"):
        work.do("p", lambda: int("depth"))
    assert not work.is_warm("p")
    work.close()


@pytest.mark.slow
def test_a_flood_of_one_visitor_hardly_delays_another():
    work = Work(workers=1)
    work.mark("p")
    with ThreadPoolExecutor(60) as pool:
        flood = [
            pool.submit(work.do, "p", lambda: time.sleep(0.02), client=("A", "x"))
            for _ in range(60)
        ]
        while len(work._turns.jobs) < 50:
            time.sleep(0.001)
        start = time.monotonic()
        for _ in range(3):
            work.do("p", lambda: time.sleep(0.02), client=("B", "y"))
        assert time.monotonic() - start < 0.6
        assert sum(not one.done() for one in flood) > 30
    work.close()


def test_patience_is_bounded_and_what_was_begun_goes_on():
    work, gate, seen = Work(workers=1, patience=0.05), threading.Event(), []
    work.mark("p")
    with pytest.raises(BusyError, match="takes long"):
        work.do("p", lambda: (gate.wait(10), seen.append("begun")), key=1)
    with pytest.raises(BusyError, match="takes long"):
        work.do("p", lambda: seen.append("never begun"), key=2)
    gate.set()
    work.close()
    assert seen == ["begun"]


def test_a_long_file_stops_nobody():
    work, gate = Work(workers=1, patience=5), threading.Event()
    work.mark("p")
    with ThreadPoolExecutor(2) as pool:
        files = [pool.submit(work.do, FILE, lambda: gate.wait(5)) for _ in range(2)]
        assert work.do("p", lambda: "quick") == "quick"
        assert work.do("cold", lambda: "compiled") == "compiled"
        gate.set()
        assert [one.result(5) for one in files] == [True, True]
    work.close()


def test_a_visitor_goes_before_the_warming():
    work, gate, seen = Work(), threading.Event(), []
    work.warm([("a", 1, lambda: gate.wait(5)), ("b", 2, lambda: seen.append("warmed"))], needed=2)
    visitor = threading.Thread(target=lambda: work.do("cold", lambda: seen.append("visited")))
    visitor.start()
    while not work._turns.jobs:
        time.sleep(0.001)
    gate.set()
    visitor.join(5)
    while not work.warming.ready:
        time.sleep(0.001)
    work.close()
    assert seen == ["visited", "warmed"]


def test_closing_ends_the_warming_and_refuses_what_waits():
    work, gate = Work(), threading.Event()
    warming = work.warm([("a", 1, lambda: gate.wait(5)), ("b", 2, lambda: None)], needed=2)
    refused = []

    def ask():
        try:
            work.do("cold", lambda: None)
        except BusyError as wrong:
            refused.append(str(wrong))

    asker = threading.Thread(target=ask)
    asker.start()
    while not work._turns.jobs:
        time.sleep(0.001)
    threading.Timer(0.05, gate.set).start()
    work.close()
    asker.join(5)
    assert not warming.is_alive()
    assert not work.is_warm(2)
    assert "it was closed" in refused[0]
    with pytest.raises(BusyError, match="it was closed"):
        work.do("p", lambda: None)
