"""Each door is tried a few times by `make test` and ten thousand times by `make test-slow`."""

import collections
import time

import jaxtyping
import pytest
from hypothesis import HealthCheck, given, settings

from fuzz.doors import MANY

FEW = 25


@pytest.fixture(
    params=[FEW, pytest.param(MANY, marks=[pytest.mark.slow, pytest.mark.timeout(1800)])],
    ids=["few", "ten thousand"],
)
def fuzz(request):
    """Try examples of a strategy.

    The check says whether each was a result or a refusal, and many examples must show both.
    """

    def tried(strategy, check):
        seen, begun = collections.Counter(), time.process_time()

        def example(drawn):
            seen[check(drawn)] += 1

        checks = [
            HealthCheck.too_slow,
            HealthCheck.data_too_large,
            HealthCheck.large_base_example,
            HealthCheck.filter_too_much,
        ]
        settings(max_examples=request.param, deadline=None, suppress_health_check=checks)(
            given(strategy)(example)
        )()
        print(
            f"{seen[True]} results, {seen[False]} refusals, {time.process_time() - begun:.0f} s of "
            "processor time"
        )
        if request.param == MANY:
            assert seen.total() >= MANY
            assert set(seen) == {True, False}

    return tried


@pytest.fixture(autouse=True, scope="session")
def as_strangers_call_it():
    """Without the run-time type checker of the tests: a stranger has none."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jaxtyping.config, "jaxtyping_disable", True)
        yield
