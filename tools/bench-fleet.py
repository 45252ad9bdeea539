#!/usr/bin/env python3
"""Creates tables of many machines, and measures the time and memory of a report and a query on them.

    bench-fleet.py TOLL [--machines N,N,...] [--times N]    prints the result in Markdown

Every machine has the same run of one experiment, with the times of one side multiplied by its own
factor. DuckDB runs the query of docs/FLEET.md that reads samples.
"""
import argparse
import json
import math
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

EXPERIMENT = """
format = 1
name = 'clocks'
metric = 'duration_per_call_ns'
[workload]
kind = 'crossing'
calls = 100
[run]
iterations = ITERATIONS
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
# A run has about 10,000 samples with these iterations; longer runs have LONGER times as many.
ITERATIONS = 28
LONGER = 100
# Prints the time of the query, without the start of Python.
ENGINE = """
import duckdb, json, sys, time
duckdb.sql("SET enable_progress_bar = false")
begin = time.monotonic()
rows = duckdb.sql(sys.argv[1]).fetchall()
print(json.dumps([time.monotonic() - begin, rows]))
"""
# Runs a command, and prints its seconds and peak memory in MB after its output. The kernel counts
# the memory of the parent process as the child's, so the parent has to be small.
METER = """
import os, sys, time
begin = time.monotonic()
process = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ)
_, status, usage = os.wait4(process, 0)
print("\\n", time.monotonic() - begin, usage.ru_maxrss / 1e3)
sys.exit(os.waitstatus_to_exitcode(status))
"""
ROOT = pathlib.Path(__file__).resolve().parent.parent


def toll(*arguments):
    command = [args.toll, *map(str, arguments)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


class Fleet:
    """Tables of machines with one run each, and measurements on them."""

    def __init__(self, directory, iterations):
        self.directory = directory
        self.machines = 0
        file, store = directory / "clocks.toml", directory / "one.sqlite"
        file.write_text(EXPERIMENT.replace("ITERATIONS", str(iterations)))
        toll("run", "-q", "--no-html", "-r", 12, "--store", store, file)
        self.run = toll("export", "last", "--json", "-", "--store", store)
        trials = json.loads(self.run)["trials"]
        self.samples_each = sum(len(v) for t in trials for v in t["samples"].values())
        self.rng = random.Random(1)

    def grow(self, machines):
        """Adds machines by import and export, as their users would."""
        for number in range(self.machines, machines):
            document, store = self.directory / "run.json", self.directory / "node.sqlite"
            document.write_text(self.varied(number))
            store.unlink(missing_ok=True)
            toll("import", "--store", store, document)
            toll("export", "--parquet", self.directory / "tables", "--store", store)
            if number % 100 == 99:
                print(f"{number + 1} machines", file=sys.stderr, flush=True)
        self.machines = machines

    def varied(self, number):
        """Returns the run as another machine would have recorded it."""
        run = json.loads(self.run)
        run["run"]["uid"] = f"{number:016x}"
        machine = run["run"]["machine"]
        machine["hostname"] = f"node{number}"
        machine["kernel_release"] = f"6.{number % 5}.0"
        machine["work_file_system"]["kind"] = FILE_SYSTEMS[number % len(FILE_SYSTEMS)]
        factor = 1.5 ** self.rng.gauss(0, 1)
        for trial in run["trials"]:
            if trial["treatment"] == 0:
                samples = trial["samples"][METRIC]
                trial["samples"][METRIC] = [factor * sample for sample in samples]
        run["analysis"] = None
        return json.dumps(run)

    def multiply(self, times):
        """Copies every machine under other names, which is faster than importing."""
        for folder in list(self.directory.glob("tables/*/*/machine=*")):
            for copy in range(1, times):
                shutil.copytree(folder, folder.with_name(f"{folder.name}-{copy}"))
        self.machines *= times

    def measure(self):
        """Measures a report and the query; keeps the fastest of three runs of each."""
        size = {"machines": self.machines, "samples": self.machines * self.samples_each}
        files = list(self.directory.rglob("*.parquet"))
        size["bytes"] = sum(file.stat().st_size for file in files)
        report = min(self.report() for _ in range(3))
        query = min(self.query() for _ in range(3))
        return size | {"report": report, "query": query}

    def report(self):
        """Returns seconds and peak memory in MB of a report with a page."""
        page, tables = self.directory / "page.html", self.directory / "tables"
        _, seconds, memory = metered([args.toll, "fleet", "report", tables, "--html", page])
        return seconds, memory

    def query(self):
        """Returns seconds and peak memory in MB of the query."""
        command = [args.engine, "-c", ENGINE, args.query]
        output, _, memory = metered(command, cwd=self.directory)
        seconds, rows = json.loads(output)
        counted = sum(machines for _, label, _, machines in rows if label == "vdso")
        if counted != self.machines:
            sys.exit(
                f"cannot use the query's time: it counts {counted} of {self.machines} machines; "
                "check its result in DuckDB"
            )
        return seconds, memory


def metered(command, **options):
    """Returns a command's output, its seconds, and its peak memory in MB."""
    meter = [sys.executable, "-S", "-c", METER, *command]
    ran = subprocess.run(meter, stdout=subprocess.PIPE, text=True, **options)
    if ran.returncode:
        why = f"it ended with status {ran.returncode}"
        sys.exit(f"cannot measure {command[0]}: {why}; run it by itself")
    output, measured = ran.stdout.rstrip().rsplit("\n", 1)
    seconds, memory = map(float, measured.split())
    return output, seconds, memory


