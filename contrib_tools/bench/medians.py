#!/usr/bin/env python3
"""Medians and ratios for contrib_tools/bench/overhead.

medians.py median             numbers, one a line -> their median
medians.py ratios BASE TWIN   lines "round variant tps" -> per variant: median tps, the median over the rounds of
                                 tps / tps of BASE in the same round, its 95 % confidence interval, rounds

The interval is that of a median by order statistics: the k-th smallest and the k-th largest ratio, where k is the
largest number for which the binomial probability of the true median lying outside is at most 5 %.  It assumes
nothing about the distribution.  TWIN is a second run of BASE: its interval is the noise of the machine.
"""
import math
import statistics
import sys


def interval(values, outside=0.05):
    """Bounds of the median, or None where there are too few values for the confidence asked for."""
    n, ordered = len(values), sorted(values)
    cumulated, k = 0.0, 0
    while k < n:
        cumulated += math.comb(n, k) / 2 ** n
        if 2 * cumulated > outside:
            break
        k += 1
    return (ordered[k - 1], ordered[n - k]) if k else None


def main(arguments):
    if arguments[:1] == ["median"]:
        print("%.6g" % statistics.median(float(line) for line in sys.stdin))
        return
    if len(arguments) != 3 or arguments[0] != "ratios":
        sys.exit(__doc__)
    base, twin = arguments[1:]
    rounds = {}
    for line in sys.stdin:
        number, variant, tps = line.split()
        rounds.setdefault(number, {})[variant] = float(tps)
    variants = sorted({variant for cells in rounds.values() for variant in cells}, key=lambda v: (v != base, v != twin, v))
    for variant in variants:
        pairs = [(cells[variant], cells[variant] / cells[base]) for cells in rounds.values() if variant in cells and base in cells]
        ratios = [ratio for _, ratio in pairs]
        bounds = interval(ratios)
        print("%s\t%.0f\t%.4f\t%s\t%d" % (variant, statistics.median(tps for tps, _ in pairs), statistics.median(ratios),
                                          "%.4f to %.4f" % bounds if bounds else "too few rounds", len(pairs)))


main(sys.argv[1:])
