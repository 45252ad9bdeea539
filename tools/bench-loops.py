#!/usr/bin/env python3
"""Measures how long building, running and testing toll take, in a fresh clone.

    bench-loops.py FILE [PART...]    writes the result in Markdown, again after each part

The parts are `run` (make run), `test` (make test) and `rest` (make test-rest); all by default.
Crates are downloaded beforehand. Nothing else is cached, not even kernels, because the clone has its
own home directory. The machine should be quiet; the result has its load before the measurement.
"""

import argparse
import datetime
import os
import pathlib
import sqlite3
import subprocess
import sys
import tempfile
import time

PARTS = ["run", "test", "rest"]
GOALS_MIN = {
    "build of what `make run` needs": 2.5,
    "`make run` until the first price": None,
    "`make run` until the last verdict of the host": 7,
    "`make run`, guests included": 13,
    "`make test` with its build": 12,
    "`make test-rest` after it": None,
    "`make test-all`": 40,
}
SIZE_GOAL_MB = 12


def minutes(seconds):
    seconds = round(seconds)
    return f"{seconds // 60} min {seconds % 60:02} s"


def environment(home):
    """Returns the environment of a user who has just cloned: a new home, and Cargo's downloads."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("CARGO_", "XDG_", "TOLL_", "MAKE", "MFLAGS"))
    }
    cargo = pathlib.Path(os.environ.get("CARGO_HOME", pathlib.Path.home() / ".cargo"))
    rustup = pathlib.Path(os.environ.get("RUSTUP_HOME", pathlib.Path.home() / ".rustup"))
    return kept | {"HOME": str(home), "CARGO_HOME": str(cargo), "RUSTUP_HOME": str(rustup)}


class Clone:
    def __init__(self, directory):
        self.tree = directory / "toll"
        self.home = directory / "home"
        self.home.mkdir()
        self.environment = environment(self.home)
        subprocess.run(["git", "clone", "--quiet", ".", self.tree], check=True)
        subprocess.run(["cargo", "fetch", "--quiet", "--locked"], cwd=self.tree, check=True)

    def make(self, target):
        """Runs `make`. Returns its seconds, each line with the seconds until then, and whether it succeeded."""
        begin = time.monotonic()
        process = subprocess.Popen(
            ["make", "--no-print-directory", target],
            cwd=self.tree,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        lines = []
        for line in process.stdout:
            lines.append((time.monotonic() - begin, line.rstrip()))
            print(f"{lines[-1][0]:7.1f} s  {line}", end="", file=sys.stderr)
        status = process.wait()
        if status != 0:
            print(f"make {target} failed with status {status}", file=sys.stderr)
        return time.monotonic() - begin, lines, status == 0

    def families(self, profile):
        """Returns the slowest families of tests, as tools/test-summary lists them."""
        report = self.tree / "target/nextest" / profile / "junit.xml"
        command = [self.tree / "tools/test-summary", "--slowest", "12", report]
        listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        return listed.split("families:\n")[1].rstrip()

    def last_run_of_the_host(self):
        """Returns the number of the last run before the first one that booted a guest."""
        store = self.home / ".local/share/toll/runs.sqlite"
        with sqlite3.connect(f"file:{store}?mode=ro", uri=True) as connection:
            (booted,) = connection.execute("SELECT min(run_id) FROM boots").fetchone()
            (last,) = connection.execute(
                "SELECT max(id) FROM runs WHERE ?1 IS NULL OR id < ?1", (booted,)
            ).fetchone()
        return last


def first(lines, text):
    """Returns the seconds until the first line with a text; None without one."""
    return next((seconds for seconds, line in lines if text in line), None)


def measure_run(clone):
    total_s, lines, passed = clone.make("run")
    built_s = first(lines, "built toll-cli")
    rows = {
        "build of what `make run` needs": (built_s, passed),
        "`make run` until the first price": (first(lines, "toll show"), passed),
        "`make run` until the last verdict of the host": (
            first(lines, f"(run {clone.last_run_of_the_host()})"),
            passed,
        ),
        "`make run`, guests included": (total_s, passed),
    }
    (program,) = clone.tree.glob("target/*/release/toll")
    return rows, program.stat().st_size / 1e6, len(lines)


def measure(clone, parts):
    """Yields what has been measured, after each part."""
    rows, notes, families = {}, [], {}
    if "run" in parts:
        rows, size_mb, lines = measure_run(clone)
        notes.append(f"`toll` has {size_mb:.1f} MB (goal: {SIZE_GOAL_MB}).")
        notes.append(f"`make run` printed {lines} lines.")
        yield rows, notes, families
    for part, target, profile, row in [
        ("test", "test", "default", "`make test` with its build"),
        ("rest", "test-rest", "rest", "`make test-rest` after it"),
    ]:
        if part in parts:
            seconds, lines, passed = clone.make(target)
            families[target] = clone.families(profile)
            rows[row] = (seconds, passed)
            notes += [line.strip() for _, line in lines if line.strip().startswith("Summary [")]
            if {"test", "rest"} <= set(parts) and part == "rest":
                both = [rows["`make test` with its build"], rows[row]]
                rows["`make test-all`"] = (sum(one[0] for one in both), all(one[1] for one in both))
            yield rows, notes, families


def machine():
    with open("/proc/cpuinfo") as file:
        model = next(line.split(":")[1].strip() for line in file if line.startswith("model name"))
    load = os.getloadavg()[0]
    date = datetime.date.today().isoformat()
    return f"{model}, {os.cpu_count()} CPUs, Linux {os.uname().release}, {date}; load before: {load:.2f}"


def document(commit, where, rows, notes, families):
    lines = [
        "# How long building and testing take\n",
        f"By `make bench-loops` in a fresh clone of {commit}. {where}.\n",
        "| what | here | goal |\n|---|---|---|",
    ]
    for name, goal in GOALS_MIN.items():
        if name in rows:
            seconds, passed = rows[name]
            here = "–" if seconds is None else minutes(seconds)
            here += "" if passed else " (failed)"
            lines.append(f"| {name} | {here} | {'' if goal is None else '≤ ' + minutes(goal * 60)} |")
    lines.append("")
    lines += [f"- {note}" for note in notes]
    for target, listed in families.items():
        lines.append(f"\nThe slowest families of `make {target}`, by the sum of their tests' durations:\n")
        lines.append(f"```text\n{listed}\n```")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(usage="tools/bench-loops.py FILE [run] [test] [rest]")
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=[])
    args = parser.parse_args()
    where = machine()
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True
    ).stdout.strip()
    # The clone is next to this tree, because tests mount file systems over /tmp and /var.
    beside = pathlib.Path.cwd().parent
    with tempfile.TemporaryDirectory(prefix="toll-loops-", dir=beside) as directory:
        # Tests switch to other users, who must be able to reach the programs.
        os.chmod(directory, 0o755)
        for measured in measure(Clone(pathlib.Path(directory)), args.parts or PARTS):
            args.file.write_text(document(commit, where, *measured))


main()
