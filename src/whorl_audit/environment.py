"""Check the fields of `environment.json` against the studies.

Whether the machine and the versions are true cannot be told from files; the crate must name the
same ones.
"""

from collections.abc import Iterator
from itertools import permutations
from typing import Any

from whorl_audit.finding import Finding, counted, different
from whorl_audit.folder import Study, sha256

NAME = "environment.json"
WORDS = ("whorl", "sources", "device", "python", "platform", "machine", "processor")
PACKAGES = ("equinox", "jax", "jaxlib", "numpy", "pyarrow", "scipy")
MANY = 6  # studies, beyond which the orders in which they may have been run are not tried


def _faults(said: dict[str, Any], studies: list[Study]) -> Iterator[str]:
    yield from (
        f"{name} is {said.get(name)!r}" for name in WORDS if not isinstance(said.get(name), str)
    )
    cores, packages = said.get("cores"), said.get("packages")
    if cores is not None and (not isinstance(cores, int) or isinstance(cores, bool) or cores < 1):
        yield f"cores is {cores!r}"
    there = packages if isinstance(packages, dict) else {}
    if not all(isinstance(there.get(name), str) for name in PACKAGES):
        yield "packages does not hold a version of each"
    designs = {study.path.name: study.hashes["design"] for study in studies}
    yield from (f"study {name}" for name in different(said.get("designs"), designs))
    yield from (
        f"quick is {said.get('quick')!r}"
        for study in studies
        if said.get("quick") is not study.verdict.get("quick")
    )


def _sources_fault(said: dict[str, Any], studies: list[Study]) -> Iterator[str]:
    """The hash over the sources of all studies, in the order they were run in, which is not
    recorded.
    """
    if len(studies) > MANY or not all(study.verdict.get("registered") is True for study in studies):
        return
    locked = [study.lock.get("sources") for study in studies]
    parts = ["".join(map(str, one.values())) if isinstance(one, dict) else "" for one in locked]
    hashes = {sha256("".join(order).encode()) for order in permutations(parts)}
    if str(said.get("sources")) not in hashes:
        yield "sources is not the hash of those in the locks"


def check(said: dict[str, Any], studies: list[Study]) -> Finding:
    """Compare the environment with the studies."""
    faults = [*_faults(said, studies), *_sources_fault(said, studies)]
    return counted("the environment is that of these studies", faults, NAME)
