"""What the benchmarks share.

Time by the clock and by the processor, in turns, and what machine it was.
"""

import os
import pathlib
import platform
import time
from importlib import metadata


def asked(parser, **small):
    """What the command line asks for.

    With --smoke every default becomes a tiny one, so that a run takes seconds and means nothing.
    """
    parser.add_argument(
        "--smoke",
        action="store_true",
        help="tiny sizes: does it still run? The numbers mean nothing",
    )
    if parser.parse_known_args()[0].smoke:
        parser.set_defaults(**small)
    return parser.parse_args()


def once(call):
    """Seconds of one call: by the clock, and by the processor over all threads of this process."""
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - wall, time.process_time() - cpu


def several(call, seconds):
    """At least one call, and more until `seconds` have passed; the smallest of each clock."""
    results, start = [once(call)], time.perf_counter()
    while time.perf_counter() - start + results[0][0] < seconds:
        results.append(once(call))
    return best(results)


def best(results):
    """The smallest time by each clock: what the work needs when nobody is in the way."""
    return tuple(min(clock) for clock in zip(*results, strict=True))


def in_turns(calls, rounds, seconds=0.3, pause=0.05):
    """Time named calls in turns, so that a busy minute of the machine hits all of them.

    After one call each to warm up.
    """
    for call in calls.values():
        call()
    seen = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            time.sleep(pause)
            seen[name].append(several(call, seconds))
    return {name: best(results) for name, results in seen.items()}


def machine(packages=("jax", "jaxlib", "numpy")):
    """One line on where this runs, and how busy it was already."""
    text = (
        pathlib.Path("/proc/cpuinfo").read_text() if pathlib.Path("/proc/cpuinfo").exists() else ""
    )
    model = next(
        (line.split(":")[1].strip() for line in text.splitlines() if line.startswith("model name")),
        platform.processor(),
    )
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    load = f", load {os.getloadavg()[0]:.1f} before the start" if hasattr(os, "getloadavg") else ""
    return f"{model}, {os.cpu_count()} cores; Python {platform.python_version()}, {versions}{load}"


def version(name):
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


def table(head, rows):
    """Rows of strings as a Markdown table that also reads well as it is."""
    widths = [max(len(line[i]) for line in (head, *rows)) for i in range(len(head))]
    lines = [
        head,
        ["-" * (width - 1) + ":" if i else "-" * width for i, width in enumerate(widths)],
        *rows,
    ]
    aligned = (
        [
            cell.rjust(width) if i else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        for line in lines
    )
    return "\n".join("| " + " | ".join(line) + " |" for line in aligned)
