#!/usr/bin/env python3
"""Plants a cost in one kernel function at a time, and asks toll which functions differ.

    bench-functions.py TOLL [--runs N] [--functions N]    prints the result in Markdown

The counts do not depend on how busy the machine is.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

COMMAND = "dd if=/dev/zero of=/dev/null bs=4k count=200"
# Numbers of rounds of the planted loop. A round is a few instructions.
ROUNDS = 20
PLACES = [
    ("fs/read_write.c", "vfs_read"),
    ("fs/read_write.c", "vfs_write"),
    ("fs/read_write.c", "rw_verify_area"),
    ("fs/file.c", "fdget_pos"),
    ("lib/maple_tree.c", "mas_walk"),
    ("mm/filemap.c", "filemap_map_pages"),
    ("mm/memory.c", "handle_mm_fault"),
    ("mm/memory.c", "set_pte_range"),
    ("mm/memory.c", "vm_normal_page"),
    ("mm/rmap.c", "folio_add_file_rmap_ptes"),
]
# Seeds of a call: as many as it needs to compare all kernels with the first.
SEEDS = 9
# Share of lists that have to be right.
NEEDED = 0.95


def toll(*arguments):
    return subprocess.run([args.toll, *arguments], check=True, stdout=subprocess.PIPE, text=True).stdout


def counted(seed, kernels, commands):
    """Returns toll's comparison of the first kernel or command with the others."""
    text = toll("count", "--json", "-r", str(SEEDS), "--seed", str(seed), "--kernel", ",".join(kernels), *commands)
    said = json.loads(text)
    assert all(comparison["may_decide"] for comparison in said["comparisons"]), "more seeds are needed"
    return said


def counted_side_by_side(kernels, commands):
    """Yields each seed with its comparison. Comparisons run in parallel on all CPUs."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        yield from zip(seeds(), pool.map(lambda seed: counted(seed, kernels, commands), seeds()))


def with_cost(source, function):
    """Returns the source with a loop at the start of a function's definition."""
    head = re.compile(r"^\w[^;=]*?\b%s\([^;{]*\)\n\{\n" % function, re.MULTILINE)
    found = head.search(source)
    if not found:
        raise SystemExit(f"cannot find the definition of {function}; is it a macro now?")
    loop = f"\tfor (int round = 0; round < {ROUNDS}; round++)\n\t\tbarrier();\n"
    return source[: found.end()] + loop + source[found.end() :]


def planted(tree, path, function, directory):
    """Builds the kernel with a cost in a function; returns its name, and the seconds of the build."""
    before = tree / path
    after = directory / "after.c"
    after.write_text(with_cost(before.read_text(), function))
    labels = ["--label", f"a/{path}", "--label", f"b/{path}"]
    difference = subprocess.run(
        ["diff", "-u", *labels, before, after], stdout=subprocess.PIPE, text=True, check=False
    )
    patch = directory / f"{function}.patch"
    patch.write_text(difference.stdout)
    name = f"cost-{function.replace('_', '-')}"
    toll("kernel", "add", name, "--replace", "--patches", str(patch))
    begin = time.monotonic()
    toll("kernel", "build", name)
    return name, time.monotonic() - begin


def listed_in(comparison):
    functions = comparison["functions"]
    return functions["listed"] if functions else []


class Tally:
    """Counts what toll listed for one planted cost."""

    def __init__(self, path, function, build_s):
        self.path, self.function, self.build_s = path, function, build_s
        self.first, self.explained, self.found = 0, [], []
        self.calls = 0

    def add(self, count, comparison):
        functions = comparison["functions"]
        listed = listed_in(comparison)
        calls = [one["calls"] for one in count["functions"] if one["name"] == self.function]
        self.calls = calls[0] if calls else 0
        if listed and listed[0]["name"] == self.function:
            self.first += 1
            self.found.append(round(listed[0]["instructions"]["value"]))
        self.explained.append(functions["explained"] if functions else 0.0)

    def row(self):
        found = span(self.found) if self.found else "–"
        return (
            f"| `{self.function}` | {self.calls:,} | {found} | "
            f"{self.first} of {len(self.explained)} | {100 * min(self.explained):.1f} % | {self.build_s:.0f} s |"
        )


def span(numbers):
    low, high = min(numbers), max(numbers)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def note(text):
    print(text, file=sys.stderr, flush=True)


def find_planted(tree, directory):
    """Returns what toll lists for the cost planted in each kernel."""
    tallies = {}
    for path, function in places():
        name, build_s = planted(tree, path, function, directory)
        note(f"built {name} in {build_s:.0f} s")
        tallies[name] = Tally(path, function, build_s)
    for seed, said in counted_side_by_side(["toll", *tallies], [COMMAND]):
        for comparison in said["comparisons"]:
            count = said["commands"][comparison["count"]]
            tallies[count["kernel"]].add(count, comparison)
        note(f"seed {seed}: " + ", ".join(f"{one.function} {one.first}" for one in tallies.values()))
    for name in tallies:
        toll("kernel", "remove", name)
    return list(tallies.values())


def identical():
    """Compares a kernel with itself. Returns the number of empty lists and of all lists."""
    empty, lists = 0, 0
    for seed, said in counted_side_by_side(["toll"], [COMMAND] * (len(places()) + 1)):
        lists += len(said["comparisons"])
        empty += sum(not listed_in(comparison) for comparison in said["comparisons"])
        note(f"seed {seed}: {empty} of {lists} lists of identical kernels are empty")
    return empty, lists


def places():
    return PLACES[: args.functions]


def seeds():
    return range(1, SEEDS * args.runs, SEEDS)


def verdict(right, of):
    return f"{right} of {of} ({'met' if right >= NEEDED * of else 'not met'}: {NEEDED:.0%} are needed)"


def main():
    base = json.loads(toll("kernel", "show", "toll", "--json"))
    cache = pathlib.Path(base["directory"]).parent.parent
    tree = next((cache / "kernel-work/source").glob("linux-source-*"))
    with tempfile.TemporaryDirectory() as directory:
        tallies = find_planted(tree, pathlib.Path(directory))
    empty, lists = identical()
    first = sum(one.first for one in tallies)
    tried = sum(len(one.explained) for one in tallies)
    print(f"""# Which functions of a kernel differ

`make bench-functions`: Linux {base['release']}, `{COMMAND}`, counted on both sides with each of {SEEDS} seeds of random
numbers, which differ from list to list. All lists are those of `toll count --json`.

- A cost planted in one function ranks first: {verdict(first, tried)}.
- Identical kernels yield no function: {verdict(empty, lists)}.

| cost in | calls | instructions found | ranks first | explained, at least | kernel built in |
|---|--:|--:|--:|--:|--:|""")
    for one in tallies:
        print(one.row())


parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("toll")
parser.add_argument("--runs", type=int, default=10, help="lists for each kernel, and for each pair of identical kernels")
parser.add_argument("--functions", type=int, default=len(PLACES), help="plant costs in this many functions only")
args = parser.parse_args()
main()
