#!/usr/bin/env python3
"""Makes tables of many machines, and measures what a report on them takes.

    bench-fleet.py TOLL [--machines N,N,...]    prints the result in Markdown

Every machine has the run of one experiment, with the times of one side multiplied by a factor
of its own.
"""
import argparse
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

EXPERIMENT = """
format = 1
name = 'clocks'
metric = 'duration_per_call_ns'
[workload]
kind = 'crossing'
calls = 100
[run]
iterations = 25
[[factor]]
name = 'operation'
levels = ['vdso', 'clock-syscall']
[[claim]]
id = 'clocks.vdso'
text = 'the vDSO takes less than half the time'
of = { operation = 'vdso' }
to = { operation = 'clock-syscall' }
direction = 'less'
threshold = 0.5
"""
METRIC = "duration_per_call_ns"
FILE_SYSTEMS = ["ext4", "xfs", "btrfs", "tmpfs"]


def toll(*arguments):
    command = [args.toll, *map(str, arguments)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def varied(run, number, rng):
    """The run as another machine would have made it."""
    run = json.loads(run)
    run["run"]["uid"] = f"{number:016x}"
    machine = run["run"]["machine"]
    machine["hostname"] = f"node{number}"
    machine["kernel_release"] = f"6.{number % 5}.0"
    machine["work_file_system"]["kind"] = FILE_SYSTEMS[number % len(FILE_SYSTEMS)]
    factor = 1.5 ** rng.gauss(0, 1)
    for trial in run["trials"]:
        if trial["treatment"] == 0:
            samples = trial["samples"][METRIC]
            trial["samples"][METRIC] = [factor * sample for sample in samples]
    run["analysis"] = None
    return json.dumps(run)


def tables_of(machines, directory):
    """Tables of so many machines; gives how many samples they hold."""
    file = directory / "clocks.toml"
    file.write_text(EXPERIMENT)
    store = directory / "one.sqlite"
    toll("run", "-q", "--no-html", "-r", 12, "--store", store, file)
    run = toll("export", "last", "--json", "-", "--store", store)
    samples = sum(len(v) for t in json.loads(run)["trials"] for v in t["samples"].values())
    rng = random.Random(1)
    for number in range(machines):
        document = directory / "run.json"
        document.write_text(varied(run, number, rng))
        own = directory / "node.sqlite"
        own.unlink(missing_ok=True)
        toll("import", "--store", own, document)
        toll("export", "--parquet", directory / "tables", "--store", own)
        if number % 100 == 99:
            print(f"{number + 1} machines", file=sys.stderr, flush=True)
    return samples * machines


def reported(directory):
    """Seconds and largest memory in MB of a report with a page."""
    begin = time.monotonic()
    page = directory / "page.html"
    command = [args.toll, "fleet", "report", directory / "tables", "--html", page]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0
    return time.monotonic() - begin, usage.ru_maxrss / 1e3, page.stat().st_size / 1e3


def size_of(directory):
    return sum(file.stat().st_size for file in directory.rglob("*.parquet")) / 1e6


def main():
    print("# Reports on many machines\n")
    print(f"`make bench-fleet`, {toll('--version').strip()}. Each machine has one run.\n")
    print("| machines | samples | tables | report: seconds | largest memory | page |")
    print("|--:|--:|--:|--:|--:|--:|")
    for machines in map(int, args.machines.split(",")):
        with tempfile.TemporaryDirectory() as directory:
            directory = pathlib.Path(directory)
            samples = tables_of(machines, directory)
            size = size_of(directory / "tables")
            seconds, memory, page = min(reported(directory) for _ in range(3))
            print(
                f"| {machines} | {samples:,} | {size:.1f} MB | {seconds:.2f} | {memory:.0f} MB "
                f"| {page:.0f} kB |",
                flush=True,
            )


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("toll")
parser.add_argument("--machines", default="10,100,1000")
args = parser.parse_args()
main()
