"""Cases that go wrong are found and named, and the others come out as if nothing had happened."""

import numpy as np
import pytest

from whorl.sweep import guard
from whorl.sweep.compute import NUMBERS


class Calls:
    """A computation with faults, that remembers how it was called."""

    def __init__(self, *, memory=10**9, raises=(), hangs=()):
        self.memory, self.raises, self.hangs, self.sizes = memory, set(raises), set(hangs), []

    def __call__(self, places, chunk):
        self.sizes.append((len(places), chunk))
        if max(chunk, -(-len(places) // chunk) * chunk) > self.memory:
            raise MemoryError
        if self.raises & set(places.tolist()):
            raise ArithmeticError("it cannot be")
        if self.hangs & set(places.tolist()):
            raise TimeoutError("no result after 1 s")
        found = {name: places.astype(float) for name in NUMBERS}
        return found | {"made": places, "reason": np.full(len(places), "", dtype=object)}


def failed(rows):
    return {at: words for at, words in enumerate(rows["reason"]) if words}


def test_without_faults_all_cases_go_in_calls_of_the_given_size():
    calls = Calls()
    rows = guard.careful(calls, 1000, 64, 512)
    assert calls.sizes == [(512, 64), (488, 64)]
    assert rows["gap"].tolist() == list(range(1000))


def test_out_of_memory_halves_the_call_and_goes_on_at_that_size():
    calls = Calls(memory=130)
    rows = guard.careful(calls, 1024, 64, 1024)
    assert calls.sizes[:4] == [(1024, 64), (512, 64), (256, 64), (128, 64)]
    assert set(calls.sizes[4:]) == {(128, 64)}
    assert rows["gap"].tolist() == list(range(1024))
    assert failed(rows) == {}


def test_below_one_chunk_the_chunk_halves():
    calls = Calls(memory=64)
    rows = guard.careful(calls, 300, 256, 512)
    assert calls.sizes[:4] == [(300, 256), (256, 256), (256, 128), (128, 128)]
    assert failed(rows) == {}
    assert rows["gap"].tolist() == list(range(300))


def test_memory_that_holds_nothing_is_a_reason():
    rows = guard.careful(Calls(memory=1), 100, 64, 128)
    assert set(failed(rows).values()) == {"out of memory with 64 pairs in a call"}
    assert len(failed(rows)) == 100


@pytest.mark.parametrize("bad", [[0], [99], [3, 4, 77]])
def test_cases_that_raise_are_named_and_the_others_are_there(bad):
    rows = guard.careful(Calls(raises=bad), 100, 64, 128)
    assert failed(rows) == dict.fromkeys(bad, "ArithmeticError: it cannot be")
    assert np.delete(rows["gap"], bad).tolist() == [at for at in range(100) if at not in bad]
    assert np.isnan(rows["gap"][bad]).all()


def test_a_case_that_takes_too_long_is_named():
    assert failed(guard.careful(Calls(hangs=[40]), 64, 64, 64)) == {
        40: "TimeoutError: no result after 1 s"
    }


def test_when_all_take_too_long_few_calls_tell():
    calls = Calls(hangs=range(64))
    assert len(failed(guard.careful(calls, 64, 64, 64))) == 64
    assert len(calls.sizes) == 3


@pytest.mark.parametrize(
    "wrong",
    [
        MemoryError(),
        RuntimeError("RESOURCE_EXHAUSTED: Out of memory"),
        ValueError("CUDA out of memory"),
    ],
)
def test_failures_of_memory_are_known(wrong):
    assert guard.out_of_memory(wrong)
    assert not guard.out_of_memory(ValueError("layer 0 must be positive"))


def test_an_interruption_is_no_failure():
    def stop(places, chunk):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        guard.careful(stop, 10, 64, 64)
