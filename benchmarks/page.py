"""Run the benchmarks that take under two minutes each, and write one page with pictures of ratios.

The page is Markdown beside its pictures, in `benchmarks/results` unless told otherwise. Numbers are
those of this machine as busy as it is; the first line of each table says how busy that was.

    python benchmarks/page.py                     # `make bench`: about six minutes on two cores
"""

import argparse
import pathlib
import re
import subprocess
import sys
import time

import matplotlib.pyplot as plt
import timing

HERE = pathlib.Path(__file__).parent
SHORT = {  # script, arguments, and the column of ratios to draw, if any
    "widths": (["--grid", "page", "--rounds", "1"], "times NumPy"),
    "ensemble": (["--pairs", "480", "--depths", "4", "--rounds", "1"], "times NumPy, clock"),
    "accelerator": (["--pairs", "1024", "--epochs", "3"], None),
    "cold_start": (["--repeats", "1"], None),
    "wide": ([], None),
    "joint": ([], None),
    "ahead": ([], None),
    "graph": ([], None),
    "certify": (["--rows", "100000"], None),
}


def tables(text):
    """The Markdown tables of a text, each as its head and its rows."""
    found = []
    for block in re.findall(r"(?:^\|.*\|\n)+", text, re.MULTILINE):
        lines = [
            [cell.strip() for cell in line.strip("|").split("|")] for line in block.split("\n")
        ]
        head, _, *rows = [line for line in lines if line != [""]]
        found.append((head, rows))
    return found


def drawn(text, column, path):
    """Bars of one column of the first table that has it, on a logarithmic axis; NumPy is 1."""
    head, rows = next(table for table in tables(text) if column in table[0])
    at = head.index(column)
    names, ratios = [row[0] for row in rows], [float(row[at]) for row in rows]
    figure, ax = plt.subplots(figsize=(8, 0.6 + 0.32 * len(rows)), layout="constrained")
    ax.barh(names, ratios, color="#0072b2")
    for number, ratio in enumerate(ratios):
        ax.annotate(f" {ratio:.3g}", (ratio, number), va="center", fontsize=8)
    ax.axvline(1, color="black", linewidth=0.8)
    ax.set(xscale="log", xlabel=f"{column} (the line at 1 is NumPy)")
    ax.set_xlim(left=max(1e-3, min(0.5, *ratios) / 1.5), right=2.5 * max(ratios))
    ax.invert_yaxis()
    ax.tick_params(axis="y", labelsize=8)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def section(name, out, smoke):
    """One benchmark: what it asks, its picture, what it printed."""
    more, column = SHORT[name]
    script = HERE / f"{name}.py"
    question = " ".join(script.read_text().split('"""')[1].split("?")[0].split()) + "?"
    command = [sys.executable, str(script), *(["--smoke"] if smoke else more)]
    begun = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    picture = ""
    if column is not None:
        drawn(done.stdout, column, out / f"{name}.png")
        picture = f"![{column}, one bar per row of the table below]({name}.png)\n\n"
    taken = f"`{name}.py {' '.join(more)}`, {time.perf_counter() - begun:.0f} s"
    printed = re.sub(r"(?m)^([^|\n].*)\n\|", r"\1\n\n|", done.stdout.strip())  # a table after a gap
    return f"## {question}\n\n{taken}\n\n{picture}{printed}\n"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=pathlib.Path, default=HERE / "results")
    parser.add_argument("--only", nargs="+", choices=SHORT, default=list(SHORT))
    asked = timing.asked(parser, out=pathlib.Path("bench"), only=["widths", "ensemble"])
    asked.out.mkdir(parents=True, exist_ok=True)
    parts = [section(name, asked.out, asked.smoke) for name in asked.only]
    page = asked.out / "bench.md"
    page.write_text("\n".join([f"# Benchmarks\n\n{timing.machine()}\n", *parts]))
    rows = [[name, str(page)] for name in asked.only]
    print(timing.table(["benchmark", "page"], rows))


if __name__ == "__main__":
    main()
