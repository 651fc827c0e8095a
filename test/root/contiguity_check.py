#!/usr/bin/env python3
"""The page frames of a process or a file once more, read and counted in another way.

contiguity_check.py PID FROM-TO     pages that the process has mapped
contiguity_check.py FILE            pages of a file, all of them cached

Reads the tool's JSON from standard input, prints what differs, and exits with 1 when something does.
"""
import json
import mmap
import os
import statistics
import struct
import sys

PAGE = os.sysconf("SC_PAGESIZE")


def frames_of(pagemap, first, count):
    """Page frame numbers, None where there is no page."""
    with open(pagemap, "rb", buffering=0) as file:
        file.seek(first * 8)
        entries = struct.unpack(f"<{count}Q", file.read(count * 8))
    return [entry & (1 << 55) - 1 if entry >> 63 else None for entry in entries]


def frames_of_file(name):
    with open(name, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        memory = mmap.mmap(file.fileno(), size, prot=mmap.PROT_READ)
    count = -(-size // PAGE)
    for page in range(count):
        memory[page * PAGE]
    with open("/proc/self/maps") as maps:
        line = next(line for line in maps if line.rstrip().endswith(os.path.realpath(name)))
    return frames_of("/proc/self/pagemap", int(line.split("-")[0], 16) // PAGE, count)


def runs_of(frames):
    """Lengths of runs with their steps, found from the differences."""
    runs = []
    i = 0
    while i < len(frames):
        if frames[i] is None:
            i += 1
            continue
        end, step = i + 1, 0
        while end < len(frames) and frames[end] is not None:
            difference = frames[end] - frames[end - 1]
            if difference not in (1, -1) or step not in (0, difference):
                break
            step = difference
            end += 1
        runs.append((end - i, step))
        i = end
    return runs


def orders_of(frames):
    """Pages by the order of their folio, from the flags of all page frames around."""
    kpageflags = os.open("/proc/kpageflags", os.O_RDONLY)
    known = {}

    def flags(pfn):
        if pfn not in known:
            block = pfn - pfn % 1024
            data = os.pread(kpageflags, 8192, block * 8)
            for i, value in enumerate(struct.unpack(f"<{len(data) // 8}Q", data)):
                known[block + i] = value
        return known.get(pfn, 0)

    pages = {}
    size_of = {}
    for pfn in frames:
        if pfn is None:
            continue
        head = pfn
        while flags(head) >> 16 & 1:
            head -= 1
        if head not in size_of:
            end = head + 1
            while flags(end) >> 16 & 1:
                end += 1
            size_of[head] = end - head
        order = size_of[head].bit_length() - 1
        assert 1 << order == size_of[head], (head, size_of[head])
        pages[order] = pages.get(order, 0) + 1
    os.close(kpageflags)
    return pages


def main():
    said = json.load(sys.stdin)["memory"]
    if len(sys.argv) == 3:
        first, last = (int(address, 16) // PAGE for address in sys.argv[2].split("-"))
        frames = frames_of(f"/proc/{sys.argv[1]}/pagemap", first, last - first)
    else:
        frames = frames_of_file(sys.argv[1])
    runs = runs_of(frames)
    present = sum(length for length, _ in runs)

    def share(*steps):
        return sum(length for length, step in runs if step in steps) / present

    expected = {
        "pages": len(frames),
        "present": present,
        "number": len(runs),
        "mean_pages": present / len(runs),
        "median_pages": statistics.median(length for length, _ in runs),
        "longest_pages": max(length for length, _ in runs),
        "ascending_share": share(1),
        "descending_share": share(-1),
        "single_share": share(0),
        "orders": orders_of(frames),
    }
    got = {key: said[key] for key in ("pages", "present")}
    got.update((key, said["runs"][key]) for key in expected if key in said["runs"])
    got["orders"] = {row["order"]: row["pages"] for row in said["folios"]["orders"]}
    different = 0
    for key, value in expected.items():
        same = abs(got[key] - value) < 1e-9 if isinstance(value, float) else got[key] == value
        if not same:
            print(f"{key}: the tool says {got[key]}, here it is {value}")
            different = 1
    return different


sys.exit(main())
