#!/usr/bin/env python3
"""Measures the overhead that two probes add to a trial, in interleaved runs.

Usage: tools/empty-region.py OLD NEW [--blocks N] [--out DIR]

OLD and NEW are toll-probe programs that speak the same version of the wire format.
Every block runs both, in random order, for one iteration of each region: the
call of an empty function, the command `true`, and a copy of one byte into a
pipe. Writes a table to DIR/region.md, and every value to DIR/region.json.
"""

import argparse
import json
import platform
import random
import statistics
import subprocess
import sys
from pathlib import Path

COUNTERS = ["cycles", "instructions", "page-faults", "context-switches", "cpu-migrations", "task-clock-ns"]
METRICS = ["duration_ns", "cpu_ns", "minor_faults", "voluntary_switches"]
REGIONS = {
    "the call of an empty function": {
        "kind": "crossing", "operation": "user-call", "size": 1, "calls": 1, "cpus": "one",
    },
    "the command `true`": {
        "kind": "command", "command": "true", "shell": "none", "prepare": None, "output": "null",
        "capture_bytes_max": 0, "ignore_failure": False, "directory": None,
    },
    "one byte into a pipe": {
        "kind": "copy", "method": "page", "source": "zero", "sink": "pipe", "cache": "warm",
        "size": 1, "buffer": None, "@directory": "/tmp",
    },
}


def measure(probe, workload, missing):
    request = {
        "version": 1, "workload": workload, "iterations": 1, "warmup_iterations": 0,
        "may_leave_processes": False, "counters": COUNTERS,
    }
    answer = subprocess.run([probe], input=json.dumps(request) + "\n", capture_output=True, text=True, check=True)
    outcome = json.loads(answer.stdout)["outcome"]
    if "completed" not in outcome:
        sys.exit(f"{probe}: {outcome}")
    sample = outcome["completed"]["samples"][0]
    missing.update(outcome["completed"]["counters_missing"])
    metrics = sample["metrics"] | {"cpu_ns": sample["metrics"]["user_ns"] + sample["metrics"]["system_ns"]}
    counts = {name: reading["count"] for name, reading in sample["counters"].items()}
    return {name: metrics[name] for name in METRICS} | counts


def interval(values):
    """Returns the exact 95 % interval of a median (order statistics)."""
    values, n, tail, rank = sorted(values), len(values), 0.0, 0
    term = 0.5**n
    while tail + term <= 0.025:
        tail += term
        term *= (n - rank) / (rank + 1)
        rank += 1
    return (values[rank - 1], values[n - rank]) if rank else (float("-inf"), float("inf"))


def render(document):
    lines = ["# What the probe adds to a trial", ""]
    lines += [f"- {name}: {document[name]}" for name in ("machine", "command", "blocks")]
    lines += [f"- not counted: {why}" for why in document["missing"].values()]
    for region, by_name in document["values"].items():
        lines += ["", f"## {region[0].upper()}{region[1:]}", ""]
        lines += ["| | old | new | new less old, of one block |", "|---|---|---|---|"]
        for name, (old, new) in by_name.items():
            differences = [b - a for a, b in zip(old, new)]
            low, high = interval(differences)
            medians = [f"{statistics.median(values):g}" for values in (old, new, differences)]
            lines.append(f"| `{name}` | {medians[0]} | {medians[1]} | {medians[2]} [{low:g}, {high:g}] |")
    lines += ["", "Medians of fresh processes with one iteration each, interleaved in random order, and the exact 95 % interval of the",
              "median difference. `cpu_ns` is user and system time together. A high load means that the machine was busy with other work.", ""]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--blocks", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("bench/results"))
    arguments = parser.parse_args()
    random.seed(arguments.seed)
    probes, missing, values = (arguments.old, arguments.new), {}, {}
    load = Path("/proc/loadavg").read_text().split()[0]
    for _ in range(arguments.blocks):
        for region, workload in random.sample(list(REGIONS.items()), len(REGIONS)):
            for index in random.sample((0, 1), 2):
                for name, value in measure(probes[index], workload, missing).items():
                    values.setdefault(region, {}).setdefault(name, ([], []))[index].append(value)
    document = {
        "machine": f"Linux {platform.release()}, load before the run {load}",
        "command": " ".join(["tools/empty-region.py", *sys.argv[1:]]),
        "blocks": arguments.blocks,
        "missing": missing,
        "values": {region: values[region] for region in REGIONS},
    }
    table = render(document)
    (arguments.out / "region.md").write_text(table)
    (arguments.out / "region.json").write_text(json.dumps(document) + "\n")
    print(table)


if __name__ == "__main__":
    main()
