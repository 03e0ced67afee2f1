"""Designs for tests, as a user would write them."""

from pathlib import Path

from whorl import sweep

GRID = """name = "mine"
title = "a small grid"
design = "grid"
seed = 5
trials = 5
flips = true
chunk = 64
shard = 50

[network]
imbalance = [0.0, 4.0, 8.0]

[policy]
policy = ["step_matched", "adaptive"]
scale = [0.1, 0.2]

[schedule]
epochs = 2
"""
RANDOM = """name = "thrown"
title = "a small random design"
design = "random"
seed = 6
points = 40
chunk = 64
shard = 64

[network]
imbalance = { from = 0, to = 8 }

[law]
leak = { from = 0.01, to = 1, log = true }

[policy]
omega = { from = 0.5, to = 2 }
scale = [0.1, 0.2]

[schedule]
epochs = 2
"""


def design(text=GRID, **others):
    """A checked design; `others` take the place of lines."""
    return sweep.parse(changed(text, **others).encode(), "mine.toml")


def changed(text, **others):
    for key, value in others.items():
        lines = [
            f"{key} = {value}" if line.split(" = ")[0] == key else line
            for line in text.splitlines()
        ]
        text = "\n".join(lines) + "\n"
    return text


def files(folder):
    """The names of all shards; the hash in each is that of its bytes."""
    return sorted(path.name for path in Path(folder).glob("shards/*.parquet"))
