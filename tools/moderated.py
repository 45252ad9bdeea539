#!/usr/bin/env python3
"""Compares t-tests, plain and moderated, with the exact signed-rank test on recorded noise.

Usage: tools/moderated.py [--noise FILE] [--runs N] [--out DIR]

Each simulated run has one claim for each pair of treatments that are adjacent in the
noise (20 at most). Claims are one-sided, together at 5 % by Holm's procedure. Blocks are
drawn as in bench-replay: all treatments of a recorded block together. The moderated
t-test (Smyth 2004) shrinks each claim's variance towards those of the run's other claims.
Writes DIR/moderated.md.
"""

import argparse
import functools
import json
import math
import random
import statistics
from pathlib import Path

BLOCKS = [5, 8, 10, 20]
EFFECTS = [1, 2, 4]
ERROR = 0.05
CLAIMS_MAX = 20
RECORDED_MIN = 8
SMOOTHING = 0.1
STEP = 1e-5
# Claims on counts may have no noise.
DEVIATION_MIN = 1e-4


def betainc(a, b, x):
    """Regularised incomplete beta function by Lentz's continued fraction."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - betainc(b, a, 1 - x)
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    tiny = 1e-300
    c, d = 1.0, 1 / max(1 - (a + b) * x / (a + 1), tiny)
    fraction = d
    for m in range(1, 300):
        for numerator in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / (1 + numerator * d or tiny)
            c = 1 + numerator / c or tiny
            fraction *= c * d
        if abs(c * d - 1) < 1e-12:
            break
    return front * fraction / a


def upper_tail(t, freedom):
    """Returns the probability that Student's t is above `t`."""
    if math.isinf(freedom):
        return 0.5 * math.erfc(t / math.sqrt(2))
    tail = 0.5 * betainc(freedom / 2, 0.5, freedom / (freedom + t * t))
    return tail if t > 0 else 1 - tail


def digamma(x):
    shift = 0.0
    while x < 8:
        shift -= 1 / x
        x += 1
    y = 1 / (x * x)
    return shift + math.log(x) - 0.5 / x - y * (1 / 12 - y * (1 / 120 - y / 252))


def trigamma(x):
    shift = 0.0
    while x < 8:
        shift += 1 / (x * x)
        x += 1
    y = 1 / (x * x)
    return shift + 1 / x + y / 2 + y / x * (1 / 6 - y * (1 / 30 - y / 42))


def trigamma_inverse(value):
    low, high = 1e-6, 1e9
    for _ in range(100):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if trigamma(middle) > value else (low, middle)
    return math.sqrt(low * high)


def prior(variances, freedom):
    """Returns the degrees of freedom and the variance of the prior: Smyth 2004, section 6.2."""
    logs = [math.log(one) - digamma(freedom / 2) + math.log(freedom / 2) for one in variances]
    mean = statistics.fmean(logs)
    excess = (statistics.variance(logs) if len(logs) > 1 else 0.0) - trigamma(freedom / 2)
    if excess <= 0:
        return math.inf, math.exp(mean)
    half = trigamma_inverse(excess)
    return 2 * half, math.exp(mean + digamma(half) - math.log(half))


def moderated(series):
    """Returns one-sided p-values for a mean above 0."""
    blocks = len(series[0])
    freedom = blocks - 1
    variances = [max(statistics.variance(one), 1e-20) for one in series]
    added, level = prior(variances, freedom)
    p_values = []
    for one, variance in zip(series, variances):
        pooled = level if math.isinf(added) else (added * level + freedom * variance) / (added + freedom)
        t = statistics.fmean(one) / math.sqrt(pooled / blocks)
        p_values.append(upper_tail(t, added + freedom))
    return p_values


def student(series):
    """Returns one-sided p-values for a mean above 0."""
    p_values = []
    for one in series:
        deviation = math.sqrt(max(statistics.variance(one), 1e-20) / len(one))
        p_values.append(upper_tail(statistics.fmean(one) / deviation, len(one) - 1))
    return p_values


