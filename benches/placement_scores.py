"""Predicted steps of placements, and their comparison with measured ones."""

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from placement_plans import generated, parts_of_plan, plan_of, read, read_plan, tables_of, write_plan

GPU = "h200"
PREDICTORS = ("steptime", "host", "torchrec")


def answer(program, *words):
    """The JSON answer of the program."""
    command = [str(word) for word in (program, *words, "--json")]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def write_plans(asked, job, folder):
    """Writes the plans of a model: generated ones, and the pick of `steptime shard`."""
    _, path, indices, may_cut = job
    model = read(path)
    folder.mkdir(parents=True, exist_ok=True)
    pick = folder / "pick.json"
    answer(asked.steptime, "shard", path, "--gpus", 2, "--device", GPU, "--indices", indices, "-o", pick)
    write_plan(pick, read_plan(pick))
    for name, lists in generated(model, may_cut, parts_of_plan(pick, tables_of(model))).items():
        write_plan(folder / f"{name}.json", plan_of(lists, tables_of(model)))


def evaluated(asked, job, plan, host=()):
    """The predicted step of a plan, and its interval, in milliseconds."""
    _, path, indices, _ = job
    found = answer(asked.steptime, "shard", path, "--device", GPU, "--indices", indices, "--evaluate", plan, *host)["predicted"]
    return found["step_ms"], found["interval_ms"]


def torchrec_costs(asked, job, plans):
    """Cost of each plan by TorchRec's planner, in milliseconds, from `steptime validate --planner`. It needs a measured step, which costs do not depend on."""
    name, path, indices, _ = job
    model = read(path)
    with tempfile.TemporaryDirectory() as folder:
        for plan in plans:
            parts = parts_of_plan(plan, tables_of(model))
            meta = {"model": name, "global_batch": model["batch"], "placement": [sorted({s.table for s in own}) for own in parts], "step_ms": 1.0}
            for rank in range(len(parts)):
                home = Path(folder) / plan.stem / f"rank{rank}"
                home.mkdir(parents=True)
                (home / "meta.json").write_text(json.dumps(meta), encoding="utf-8")
        words = ["validate", folder, "--planner", "torchrec", "--kernels", GPU, "--model", path, "--indices", indices]
        return {row["name"]: row["planned_ms"] for row in answer(asked.steptime, *words)["jobs"]}


def predict(asked, jobs, folder):
    """Writes plans and the file of predictions."""
    rows = []
    for job in jobs:
        name, home = job[0], folder / job[0]
        write_plans(asked, job, home)
        plans = sorted(home.glob("*.json"))
        costs = torchrec_costs(asked, job, plans)
        for plan in plans:
            step, interval = evaluated(asked, job, plan)
            rows.append({"model": name, "placement": plan.stem, "indices": job[2], "steptime": step, "interval_ms": interval, "torchrec": costs[plan.stem]})
        print(f"{name}: {len(plans)} placements, steps from {min(r['steptime'] for r in rows if r['model'] == name):.2f} ms", flush=True)
    version = subprocess.run([str(asked.steptime), "--version"], capture_output=True, text=True, check=True).stdout.strip()
    asked.predicted.write_text(json.dumps({"program": version, "device": GPU, "rows": rows}, indent=1) + "\n", encoding="utf-8")


def ranks_of(values):
    """Ranks from 1, the mean rank for equal values."""
    ordered = sorted(values)
    return [ordered.index(value) + (ordered.count(value) + 1) / 2 for value in values]


def spearman(a, b):
    """Rank correlation; None where all values of one are equal."""
    a, b = ranks_of(a), ranks_of(b)
    return None if len(set(a)) == 1 or len(set(b)) == 1 else statistics.correlation(a, b)


def attainable(rows):
    """Mean rank correlation of a round with the mean of the other rounds: what the noise allows of a perfect prediction."""
    rounds = list(zip(*(row["ms"] for row in rows)))
    others = [[statistics.mean(each) for each in zip(*rounds[:at], *rounds[at + 1 :])] for at in range(len(rounds))] if len(rounds) > 1 else []
    found = [spearman(one, rest) for one, rest in zip(rounds, others)]
    return statistics.mean(found) if found and None not in found else None


def scores(rows, predictor):
    """Scores of a predictor for the placements of one model."""
    measured, predicted = [row["measured_ms"] for row in rows], [row[predictor] for row in rows]
    chosen = statistics.mean(m for m, p in zip(measured, predicted) if p == min(predicted))
    factors = [p / m for p, m in zip(predicted, measured)]
    common = statistics.geometric_mean(factors)
    return {
        "regret": chosen / min(measured) - 1,
        "spearman": spearman(predicted, measured),
        "mean_error": statistics.mean(abs(factor - 1) for factor in factors),
        "bias": common - 1,
        "mean_error_without_bias": statistics.mean(abs(factor / common - 1) for factor in factors),
    }


