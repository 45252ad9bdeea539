#!/usr/bin/env python3
"""Plants a cost in one kernel function at a time, and asks toll which function differs.

    bench-functions.py TOLL [--runs N]    prints the result in Markdown

Counts do not depend on how busy the machine is.
"""
import argparse
import collections
import json
import pathlib
import re
import subprocess
import tempfile

COMMAND = "dd if=/dev/zero of=/dev/null bs=4k count=200"
# Rounds of an empty loop, three instructions each.
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


def toll(*arguments):
    return subprocess.run([args.toll, *arguments], check=True, stdout=subprocess.PIPE, text=True).stdout


def counted(kernel, runs):
    text = toll("count", "--json", "--kernel", kernel, "--runs", str(runs), COMMAND)
    return json.loads(text)["commands"][0]


def instructions(count):
    return collections.Counter({one["name"]: one["instructions"] for one in count["functions"]})


def with_cost(source, function):
    """The source with a loop at the begin of a function's definition."""
    head = re.compile(r"^\w[^;=]*?\b%s\([^;{]*\)\n\{\n" % function, re.MULTILINE)
    found = head.search(source)
    if not found:
        raise SystemExit(f"cannot find the definition of {function}; is it a macro now?")
    loop = f"\tfor (int round = 0; round < {ROUNDS}; round++)\n\t\tbarrier();\n"
    return source[: found.end()] + loop + source[found.end() :]


def planted(tree, path, function, directory):
    """Defines and builds the kernel with a cost in a function; gives its name."""
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
    toll("kernel", "build", name)
    return name


def main():
    base = json.loads(toll("kernel", "show", "toll", "--json"))
    cache = pathlib.Path(base["directory"]).parent.parent
    tree = next((cache / "kernel-work/source").glob("linux-source-*"))
    alone = counted("toll", args.runs * len(PLACES))
    reference = instructions(alone)
    totals = collections.Counter(run["total"] for run in alone["runs"])
    (_, same), = totals.most_common(1)
    print(f"# A cost planted in one function of the kernel\n\n`make bench-functions`: Linux {base['release']}, `{COMMAND}`.\n")
    print(f"Identical kernels: {same} of {len(alone['runs'])} runs, each with another seed of random numbers, "
          "execute the same number of instructions.\n")
    print("| cost in | calls | planted instructions | found | first in the list | runs that agree |\n|---|--:|--:|--:|---|--:|")
    for path, function in PLACES:
        with tempfile.TemporaryDirectory() as directory:
            name = planted(tree, path, function, pathlib.Path(directory))
            count = counted(name, args.runs)
            toll("kernel", "remove", name)
        found = instructions(count)
        found.subtract(reference)
        first, difference = max(found.items(), key=lambda one: abs(one[1]))
        calls = next(one["calls"] for one in count["functions"] if one["name"] == function)
        totals = collections.Counter(run["total"] for run in count["runs"])
        (_, same), = totals.most_common(1)
        print(f"| `{function}` | {calls} | {3 * ROUNDS * calls} | {difference} | `{first}` | {same} of {len(count['runs'])} |", flush=True)


parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("toll")
parser.add_argument("--runs", type=int, default=10, help="runs of each kernel; of the one without a cost ten times as many")
args = parser.parse_args()
main()