@functools.lru_cache(None)
def rank_sum_tail(blocks):
    """Returns, by rank sum, the probability of at least this sum without an effect."""
    counts = [1] + [0] * (blocks * (blocks + 1) // 2)
    for rank in range(1, blocks + 1):
        for place in range(len(counts) - 1, rank - 1, -1):
            counts[place] += counts[place - rank]
    tails, above = [], 0
    for count in reversed(counts):
        above += count
        tails.append(above / 2**blocks)
    return tails[::-1]


def signed_rank(series):
    """Returns one-sided p-values for a pseudo-median above 0."""
    p_values = []
    for one in series:
        by_distance = sorted(one, key=abs)
        total = sum(rank for rank, value in enumerate(by_distance, 1) if value > 0)
        p_values.append(rank_sum_tail(len(one))[total])
    return p_values


TESTS = {"signed-rank": signed_rank, "t": student, "moderated t": moderated}


def holm(p_values):
    """Returns, for each claim, whether it is decided."""
    decided = [False] * len(p_values)
    for done, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        if p_values[place] > ERROR / (len(p_values) - done):
            break
        decided[place] = True
    return decided


class Noise:
    """Contrasts of one experiment, drawn by blocks."""

    def __init__(self, run):
        metrics = [metric for one in run["treatments"] for metric in one["metrics"]]
        is_time = lambda metric: metric.startswith(("duration", "throughput", "latency"))
        metric = max(sorted(set(metrics)), key=lambda one: (is_time(one), metrics.count(one)), default=None)
        self.rows = []
        for one in run["treatments"]:
            steps = one["metrics"].get(metric, {"deviations": []})["deviations"]
            known = [step * STEP for step in steps if step is not None]
            if len(known) < RECORDED_MIN or one["is_twin"]:
                continue
            scale = math.sqrt(len(known) / (len(known) - 1))
            row = [None if step is None else scale * step * STEP for step in steps]
            known = [value for value in row if value is not None]
            jitter = SMOOTHING * statistics.median(map(abs, known)) / 0.6745
            self.rows.append((row, known, jitter))
        self.blocks = run["blocks"]
        self.pairs = list(zip(range(len(self.rows)), range(1, len(self.rows))))
        generator = random.Random(1)
        trial = self.run(400, generator)
        varying = [pair for pair, values in zip(self.pairs, trial) if spread(values) > DEVIATION_MIN]
        self.pairs = varying[:CLAIMS_MAX]
        trial = self.run(10_000, generator)
        self.deviations = [spread(values) for values in trial]
        # toll estimates the pseudo-median. A single block may dominate the mean, so a t-test of
        # the mean errs far more often.
        self.centres = [pseudo_median(values) for values in trial]

    def draw(self, generator):
        """Returns the log-ratio of each pair in one drawn block."""
        block = generator.randrange(self.blocks)
        values = []
        for row, known, jitter in self.rows:
            value = row[block] if block < len(row) else None
            value = generator.choice(known) if value is None else value
            values.append(value + jitter * generator.gauss(0, 1))
        return [values[of] - values[to] for of, to in self.pairs]

    def run(self, blocks, generator):
        return list(zip(*(self.draw(generator) for _ in range(blocks))))


def spread(values):
    """Estimates the standard deviation by the median distance from the median."""
    middle = statistics.median(values)
    return statistics.median(abs(value - middle) for value in values) / 0.6745


def pseudo_median(values):
    half = len(values) // 2
    return statistics.median((a + b) / 2 for a, b in zip(values[:half], values[half:]))


def errors(noise, blocks, runs, generator):
    """Returns the share of runs without effects that have any wrong verdict, in the worse of two directions."""
    wrong = {name: [0, 0] for name in TESTS}
    for _ in range(runs):
        drawn = noise.run(blocks, generator)
        centred = [[v - c for v in one] for one, c in zip(drawn, noise.centres)]
        for name, test in TESTS.items():
            for side, sign in enumerate((1, -1)):
                p_values = test([[sign * v for v in one] for one in centred])
                wrong[name][side] += min(p_values) <= ERROR / len(p_values)
    return {name: max(count) / runs for name, count in wrong.items()}


def powers(noise, blocks, effect, runs, generator):
    """Returns the share of claims decided, and of those that only their worst block leaves open."""
    decided, vetoed = dict.fromkeys(TESTS, 0), dict.fromkeys(TESTS, 0)
    for _ in range(runs):
        sides = zip(noise.run(blocks, generator), noise.centres, noise.deviations)
        shifted = [[v - c + effect * d for v in one] for one, c, d in sides]
        for name, test in TESTS.items():
            found = holm(test(shifted))
            decided[name] += sum(found)
            without = test([sorted(one)[1:] for one in shifted])
            level = ERROR / len(shifted)
            vetoed[name] += sum(p <= level and not was for p, was in zip(without, found))
    claims = runs * len(noise.pairs)
    return {name: (decided[name] / claims, vetoed[name] / claims) for name in TESTS}


def percent(share):
    return f"{100 * share:.1f}"


def both(results, form=percent):
    return " | ".join(form(results[name]) for name in TESTS)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--noise", type=Path, default=Path("bench/replay-noise.json"))
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--out", type=Path, default=Path("bench/results"))
    arguments = parser.parse_args()
    document = json.loads(arguments.noise.read_text())
    recorded = {}
    for run in document["runs"]:
        if run["treatments"] and run["blocks"] >= RECORDED_MIN:
            recorded[run["experiment"]] = Noise(run)
    recorded = {name: noise for name, noise in recorded.items() if len(noise.pairs) > 1}
    generator = random.Random(1)
    heads = [f"{blocks}: {name}" for blocks in BLOCKS for name in TESTS]
    rule = "--:|" * len(heads)
    text = "# Signed ranks or a moderated t-test\n\n"
    text += f"- Noise: {document['machine']}\n- Command: `tools/moderated.py --runs {arguments.runs}`\n"
    text += "\n## Runs with any wrong verdict, in percent\n\nNo claim has an effect; 5 are allowed. By number of blocks and test, in the worse of the two directions.\n\n"
    text += f"| noise of | claims | {' | '.join(heads)} |\n|---|--:|{rule}\n"
    for name, noise in recorded.items():
        cells = [both(errors(noise, blocks, arguments.runs, generator)) for blocks in BLOCKS]
        text += f"| {name} | {len(noise.pairs)} | {' | '.join(cells)} |\n"
    text += "\n## Claims decided, in percent\n\nMean over the experiments, with an effect of this many standard deviations of a claim's log-ratio. "
    text += "In brackets: left open, but decided without their worst block.\n\n"
    text += f"| effect | {' | '.join(heads)} |\n|--:|{rule}\n"
    for effect in EFFECTS:
        cells = []
        for blocks in BLOCKS:
            found = [powers(one, blocks, effect, arguments.runs // 4, generator) for one in recorded.values()]
            mean = {
                name: [statistics.fmean(one[name][part] for one in found) for part in (0, 1)] for name in TESTS
            }
            cells.append(both(mean, lambda pair: f"{percent(pair[0])} ({percent(pair[1])})"))
        text += f"| {effect} | {' | '.join(cells)} |\n"
    (arguments.out / "moderated.md").write_text(text)


if __name__ == "__main__":
    main()
