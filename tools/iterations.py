#!/usr/bin/env python3
"""Computes how many iterations a trial should have.

Usage: tools/iterations.py RUN.json… [--costs RUN.json…] [--out DIR]

RUN.json is what `toll export RUN --json FILE` writes, for a run with at least two
iterations per trial. The script uses logarithms of times. It computes the variance between
the iterations of a trial and between the trials of a treatment, without what the trials of
a block have in common. --costs names runs of the same experiments with different numbers
of iterations. They show the cost of an iteration, including preparation. Without --costs,
that cost is the timed part of a trial. Writes DIR/iterations.md.
"""

import argparse
import json
import math
import statistics
from collections import defaultdict
from pathlib import Path

COUNTS = [1, 2, 3, 5, 10, 20]
TRIALS_MIN = 5


class Trial:
    def __init__(self, record):
        times = record["samples"]["duration_ns"]
        self.block = record["block"]
        self.logs = [math.log(one) for one in times]
        self.timed_s = sum(times) / 1e9
        self.wall_s = record["wall_ns"] / 1e9


def read(path):
    """Returns the run's record (experiment, machine), and its completed trials by treatment."""
    document = json.loads(path.read_text())
    trials = defaultdict(list)
    for record in document["trials"]:
        times = record["samples"].get("duration_ns")
        if record["state"] == "completed" and times and min(times) > 0:
            label = document["treatments"][record["treatment"]]["label"]
            trials[label].append(Trial(record))
    return document["run"], trials


def variances(trials):
    """Returns, by treatment, the variance between iterations and that between trials."""
    centres = {label: statistics.median(statistics.fmean(one.logs) for one in own) for label, own in trials.items()}
    blocks = defaultdict(list)
    for label, own in trials.items():
        for one in own:
            blocks[one.block].append(statistics.fmean(one.logs) - centres[label])
    common = {block: statistics.median(values) for block, values in blocks.items()}
    found = {}
    for label, own in trials.items():
        count = len(own[0].logs)
        if len(own) < TRIALS_MIN or count < 2:
            continue
        # Later iterations may all be faster than the first.
        habit = [statistics.median(one.logs[place] for one in own) for place in range(count)]
        residuals = ([log - usual for log, usual in zip(one.logs, habit)] for one in own)
        within = statistics.fmean(statistics.variance(one) for one in residuals)
        means = statistics.variance(statistics.fmean(one.logs) - common[one.block] for one in own)
        found[label] = (within, max(means - within / count, 0.0))
    return found


def distances(trials, value):
    """Returns, by treatment, the median distance of a trial's value from the centre of its treatment and its block."""
    residuals, blocks = defaultdict(list), defaultdict(list)
    for label, own in trials.items():
        centre = statistics.median(value(one) for one in own)
        for one in own:
            residuals[label].append((one.block, value(one) - centre))
            blocks[one.block].append(value(one) - centre)
    common = {block: statistics.median(values) for block, values in blocks.items()}
    return {label: statistics.median(abs(log - common[block]) for block, log in own) for label, own in residuals.items()}


def noise_of_one(trials, count):
    """Returns the squared distance of single iterations divided by that of medians, as the median over treatments."""
    whole = distances(trials, lambda one: statistics.median(one.logs))
    single = [distances(trials, lambda one: one.logs[place]) for place in range(count)]
    squares = [
        statistics.fmean(one[label] for one in single) ** 2 / whole[label] ** 2 for label in whole if whole[label] > 0
    ]
    return statistics.median(squares)


def costs(own, others):
    """Returns the seconds of an iteration and of the rest of a trial."""
    by_count = {len(one[0].logs): statistics.median(trial.wall_s for trial in one) for one in others if one}
    if len(by_count) > 1:
        (few, short), (many, long) = min(by_count.items()), max(by_count.items())
        # On a busy machine, noise may hide the small cost of an iteration.
        floor = statistics.median(trial.timed_s / len(trial.logs) for one in others for trial in one)
        iteration = max((long - short) / (many - few), floor)
        return iteration, max(short - few * iteration, 0.0)
    count = len(own[0].logs)
    timed = statistics.fmean(trial.timed_s for trial in own)
    return timed / count, statistics.fmean(trial.wall_s for trial in own) - timed


def row(run, trials, others):
    """Returns a line of the table."""
    found = variances(trials)
    prices = {label: costs(trials[label], [other[label] for other in others]) for label in found}
    planned = len(next(iter(trials.values()))[0].logs)

    def gain(count):
        """Returns the precision per time relative to the recorded number of iterations."""
        block_s = [sum(rest + many * one for one, rest in prices.values()) for many in (planned, count)]
        noise = [
            (between + within / planned) / (between + within / count)
            for within, between in found.values()
            if between + within > 0
        ]
        return statistics.median(noise) * block_s[0] / block_s[1]

    def best(label):
        """Returns the best number of iterations (Kalibera and Jones 2013)."""
        (within, between), (one, rest) = found[label], prices[label]
        return math.sqrt(rest / one * within / between) if between > 0 else math.inf

    def deviation(part):
        return f"{100 * math.sqrt(statistics.median(pair[part] for pair in found.values())):.1f} %"

    share = sum(planned * one for one, _ in prices.values()) / sum(planned * one + rest for one, rest in prices.values())
    own_best = statistics.median(best(label) for label in found)
    cells = [run["experiment"], planned, len(found), deviation(0), deviation(1), f"{100 * share:.0f} %"]
    cells.append("∞" if math.isinf(own_best) else f"{own_best:.1f}")
    block_s = [sum(rest + many * one for one, rest in prices.values()) for many in (planned, 1)]
    ranked = block_s[0] / block_s[1] / noise_of_one(trials, planned)
    return cells + [f"{gain(count):.2f}" for count in COUNTS] + [f"{ranked:.2f}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--costs", nargs="*", type=Path, default=[])
    parser.add_argument("--out", type=Path, default=Path("bench/results"))
    arguments = parser.parse_args()
    pilots = [read(path) for path in arguments.costs]
    heads = ["experiment", "recorded", "treatments", "between iterations", "between trials", "share of the time", "best"]
    heads += [f"{count}" for count in COUNTS] + ["1, by distance"]
    lines, machines = [], set()
    for path in arguments.runs:
        run, trials = read(path)
        if not trials or len(next(iter(trials.values()))[0].logs) < 2:
            continue
        machine = run["machine"]
        machines.add(f"{machine['cpu_model']}, {machine['cpus_online']} CPUs, Linux {machine['kernel_release']}")
        others = [other for pilot, other in pilots if pilot["experiment"] == run["experiment"]]
        lines.append("| " + " | ".join(map(str, row(run, trials, others))) + " |")
    text = "# How many iterations a trial should have\n\n"
    text += "".join(f"- Machine: {machine}\n" for machine in sorted(machines))
    text += "- Command: `tools/iterations.py`, on exported runs; runs with 4 iterations are pilots on a busy machine, of experiments that have 1\n\n"
    text += "Standard deviations of logarithms: medians over treatments. *Share of the time*: that of the iterations in a block's time. *Best*: the square root of the "
    text += "ratio of costs times that of variances (Kalibera and Jones 2013). The numbers: precision per time with this many iterations in every trial of a "
    text += "block, relative to the recorded number. *1, by distance*: the same by the median distance from the centre, which ranks follow, not by the variance.\n\n"
    text += "\n".join(["| " + " | ".join(heads) + " |", "|---|" + "--:|" * (len(heads) - 1)] + lines) + "\n"
    (arguments.out / "iterations.md").write_text(text)


if __name__ == "__main__":
    main()
