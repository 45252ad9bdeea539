#!/usr/bin/env python3
"""Tells how the noise of a ratio grows with the distance of its two trials in a block.

Usage: tools/neighbours.py RUN.json… [--out DIR]

RUN.json is what `toll export RUN --json FILE` writes. Each trial's time, over the
median of its treatment, is a residual. Two residuals of one block differ by noise
alone; the table has the standard deviation of that difference, from the median of its
squares, by how many trials apart the two ran. Writes DIR/neighbours.md.
"""

import argparse
import json
import math
import statistics
from collections import defaultdict
from pathlib import Path

DISTANCES = [(1, 1), (2, 3), (4, 7), (8, 15), (16, 31), (32, 127)]
# The median of the square of a standard normal value.
MEDIAN_SQUARE = 0.4549
BLOCKS_MIN = 10


def residuals(document):
    """By block, (position, logarithm of time over the treatment's median) of each trial."""
    blocks, columns = defaultdict(list), defaultdict(list)
    for trial in document["trials"]:
        times = trial["samples"].get("duration_ns")
        if trial["state"] == "completed" and times:
            log = math.log(statistics.median(times))
            blocks[trial["block"]].append((trial["position"], trial["treatment"], log))
            columns[trial["treatment"]].append(log)
    centre = {treatment: statistics.median(logs) for treatment, logs in columns.items()}
    return [[(place, log - centre[one]) for place, one, log in block] for block in blocks.values()]


def deviations(blocks):
    """Percent by range of distances; None without a pair."""
    squares = defaultdict(list)
    for block in blocks:
        for index, (place, log) in enumerate(block):
            for other_place, other in block[:index]:
                squares[abs(place - other_place)].append((log - other) ** 2)
    for low, high in DISTANCES:
        pooled = [square for distance in range(low, high + 1) for square in squares.get(distance, [])]
        yield 100 * math.sqrt(statistics.median(pooled) / MEDIAN_SQUARE) if pooled else None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, default=Path("bench/results"))
    arguments = parser.parse_args()
    heads = [f"{low}" if low == high else f"{low}–{high}" for low, high in DISTANCES]
    lines = ["| experiment | blocks | " + " | ".join(heads) + " |", "|---|--:|" + "--:|" * len(heads)]
    machines = set()
    for path in arguments.runs:
        document = json.loads(path.read_text())
        run, blocks = document["run"], residuals(document)
        if len(blocks) < BLOCKS_MIN:
            continue
        machine = run["machine"]
        machines.add(f"{machine['cpu_model']}, {machine['cpus_online']} CPUs, Linux {machine['kernel_release']}")
        cells = [f"{percent:.1f} %" if percent is not None else "–" for percent in deviations(blocks)]
        lines.append(f"| {run['experiment']} | {len(blocks)} | " + " | ".join(cells) + " |")
    text = "# The noise of a ratio by the distance of its trials\n\n"
    text += "".join(f"- Machine: {machine}\n" for machine in sorted(machines))
    text += "- Command: `tools/neighbours.py`, on the exported runs of a quiet `make run`\n\n"
    text += "Standard deviation of the log-ratio of two trials of one block, by how many trials apart they ran.\n\n"
    (arguments.out / "neighbours.md").write_text(text + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
