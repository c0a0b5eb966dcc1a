"""Placements of tables on two GPUs: predicted, measured, compared.

    python benches/placements.py --predict                                              (plans and predictions: before the measurement)
    torchrun --nproc-per-node 2 benches/placements.py --measure FILE.json               (needs two GPUs and NCCL)
    python benches/placements.py --compare FILE.json [--host my-host.toml]

Ten placements of each model of `JOBS` are plans in `benches/jobs/placements/MODEL/`: tables in turn, the largest first by three measures, bad
ones, drawn ones, and `pick`, that of `steptime shard`. `--predict` writes them with their steps by `steptime shard --evaluate`, and with the
costs of TorchRec's planner, to `benches/results/placements_predicted.json`. `--measure` trains each in PyTorch (`python/workloads/job_model.py`):
placements take turns, a window of steps in each round, without a profiler; a round's time is that of the slower rank. FILE.json is written after
each model. `--compare` prints both and adds the scores to FILE.json; with `--host` steps are predicted again for that host, beside.
"""

import argparse
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLANS = ROOT / "benches/jobs/placements"
PREDICTED = ROOT / "benches/results/placements_predicted.json"
# Description, distribution of indices, whether a table may be cut by columns.
JOBS = (
    ("benches/jobs/dlrm_skewed.toml", "zipf:1.05", False),
    ("benches/jobs/dlrm_large.toml", "uniform", True),
    ("benches/jobs/dlrm_r1.toml", "uniform", False),
    ("examples/models/dcn_v2.toml", "uniform", False),
    ("benches/jobs/dlrm_many.toml", "uniform", False),
)


def jobs(asked):
    """Name, path, indices and cuts of each asked model."""
    found = [(Path(path).stem, ROOT / path, indices, cut) for path, indices, cut in JOBS]
    return [job for job in found if not asked.models or job[0] in asked.models.split(",")]


def main():
    """Runs what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--predict", action="store_true")
    what.add_argument("--measure", type=Path, metavar="FILE.json")
    what.add_argument("--compare", type=Path, metavar="FILE.json")
    parser.add_argument("--models", help="names of models, as dlrm_r1,dcn_v2 [default: all]")
    parser.add_argument("--steptime", type=Path, default=ROOT / "target/release/steptime", help="the program")
    parser.add_argument("--predicted", type=Path, default=PREDICTED, help="the file of predictions")
    parser.add_argument("--host", type=Path, help="--compare: a probe of the host of the measurement")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda", help="--measure: where ranks run")
    parser.add_argument("--rounds", type=int, default=3, help="--measure: number of windows of a placement")
    parser.add_argument("--window", type=float, default=0.3, help="--measure: least seconds of a window")
    parser.add_argument("--seconds", type=float, default=150, help="--measure: no model begins after this time")
    parser.add_argument("--batch", type=int, help="--measure: samples of both GPUs, to try the program [default: the model's]")
    parser.add_argument("--rows-at-most", type=int, help="--measure: largest number of rows of a table, to try the program")
    asked = parser.parse_args()
    if asked.measure:
        from placement_steps import measure

        measure(asked, jobs(asked), PLANS)
        return
    from placement_scores import compare, predict

    if asked.predict:
        predict(asked, jobs(asked), PLANS)
    else:
        compare(asked, jobs(asked), PLANS)


if __name__ == "__main__":
    main()
