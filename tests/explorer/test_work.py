"""Who computes when: one at a time per portion, the newest first, without a server."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from whorl.explorer import cache
from whorl.explorer.work import BusyError, Work


def until(test):
    start = time.monotonic()
    while not test():
        assert time.monotonic() - start < 10
        time.sleep(0.002)


@pytest.fixture
def held():
    """A worker that computes for the paths until its gate is opened."""
    work, gate = Work(), threading.Event()
    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(work.do, "paths", lambda: gate.wait(10))
        until(lambda: "paths" in work._busy)
        yield work, gate, pool
        gate.set()
        first.result(10)
    work.close()


def test_of_requests_that_wait_only_the_newest_is_computed(held):
    work, gate, pool = held
    old = pool.submit(work.do, "paths", lambda: "old")
    until(lambda: "paths" in work._waiting)
    new = pool.submit(work.do, "paths", lambda: "new")
    with pytest.raises(BusyError, match="a newer request first"):
        old.result(10)
    gate.set()
    assert new.result(10) == "new"


def test_another_portion_does_not_wait(held):
    assert held[0].do("family", lambda: "answered") == "answered"


def test_a_mistake_is_told_and_leaves_the_worker_free():
    work = Work()
    with pytest.raises(ValueError, match="depth"):
        work.do("paths", lambda: int("depth"))
    assert work.do("paths", lambda: "next") == "next"


def test_a_request_goes_before_the_warming(held):
    work, gate, pool = held
    seen = []
    warming = work.warm([("paths", lambda: seen.append("warmed"))])
    asked = pool.submit(work.do, "paths", lambda: seen.append("asked"))
    until(lambda: "paths" in work._waiting)
    gate.set()
    asked.result(10)
    warming.join(10)
    assert seen == ["asked", "warmed"]


def test_warming_reports_how_far_it_is_and_a_failure_counts():
    work = Work()
    assert work.report()["ready"]
    work.warm([("paths", lambda: 1 / 0), ("paths", lambda: None)]).join(10)
    assert work.report() == {"ready": True, "done": 2, "needed": 2, "warming": False}


def test_closing_waits_for_what_runs_and_begins_nothing_more(held):
    work, gate, pool = held
    asked = pool.submit(work.do, "paths", lambda: "never")
    until(lambda: "paths" in work._waiting)
    closing = pool.submit(work.close)
    with pytest.raises(BusyError):
        asked.result(10)
    assert not closing.done()
    gate.set()
    closing.result(10)


def test_the_cache_is_bounded_and_keeps_what_was_asked_last():
    calls = []

    @cache.kept
    def twice(value):
        calls.append(value)
        return 2 * value

    assert [twice(3), twice(3)] == [6, 6]
    for value in range(10, 10 + cache.KEPT):
        twice(value)
    twice(3)
    assert calls.count(3) == 2
    assert cache._result.cache_info().currsize <= cache.KEPT
