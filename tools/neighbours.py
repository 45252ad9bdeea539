#!/usr/bin/env python3
"""Measures how trials of one block affect each other: shared noise, and dirty pages.

Usage: tools/neighbours.py RUN.json… [--out DIR]

RUN.json is what `toll export RUN --json FILE` writes. Each trial's time, divided by the
median of its treatment, is a residual. Two residuals of one block differ only by noise.
The first table has the standard deviation of that difference, from the median of its
squares, by the number of trials between the two. The second table divides the trials of
each treatment by whether they began with more dirty pages than the median. If dirty pages
of one trial delay the next trial, these trials take longer. Next to the difference is the
bound within which 95 % of random divisions of the same trials stay.
Writes DIR/neighbours.md.
"""

import argparse
import json
import math
import random
import statistics
from collections import defaultdict
from pathlib import Path

DISTANCES = [(1, 1), (2, 3), (4, 7), (8, 15), (16, 31), (32, 127)]
# The median of the square of a standard normal value.
MEDIAN_SQUARE = 0.4549
BLOCKS_MIN = 10
# Minimum number of trials on each side of a comparison.
SIDE_MIN = 20
DIVISIONS = 400


def residuals(document):
    """Returns, by block, (position, treatment, logarithm of time over the treatment's median, dirty bytes)."""
    blocks, columns = defaultdict(list), defaultdict(list)
    for trial in document["trials"]:
        times = trial["samples"].get("duration_ns")
        if trial["state"] == "completed" and times:
            log = math.log(statistics.median(times))
            dirty = trial["disturbance"].get("dirty_bytes_before", 0)
            blocks[trial["block"]].append((trial["position"], trial["treatment"], log, dirty))
            columns[trial["treatment"]].append(log)
    centre = {treatment: statistics.median(logs) for treatment, logs in columns.items()}
    return [
        [(place, one, log - centre[one], dirty) for place, one, log, dirty in block]
        for block in blocks.values()
    ]


def deviations(blocks):
    """Yields the deviation in percent for each range of distances; None without a pair."""
    squares = defaultdict(list)
    for block in blocks:
        for index, (place, _, log, _) in enumerate(block):
            for other_place, _, other, _ in block[:index]:
                squares[abs(place - other_place)].append((log - other) ** 2)
    for low, high in DISTANCES:
        pooled = [square for distance in range(low, high + 1) for square in squares.get(distance, [])]
        yield 100 * math.sqrt(statistics.median(pooled) / MEDIAN_SQUARE) if pooled else None


def dirty_row(blocks):
    """Returns the dirty MiB at the start of each trial, sorted, and the effect of more. None with too few trials."""
    columns = defaultdict(list)
    for block in blocks:
        middle = statistics.median(log for _, _, log, _ in block)
        for _, treatment, log, dirty in block:
            columns[treatment].append((log - middle, dirty))
    groups = []
    for trials in columns.values():
        usual = statistics.median(dirty for _, dirty in trials)
        groups.append(([log for log, _ in trials], [dirty > usual for _, dirty in trials]))
    more = sum(sum(is_more) for _, is_more in groups)
    count = sum(len(logs) for logs, _ in groups)
    every = sorted(dirty / 2**20 for trials in columns.values() for _, dirty in trials)
    if min(more, count - more) < SIDE_MIN:
        return every, None

    def difference(groups):
        sides = [], []
        for logs, is_more in groups:
            for log, side in zip(logs, is_more):
                sides[side].append(log)
        return statistics.median(sides[1]) - statistics.median(sides[0])

    shuffled = random.Random(1)
    chance = []
    for _ in range(DIVISIONS):
        drawn = [(logs, shuffled.sample(is_more, len(is_more))) for logs, is_more in groups]
        chance.append(abs(difference(drawn)))
    return every, (difference(groups), sorted(chance)[int(0.95 * DIVISIONS)])


def percent(log):
    return f"{100 * math.expm1(log):.2f} %"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, default=Path("bench/results"))
    arguments = parser.parse_args()
    heads = [f"{low}" if low == high else f"{low}–{high}" for low, high in DISTANCES]
    lines = ["| experiment | blocks | " + " | ".join(heads) + " |", "|---|--:|" + "--:|" * len(heads)]
    dirty_lines = [
        "| experiment | trials | median MiB | most MiB | with more | by chance |",
        "|---|--:|--:|--:|--:|--:|",
    ]
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
        every, effect = dirty_row(blocks)
        cells = [f"{statistics.median(every):.1f}", f"{every[-1]:.1f}"]
        cells += [f"{100 * math.expm1(effect[0]):+.2f} %", f"± {percent(effect[1])}"] if effect else ["–", "–"]
        dirty_lines.append(f"| {run['experiment']} | {len(every)} | " + " | ".join(cells) + " |")
    text = "# How trials of one block affect each other\n\n"
    text += "".join(f"- Machine: {machine}\n" for machine in sorted(machines))
    text += "- Command: `tools/neighbours.py`, on the exported runs of a quiet `make run`\n\n"
    text += "Standard deviation of the log-ratio of two trials of one block, by how many trials apart they ran.\n\n"
    text += "\n".join(lines) + "\n\n## Dirty pages at the start of a trial\n\n"
    text += "How much longer trials take if they begin with more dirty pages than the median of their treatment, each over the\n"
    text += "median of its block; and the bound within which 95 % of random divisions of the same trials stay.\n\n"
    (arguments.out / "neighbours.md").write_text(text + "\n".join(dirty_lines) + "\n")


if __name__ == "__main__":
    main()