def joined(predicted, measured, model):
    """Rows of a model with prediction and measurement, the fastest first."""
    found = []
    for row in (row for row in measured["rows"] if row["model"] == model):
        same = [each for each in predicted["rows"] if (each["model"], each["placement"]) == (model, row["placement"])]
        if not same:
            sys.exit(f"{model}, {row['placement']}: no prediction: run --predict before the measurement")
        middle = statistics.median(row["ms"])
        found.append({**row, **same[0], "measured_ms": middle, "noise": (max(row["ms"]) - min(row["ms"])) / middle})
    return sorted(found, key=lambda row: row["measured_ms"])


def of_model(rows):
    """Scores of a model: those of each predictor, of the usual placements, and the largest correlation that the noise allows."""
    best = rows[0]["measured_ms"]
    by_name = {row["placement"]: row["measured_ms"] / best - 1 for row in rows}
    drawn = [regret for name, regret in by_name.items() if name.startswith("random")]
    found = {name: scores(rows, name) for name in PREDICTORS if name in rows[0]}
    found |= {"regret_of": {name: by_name[name] for name in ("pick", "round_robin", "by_lookups", "by_size") if name in by_name}}
    if drawn:
        found["regret_of"]["random, mean"] = statistics.mean(drawn)
    inside = [row["interval_ms"][0] <= row["measured_ms"] <= row["interval_ms"][1] for row in rows]
    return {**found, "attainable_spearman": attainable(rows), "noise": statistics.median(row["noise"] for row in rows), "inside": sum(inside), "of": len(rows)}


def table(model, rows, found):
    """Prints the rows and the scores of a model."""
    names = [name for name in PREDICTORS if name in rows[0]]
    print(f"\n{model}, {rows[0]['indices']}, batch {rows[0]['batch']:,}\n{'placement':<14}{'measured':>10}{'noise':>8}" + "".join(f"{name:>10}" for name in names))
    for row in rows:
        print(f"{row['placement']:<14}{row['measured_ms']:>10.3f}{row['noise']:>8.1%}" + "".join(f"{row[name]:>10.3f}" for name in names))
    for name in names:
        each = found[name]
        print(f"{name}: regret {each['regret']:.1%}, Spearman {shown(each['spearman'])}, mean error {each['mean_error']:.1%}, ", end="")
        print(f"bias {each['bias']:+.1%}, without it {each['mean_error_without_bias']:.1%}")
    others = ", ".join(f"{name} {regret:.1%}" for name, regret in found["regret_of"].items())
    print(f"noise {found['noise']:.1%} allows Spearman {shown(found['attainable_spearman'])}; regret of {others}")


def shown(value):
    return "none" if value is None else f"{value:.2f}"


def totals(models):
    """Means over models."""
    mean = lambda values: statistics.mean(kept) if (kept := [value for value in values if value is not None]) else None  # noqa: E731
    names = [name for name in PREDICTORS if all(name in each for each in models.values())]
    found = {name: {key: mean(each[name][key] for each in models.values()) for key in ("regret", "spearman", "mean_error", "mean_error_without_bias")} for name in names}
    found["attainable_spearman"] = mean(each["attainable_spearman"] for each in models.values())
    found["regret_of"] = {key: mean(each["regret_of"].get(key) for each in models.values()) for key in ("pick", "round_robin", "by_lookups", "by_size", "random, mean")}
    return found | {"inside": sum(each["inside"] for each in models.values()), "of": sum(each["of"] for each in models.values())}


def measurements(path):
    """The content of a file of `--predict` or `--measure`."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        sys.exit(f"{path}: {error}: `placements.py --predict` and `--measure` write such files")


def compare(asked, jobs, folder):
    """Prints the tables and adds `rows` of both and the scores to the measured file."""
    predicted, measured = (measurements(path) for path in (asked.predicted, asked.compare))
    models, rows = {}, []
    for job in jobs:
        own = joined(predicted, measured, job[0])
        if not own:
            print(f"{job[0]}: not measured")
            continue
        if asked.host:
            for row in own:
                row["host"], row["host_interval_ms"] = evaluated(asked, job, folder / job[0] / f"{row['placement']}.json", ("--host", asked.host))
        models[job[0]] = of_model(own)
        rows += own
        table(job[0], own, models[job[0]])
    if not models:
        sys.exit(f"{asked.compare}: no rows of these models")
    found = totals(models)
    print(f"\n{len(models)} models, {found['of']} placements, {found['inside']} within their intervals")
    for name in (name for name in PREDICTORS if name in found):
        each = found[name]
        print(f"{name}: mean regret {each['regret']:.1%}, Spearman {shown(each['spearman'])} of {shown(found['attainable_spearman'])}, ", end="")
        print(f"mean error {each['mean_error']:.1%}, without the model's bias {each['mean_error_without_bias']:.1%}")
    print("regret of " + ", ".join(f"{name} {regret:.1%}" for name, regret in found["regret_of"].items() if regret is not None))
    others = [row for row in measured["rows"] if row["model"] not in models]
    measured |= {"rows": others + rows, "scores": models, "totals": found}
    asked.compare.write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")
