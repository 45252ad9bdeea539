#!/usr/bin/env python3
"""Writes reference values for the tests of toll-stats.

Values come from SciPy, NumPy or statsmodels. Where these have no function, the
script applies the definition by brute force: every sign pattern, every Walsh
average. The script shares no algorithm with the crate.

    python3 -m venv /tmp/venv
    /tmp/venv/bin/pip install numpy==2.4.6 scipy==1.17.1 statsmodels==0.15.0
    /tmp/venv/bin/python tools/stats-vectors.py

writes crates/stats/tests/vectors.json. The same versions write the same file.
"""

import itertools
import json
import math
import pathlib
from fractions import Fraction

import numpy as np
import scipy
import statsmodels
from scipy import optimize, stats
from statsmodels.stats.multitest import multipletests

OUTPUT = pathlib.Path(__file__).parents[1] / "crates" / "stats" / "tests" / "vectors.json"
RANDOM = np.random.default_rng(20240229)
MASK = 2**64 - 1


def samples():
    """Data sets of several shapes, rounded so that JSON shows them whole."""
    shapes = {
        "normal": RANDOM.normal,
        "laplace": RANDOM.laplace,
        "skewed": lambda size: RANDOM.exponential(size=size) - 0.4,
        "wide": lambda size: 1e6 * RANDOM.standard_cauchy(size=size),
    }
    for n in (1, 2, 3, 5, 6, 8, 10, 13, 15):
        for shape, draw in shapes.items():
            yield shape, np.round(draw(size=n), 6).tolist()
    yield "ties", [0.0, 1.0, 1.0, 2.0, -1.0, 0.0, 0.0, 3.0, 2.0, 1.0]
    yield "constant", [0.5] * 9


def quantiles():
    probabilities = [0.0, 0.01, 0.1, 0.25, 1 / 3, 0.5, 0.75, 0.9, 0.999, 1.0]
    for _, values in samples():
        yield {
            "values": values,
            "probabilities": probabilities,
            "quantiles": np.quantile(values, probabilities, method="linear").tolist(),
            "mean": math.fsum(values) / len(values),
            "standard_deviation": float(np.std(values, ddof=1)) if len(values) > 1 else None,
            "mad": float(stats.median_abs_deviation(values, scale="normal")),
        }


def normal():
    for x in np.concatenate([np.linspace(-37, 8, 91), [-3.0000001, -2.9999999, 0.0]]):
        yield {"x": float(x), "cdf": float(stats.norm.cdf(x))}


def normal_quantiles():
    for p in [1e-300, 1e-50, 1e-16, 1e-11, 1e-6, 0.001, 0.025, 0.074, 0.076, 0.3]:
        yield {"p": p, "x": float(stats.norm.ppf(p))}
    for p in [0.5, 0.7, 0.925, 0.975, 0.9999, 1 - 1e-12]:
        yield {"p": p, "x": float(stats.norm.ppf(p))}