def engine_version():
    command = [args.engine, "-c", "import duckdb; print(duckdb.__version__)"]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def documented_query():
    """Returns the query of docs/FLEET.md that reads samples."""
    blocks = (ROOT / "docs/FLEET.md").read_text().split("```sql\n")[1:]
    queries = [block.split("```")[0] for block in blocks]
    return next(query for query in queries if "tables/samples" in query)


def row(one, before):
    """Prints a row of the table. `before` is the next smaller size of the same runs."""
    cells = [f"{one['machines']:,}", f"{one['samples']:,}", f"{one['bytes'] / 1e6:.1f} MB"]
    for what in ["report", "query"]:
        seconds, memory = one[what]
        cells += [f"{seconds:.3f}", exponent(one, before, what), f"{memory:.0f} MB"]
    print("| " + " | ".join(cells) + " |", flush=True)


def exponent(one, before, what):
    """Returns the exponent with which the time grew with the number of samples."""
    if before is None:
        return "–"
    times = one[what][0] / before[what][0]
    return f"{math.log(times) / math.log(one['samples'] / before['samples']):.2f}"


def costs(smallest, many, few, of):
    """Returns the fixed cost, the cost of a machine and the cost of a sample. Together they give the
    measured cost of each of the three fleets."""
    def more(fleet):
        machines = fleet["machines"] - smallest["machines"]
        return of(fleet) - of(smallest), machines, fleet["samples"] - smallest["samples"]

    (cost, machines, samples), (cost_few, machines_few, samples_few) = more(many), more(few)
    determinant = machines * samples_few - machines_few * samples
    machine = (cost * samples_few - cost_few * samples) / determinant
    sample = (machines * cost_few - machines_few * cost) / determinant
    base = of(smallest) - machine * smallest["machines"] - sample * smallest["samples"]
    return base, machine, sample


def estimate(smallest, many, few):
    """Prints an estimate for ten times as many samples."""
    seconds = costs(smallest, many, few, lambda one: one["query"][0])
    memory = costs(smallest, many, few, lambda one: one["query"][1])
    print(f"\n## {10 * many['samples']:,} samples, estimated\n")
    print(
        "The first line and the last two give the cost of a machine, with its three files that the query "
        "reads, and of a\nsample:\n\n"
        "| query | without any | a machine | a sample |\n|---|--:|--:|--:|\n"
        f"| time | {seconds[0]:.3f} s | {seconds[1] * 1e3:.3f} ms | {seconds[2] * 1e9:.2f} ns |\n"
        f"| memory | {memory[0]:.0f} MB | {memory[1] * 1e3:.2f} kB | {memory[2] * 1e6:.2f} B |\n\n"
        "So these are the costs of ten times as much, and ten times the report's time:\n\n"
        "| machines | samples | tables | query: seconds | memory | report: seconds |\n"
        "|--:|--:|--:|--:|--:|--:|"
    )
    for one in [many, few]:
        machines, samples = 10 * one["machines"], 10 * one["samples"]
        query = [
            base + machine * machines + sample * samples
            for base, machine, sample in [seconds, memory]
        ]
        print(
            f"| {machines:,} | {samples:,} | {one['bytes'] / 1e8:.1f} GB | {query[0]:.1f} "
            f"| {query[1] / 1e3:.1f} GB | {10 * one['report'][0]:.1f} |"
        )


def main():
    machines = list(map(int, args.machines.split(",")))
    print("# Reports and queries on many machines\n")
    print(
        f"`make bench-fleet`, {toll('--version').strip()}, DuckDB {engine_version()}, "
        f"{os.cpu_count()} CPUs. Each machine "
        "has one run. The report reads runs, machines and\nverdicts. The query reads samples; it "
        "is the one by file system in [FLEET](../../docs/FLEET.md#duckdb), run by DuckDB. Files are\n"
        "in the page cache. The *exponent* says how the time grew with the number of samples "
        "since the line above.\n"
    )
    print(
        "| machines | samples | tables | report: seconds | exponent | memory | query: seconds "
        "| exponent | memory |\n|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
    )
    measured = []
    with tempfile.TemporaryDirectory() as directory:
        fleet = Fleet(pathlib.Path(directory), ITERATIONS)
        for count in machines:
            fleet.grow(count)
            measured.append(fleet.measure())
            row(measured[-1], measured[-2] if len(measured) > 1 else None)
        fleet.multiply(args.times)
        many = fleet.measure()
        row(many, measured[-1])
    with tempfile.TemporaryDirectory() as directory:
        fleet = Fleet(pathlib.Path(directory), ITERATIONS * LONGER)
        count = max(1, many["machines"] // LONGER)
        fleet.grow(min(machines[0], count))
        fleet.multiply(count // fleet.machines)
        few = fleet.measure()
        row(few, None)
    print(f"\nIn the last line, each run is {LONGER} times as long.")
    for one in measured:
        if one["machines"] == 1000:
            seconds, memory = one["report"]
            is_met = seconds <= 10 and memory <= 500
            print(
                "The goal is a report on 1,000 machines with 10⁷ samples in 10 s and 500 MB: "
                f"{'met' if is_met else 'not met'}."
            )
    estimate(measured[0], many, few)


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("toll", type=os.path.abspath)
parser.add_argument("--machines", default="10,30,100,300,1000")
parser.add_argument("--times", type=int, default=10, help="copies of each machine at the end")
args = parser.parse_args()
args.query = documented_query()
engines = ROOT / "tools/install-python-packages"
installed = subprocess.run([engines], stdout=subprocess.PIPE, text=True)
if installed.returncode:
    sys.exit(f"cannot install DuckDB: {engines} failed; see its output above, and install the package python3-venv")
args.engine = installed.stdout.strip()
main()
