#!/usr/bin/env python3
"""Computes how long a trial of each treatment takes, for simulated runs.

Usage: tools/trial-times.py RUN.json… [--out FILE]

RUN.json is what `toll export RUN --json FILE` writes. A trial lasts until the next one
starts; the table has the mean over trials. A treatment that was skipped takes no time. A
treatment that the run did not reach is left out. Writes bench/replay-times.json, which
`bench-replay` reads. If an experiment has several runs in a profile, the last one counts.
"""

import argparse
import json
import statistics
from collections import defaultdict
from datetime import datetime
from pathlib import Path


def seconds(text):
    """Returns seconds since the epoch. Python's dates resolve microseconds at most."""
    whole, _, fraction = text.rstrip("Z").partition(".")
    return datetime.fromisoformat(whole + "+00:00").timestamp() + float("0." + (fraction or "0"))


def times(document):
    """Returns the mean seconds of a trial by the label of its treatment."""
    taken = defaultdict(list)
    trials = document["trials"]
    for trial, following in zip(trials, trials[1:] + [None]):
        lasted = trial["wall_ns"] / 1e9
        if following:
            lasted = seconds(following["started_at"]) - seconds(trial["started_at"])
        taken[trial["treatment"]].append(lasted)
    found = {}
    for treatment in document["treatments"]:
        own = taken.get(treatment["index"], [])
        if treatment["twin_of"] is None and (own or treatment["skipped"]):
            found[treatment["label"]] = round(statistics.fmean(own), 4) if own else 0.0
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, default=Path("bench/replay-times.json"))
    arguments = parser.parse_args()
    found = {}
    for path in arguments.runs:
        document = json.loads(path.read_text())
        run = document["run"]
        found[f"{run['experiment']} {run['profile']}"] = times(document)
    arguments.out.write_text(json.dumps(found, indent=0, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