def signed_rank_cdf(n):
    """P(T <= t) for every t, from every sign pattern of the ranks."""
    counts = [0] * (n * (n + 1) // 2 + 1)
    for signs in itertools.product((0, 1), repeat=n):
        counts[sum(rank for rank, sign in enumerate(signs, 1) if sign)] += 1
    return [Fraction(total, 2**n) for total in itertools.accumulate(counts)]


def binomial_cdf(n):
    counts = (math.comb(n, k) for k in range(n + 1))
    return [Fraction(total, 2**n) for total in itertools.accumulate(counts)]


def order_interval(ascending, cdf, confidence):
    """Returns the narrowest interval from k-th smallest to k-th largest with this confidence."""
    alpha = 1 - Fraction(str(confidence))
    best = 1
    for k in range(1, len(ascending) // 2 + 1):
        if 2 * cdf[k - 1] <= alpha:
            best = k
    return {
        "confidence": confidence,
        "low": ascending[best - 1],
        "high": ascending[-best],
        "achieved": float(max(0, 1 - 2 * cdf[best - 1])),
    }


def centre_intervals():
    cdfs = {n: signed_rank_cdf(n) for n in range(1, 16)}
    for _, values in samples():
        n = len(values)
        pairs = itertools.combinations_with_replacement(values, 2)
        walsh = sorted((a + b) / 2 for a, b in pairs)
        confidences = (0.5, 0.8, 0.9, 0.95, 0.99, 0.999)
        yield {
            "values": values,
            "pseudo_median": float(np.median(walsh)),
            "signed_rank": [order_interval(walsh, cdfs[n], c) for c in confidences],
            "order": [order_interval(sorted(values), binomial_cdf(n), c) for c in confidences],
        }


def wilcoxon():
    """SciPy's exact test; data without ties and zeros only."""
    for shape, values in samples():
        if shape in ("ties", "constant"):
            continue
        for null in (0.0, 0.25, -1.5):
            differences = np.asarray(values) - null
            p = {
                side: float(stats.wilcoxon(differences, alternative=side, method="exact").pvalue)
                for side in ("less", "greater", "two-sided")
            }
            yield {"values": values, "null": null, **p}
    for n in (25, 50):
        values = np.round(RANDOM.normal(0.3, size=n), 6).tolist()
        p = {
            side: float(stats.wilcoxon(values, alternative=side, method="exact").pvalue)
            for side in ("less", "greater", "two-sided")
        }
        yield {"values": values, "null": 0.0, **p}


def large_order():
    """Ranks of the interval for a median, by the binomial distribution."""
    for n in (50, 200, 2001):
        for confidence in (0.9, 0.95, 0.99):
            tail = (1 - confidence) / 2
            k = int(stats.binom.ppf(tail, n, 0.5))
            while stats.binom.cdf(k, n, 0.5) > tail:
                k -= 1
            achieved = 1 - 2 * float(stats.binom.cdf(k, n, 0.5))
            yield {"n": n, "confidence": confidence, "low_rank": k + 1, "achieved": achieved}


def holm():
    families = [[0.01, 0.04, 0.03, 0.005], [0.5], [0.0, 1.0], [0.02, 0.02, 0.02]]
    for size in (3, 7, 20, 50):
        families.append(np.round(RANDOM.beta(0.3, 2, size=size), 8).tolist())
    for p_values in families:
        for alpha in (0.05, 0.01):
            rejected, adjusted, _, _ = multipletests(p_values, alpha=alpha, method="holm")
            yield {
                "p_values": p_values,
                "alpha": alpha,
                "adjusted": adjusted.tolist(),
                "rejected": rejected.tolist(),
            }


def cost_models():
    for per_call, per_byte, noise in [
        (150.0, 0.08, 0.0),
        (150.0, 0.08, 0.05),
        (0.0, 0.3, 0.1),
        (900.0, 0.0, 0.1),
        (2e-7, 1e-10, 0.02),
    ]:
        sizes = 2.0 ** np.arange(6, 21)
        total = np.full(sizes.size, 2.0**24)
        calls = total / sizes
        time = (calls * per_call + total * per_byte) * np.exp(RANDOM.normal(size=sizes.size) * noise)
        rows = np.column_stack([calls / time, total / time])
        # Scaled columns: nnls works with an absolute tolerance.
        scale = np.linalg.norm(rows, axis=0)
        solution, _ = optimize.nnls(rows / scale, np.ones(sizes.size))
        solution = solution / scale
        residuals = 1 - rows @ solution
        yield {
            "calls": calls.tolist(),
            "bytes": total.tolist(),
            "time": time.tolist(),
            "per_call": float(solution[0]),
            "per_byte": float(solution[1]),
            "rms": float(np.sqrt(np.mean(residuals**2))),
            "max": float(np.max(np.abs(residuals))),
        }


def mix(x):
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def rotate(x, by):
    return ((x << by) | (x >> (64 - by))) & MASK


def xoshiro(seed):
    """https://prng.di.unimi.it/xoshiro256starstar.c, seeded by splitmix64.c."""
    s = []
    for _ in range(4):
        seed = (seed + 0x9E3779B97F4A7C15) & MASK
        s.append(mix(seed))
    while True:
        yield (rotate((s[1] * 5) & MASK, 7) * 9) & MASK
        shifted = (s[1] << 17) & MASK
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= shifted
        s[3] = rotate(s[3], 45)


def below(words, n):
    while True:
        product = next(words) * n
        if product & MASK >= 2**64 % n:
            return product >> 64


def fork(seed, stream):
    return mix(rotate(seed, 32) ^ mix((stream + 0x9E3779B97F4A7C15) & MASK))


def random_numbers():
    for seed in (0, 1, 42, MASK):
        words = xoshiro(seed)
        order = list(range(10))
        shuffled = xoshiro(seed)
        for last in range(9, 0, -1):
            other = below(shuffled, last + 1)
            order[last], order[other] = order[other], order[last]
        integers = xoshiro(seed)
        # A bound of 3 * 2**62 rejects a quarter of the words.
        bounds = [2, 10, 1000, 3 << 62, 3 << 62, 3 << 62, 7]
        open_uniform = ((next(xoshiro(seed)) >> 12) + 0.5) / 2**52
        yield {
            "seed": seed,
            "words": [next(words) for _ in range(8)],
            "bounds": bounds,
            "below": [below(integers, bound) for bound in bounds],
            "shuffled": order,
            "uniform": (next(xoshiro(seed)) >> 11) / 2**53,
            "normal": float(stats.norm.ppf(open_uniform)),
            "fork_3": next(xoshiro(fork(seed, 3))),
            "fork_3_fork_4": next(xoshiro(fork(fork(seed, 3), 4))),
        }


def main():
    versions = f"numpy {np.__version__}, scipy {scipy.__version__}, statsmodels {statsmodels.__version__}"
    sections = (
        quantiles,
        normal,
        normal_quantiles,
        centre_intervals,
        wilcoxon,
        large_order,
        holm,
        cost_models,
        random_numbers,
    )
    parts = [f'"made_with": {json.dumps(versions)}']
    for section in sections:
        # One row per line, so that a diff shows the changed rows.
        rows = ",\n".join(json.dumps(row, allow_nan=False) for row in section())
        parts.append(f'"{section.__name__}": [\n{rows}\n]')
    OUTPUT.write_text("{\n" + ",\n".join(parts) + "\n}\n")


if __name__ == "__main__":
    main()
