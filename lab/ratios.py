"""Uncertainty of ratios between two GPUs: errors of whole models on one GPU compared with those on another.

    python lab/ratios.py        # reads benches/results/neusight_models.json, which neusight_models.py writes

For each model that was timed on two GPUs, the error of a ratio is the difference of the logarithms of measured over predicted time. It
is compared with intervals that assume a correlation r of the two errors: half-widths a and b of the single predictions give a
half-width of sqrt(a^2 + b^2 - 2 r a b). `steptime choose` uses r = 0.
"""

from __future__ import annotations

import itertools
import json
import math
import statistics
from pathlib import Path
from typing import Dict, Tuple

RESULTS = Path(__file__).resolve().parents[1] / "benches" / "results" / "neusight_models.json"
CORRELATIONS = (0.0, 0.25, 0.5, 0.75, 1.0)
# Error and half-width of a model on one GPU, both logarithms.
Known = Tuple[float, float]


def main() -> None:
    rows = json.loads(RESULTS.read_text(encoding="utf-8"))
    for kind, time, interval in (("held out", "predicted_ms", "interval_ms"), ("as shipped", "shipped_ms", "shipped_interval_ms")):
        models: Dict[Tuple[str, str, int], Dict[str, Known]] = {}
        for row in rows:
            low, high = row[interval]
            half_width = max(math.log(high / row[time]), math.log(row[time] / low))
            known = (math.log(row["measured_ms"] / row[time]), half_width)
            models.setdefault((row["model"], row["mode"], row["batch"]), {})[row["profile"]] = known
        pairs = [pair for of in models.values() for pair in itertools.combinations(of.values(), 2)]
        squares = statistics.mean(error * error for pair in pairs for error, _ in pair)
        together = statistics.mean(a[0] * b[0] for a, b in pairs)
        print(f"{kind}: {len(pairs)} pairs of GPUs and models, errors correlated by {together / squares:.2f}")
        print("| correlation taken | inside | median factor |\n|--:|--:|--:|")
        for correlation in CORRELATIONS:
            widths = [math.sqrt(max(a * a + b * b - 2 * correlation * a * b, 0.0)) for (_, a), (_, b) in pairs]
            inside = [abs(a[0] - b[0]) <= width for (a, b), width in zip(pairs, widths)]
            print(f"| {correlation} | {statistics.mean(inside):.1%} | x/÷ {math.exp(statistics.median(widths)):.2f} |")


if __name__ == "__main__":
    main()
