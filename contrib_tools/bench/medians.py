#!/usr/bin/env python3
"""Medians and ratios for contrib_tools/bench/overhead.

medians.py median             numbers, one a line -> their median
medians.py ratios NULL        lines "round variant tps base", base: tps of the run without the variant at the same time
                                 -> per variant: median tps, the median over the rounds of the geometric mean of
                                 tps / base in that round, its 95 % confidence interval, rounds

The interval is that of a median by order statistics: the k-th smallest and the k-th largest ratio, where k is the
largest number for which the binomial probability of the true median lying outside is at most 5 %.  It assumes
nothing about the distribution.  NULL is the variant that is the base once more, printed first: its interval is the
noise of the machine.
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
    if len(arguments) != 2 or arguments[0] != "ratios":
        sys.exit(__doc__)
    null = arguments[1]
    variants = {}
    for line in sys.stdin:
        number, variant, tps, base = line.split()
        variants.setdefault(variant, {}).setdefault(number, []).append((float(tps), float(base)))
    for variant, rounds in sorted(variants.items(), key=lambda item: (item[0] != null, item[0])):
        ratios = [math.exp(statistics.fmean(math.log(tps / base) for tps, base in runs)) for runs in rounds.values()]
        bounds = interval(ratios)
        print("%s\t%.0f\t%.4f\t%s\t%d" % (variant, statistics.median(tps for runs in rounds.values() for tps, _ in runs),
                                          statistics.median(ratios), "%.4f to %.4f" % bounds if bounds else "too few rounds",
                                          len(ratios)))


main(sys.argv[1:])
