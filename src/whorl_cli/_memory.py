"""What a command needs at least, asked before anything heavy is imported.

Libraries without memory end a process without a word.
"""

import os
from pathlib import Path

GB = 10**9
GROUP = Path("/sys/fs/cgroup")
# Address space, (in all, for every core), and memory: measured with the smallest input each command
# takes, and rounded up.
JAX = ((2.4, 0.3), 0.6)
SMALL = ((2.1, 0.3), 0.4)
LIGHT = ((0.8, 0.1), 0.3)
NEEDS = dict.fromkeys(("reproduce", "run", "replicate", "sweep", "explore", "verify"), JAX) | {
    "certify": SMALL,
    "regress": SMALL,
    "report": SMALL,
    "register": LIGHT,
    "compare": LIGHT,
    "cache": LIGHT,
}


def check(command: str) -> None:
    """Refuse where the limits of this process, or what the machine has left, are below what the
    command needs.

    Raises:
        ValueError: In one sentence with the need, the limit and how to raise it.
    """
    if command not in NEEDS:
        return
    (base, each), resident = NEEDS[command]
    space = (base + each * (os.cpu_count() or 1)) * GB
    limit, left = address_space(), available()
    if limit is not None and limit < space:
        raise ValueError(
            f"whorl {command} needs {space / GB:.1f} GB of address space on this machine, but the "
            f"limit is {limit / GB:.2g} GB: "
            "raise it with `ulimit -v unlimited`"
        )
    if left is not None and left < resident * GB:
        raise ValueError(
            f"whorl {command} needs {resident:g} GB of memory, but {left / GB:.2g} GB are "
            "available: end other programs, "
            "or raise the limit of memory of this session"
        )


def room() -> int | None:
    """Bytes of memory that the work of a command may take; None where nobody knows."""
    limit, left = address_space(), available()
    beside = None if limit is None else max(0, limit - 2 * GB)  # what is mapped and never used
    return min((one for one in (beside, left) if one is not None), default=None)


def address_space() -> int | None:
    """The limit on the address space of this process, in bytes; None where there is none."""
    try:
        import resource
    except ModuleNotFoundError:  # not every system has such limits
        return None
    limits = [resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA)]
    return min((limit for limit in limits if limit != resource.RLIM_INFINITY), default=None)


def available() -> int | None:
    """Bytes of memory that a new program can have.

    What the machine has left, or the group of processes that this one is in.
    """
    found = [_meminfo(), _group()]
    return min((one for one in found if one is not None), default=None)


def _meminfo() -> int | None:
    for line in _lines("/proc/meminfo"):
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return None


def _group() -> int | None:
    """Of a control group: its limit less what it uses and could not drop."""
    for most, used, statistics, cached in (
        ("memory.max", "memory.current", "memory.stat", "inactive_file"),
        (
            "memory/memory.limit_in_bytes",
            "memory/memory.usage_in_bytes",
            "memory/memory.stat",
            "total_inactive_file",
        ),
    ):
        limits, uses = _lines(GROUP / most), _lines(GROUP / used)
        if limits and uses and limits[0].isdigit() and uses[0].isdigit():
            kept = next(
                (
                    int(line.split()[1])
                    for line in _lines(GROUP / statistics)
                    if line.split()[0] == cached
                ),
                0,
            )
            return max(0, int(limits[0]) - int(uses[0]) + kept)
    return None


def _lines(path: str | Path) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except (OSError, ValueError):
        return []


def lacking(wrong: BaseException) -> bool:
    """Whether a failure is one of memory, in Python, in Arrow or in XLA."""
    words = str(wrong)
    return isinstance(wrong, MemoryError) or any(
        sign in words for sign in ("RESOURCE_EXHAUSTED", "bad_alloc", "Out of memory")
    )
