"""Scores predictions of whole models on GPUs without measurements against NeuSight's end-to-end labels.

    git clone https://github.com/sitar-lab/NeuSight
    git clone https://github.com/ai-dynamo/aiconfigurator
    pip install ./python torch transformers==4.38.2
    python benches/neusight_models.py --neusight NeuSight --aiconfigurator aiconfigurator [--captures FOLDER] [--out FILE.json]

No GPU is needed. Each model is made by transformers from NeuSight's configuration, on the meta device, and its execution trace is
recorded once per batch size and mode. It is then predicted for every GPU with a label. For each GPU the corrections are learnt from the
tables of all other GPUs, as in `other_gpus.py`: boards of one chip are left out together, and an H100 is predicted without its layer.

A label is the time between two CUDA events around `model(input_ids)`, and in training also between two events around `loss.backward()`,
with an idle device before each. The loss is computed between the two and not timed, and gradients are accumulated. The prediction is
therefore the step of the forward pass, plus the step of forward, loss and backward minus the step of forward and loss. Labels of fused
models, of jobs on several GPUs and of GPUs without a profile are left out.

Prints tables in Markdown; FILE.json has one row per label.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple

import other_gpus

# The profile of each folder of labels. The shipped corrections were learnt without tables of an L4 or of an AMD GPU.
GPUS = {
    "NVIDIA_H100_80GB_HBM3": "h100", "NVIDIA_A100_80GB_PCIe": "a100-80gb-pcie", "NVIDIA_A100-PCIE-40GB": "a100-pcie", "NVIDIA_L4": "l4",
    "Tesla_V100-PCIE-32GB": "v100", "Tesla_P100-PCIE-16GB": "p100", "Tesla_T4": "t4", "Tesla_P4": "p4", "AMD_Instinct_MI210": "mi210",
}  # fmt: skip
UNTAUGHT = {"l4", "mi210"}
PROFILES = Path(__file__).resolve().parents[1] / "profiles"
LABELS = "scripts/asplos/summary/summary.csv"
Row = Dict[str, Any]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--neusight", type=Path, required=True, help="a checkout of sitar-lab/NeuSight")
    parser.add_argument("--aiconfigurator", type=Path, help="a checkout of ai-dynamo/aiconfigurator: its tables are learnt from, too")
    parser.add_argument("--captures", type=Path, help="where execution traces are kept, and taken from where they are there already")
    parser.add_argument("--steptime", default="steptime", help="the program")
    parser.add_argument("--out", type=Path, help="a file for all rows")
    options = parser.parse_args()
    if not (options.neusight / LABELS).is_file():
        parser.error(f"no {LABELS} in {options.neusight}: give a checkout of sitar-lab/NeuSight")
    with tempfile.TemporaryDirectory() as scratch:
        captures = options.captures or Path(scratch) / "captures"
        profiles = Profiles(options.steptime, options.neusight, options.aiconfigurator, Path(scratch))
        rows = [predicted(options.steptime, options.neusight, captures, profiles, row) for row in labels(options.neusight)]
    if options.out:
        options.out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    for mode in ("train", "inf"):
        tables([row for row in rows if row["mode"] == mode], {"train": "Training", "inf": "Inference"}[mode])
    return 0


# Labels.


def labels(neusight: Path) -> List[Row]:
    """The labels of single GPUs, with NeuSight's published predictions."""
    published: Dict[Tuple[str, ...], Dict[str, str]] = {}
    with open(neusight / LABELS, encoding="utf-8") as file:
        for line in csv.DictReader(file):
            if not line["option"]:
                published[line["device"], line["model_name"], line["mode"], line["seqlen"], line["batch"]] = line
    rows = []
    for gpu, profile in GPUS.items():
        for path in sorted((neusight / "scripts/asplos/label" / gpu).glob("*.json")):
            parts = path.stem.split("-")
            if (gpu, *parts) not in published:
                continue
            line = published[(gpu, *parts)]
            label = json.loads(path.read_text(encoding="utf-8"))
            model, mode, sequence, batch = parts
            rows.append({
                "gpu": gpu, "profile": profile, "model": model, "mode": mode, "batch": int(batch), "sequence": int(sequence),
                "measured_ms": label["e2e_latency"], "measured_forward_ms": label["fw_latency"], "measured_backward_ms": label["bwall_latency"],
                "neusight_ms": number(line["neusight_all_e2e_latency"]), "neusight_roofline_ms": number(line["roofline_all_e2e_latency"]),
            })  # fmt: skip
    return rows


def number(text: str) -> Optional[float]:
    return float(text) if text else None


# Models.


def captured(neusight: Path, captures: Path, row: Row) -> Dict[str, Path]:
    """Execution traces of a label's model: of the forward pass and, for training, of forward and loss, and of the whole step."""
    parts = ["forward", "loss", "all"] if row["mode"] == "train" else ["forward"]
    folder = captures / f"{row['model']}-{row['mode']}-{row['sequence']}-{row['batch']}"
    found = {part: folder / part for part in parts}
    if not all(path.is_dir() for path in found.values()):
        print(f"{folder.name}: recorded on the meta device", file=sys.stderr)
        capture(neusight / f"scripts/asplos/data/DLmodel_configs/{row['model']}.json", row, found)
    return found


def capture(config: Path, row: Row, wanted: Dict[str, Path]) -> None:
    """Records the execution traces of a model on the meta device."""
    import steptime
    import torch
    import transformers

    # This function reads the values of the indices to find padding; tensors without memory have none.
    setattr(transformers.PreTrainedModel, "warn_if_padding_and_no_attention_mask", lambda *_: None)
    settings = transformers.AutoConfig.from_pretrained(config)
    trained = row["mode"] == "train"
    kind: Any = transformers.AutoModelForCausalLM
    if settings.model_type == "bert":
        kind = transformers.AutoModelForPreTraining if trained else transformers.AutoModelForSequenceClassification
    if settings.model_type == "switch_transformers":
        kind = transformers.AutoModelForSeq2SeqLM
        settings.torch_dtype = None
        routed(transformers.models.switch_transformers.modeling_switch_transformers.SwitchTransformersSparseMLP)
    with torch.device("meta"):
        model = kind.from_config(settings, attn_implementation="eager").train(trained)
        indices = torch.ones(row["batch"], row["sequence"], dtype=torch.int64)
    inputs = {"input_ids": indices}
    if settings.model_type == "switch_transformers":
        # The labels were measured with positional arguments: indices, attention mask, indices of the decoder.
        inputs = {"input_ids": indices, "attention_mask": indices, "decoder_input_ids": indices}

    def forward() -> Any:
        with torch.set_grad_enabled(trained):
            return model(**inputs)

    def loss() -> Any:
        answer = forward()
        logits = answer["prediction_logits"] if "prediction_logits" in answer else answer["logits"]
        return torch.nn.functional.cross_entropy(logits.view(-1, logits.size(-1)), indices.view(-1))

    steps: Dict[str, Callable[[], Any]] = {"forward": forward, "loss": loss, "all": lambda: loss().backward()}
    for part, folder in wanted.items():
        folder.parent.mkdir(parents=True, exist_ok=True)
        steptime.record(steps[part], None, folder, batch=row["batch"], model=model, only="et", overwrite=True)


def routed(layer: Any) -> None:
    """Makes a layer of experts run without values for the routing: each expert gets its maximum number of tokens."""
    import torch

    def forward(self: Any, states: Any) -> Tuple[Any, Any]:
        mask, shares, logits = self.router(states)
        after = states.clone()
        for at, expert in enumerate(self.experts.values()):
            chosen = torch.nonzero_static(mask[:, :, at].bool(), size=min(self.router.expert_capacity, states.shape[1]) * states.shape[0])
            rows, columns = chosen.unbind(1)
            after[rows, columns] = expert(states[rows, columns])
        return shares * after, (logits, torch.argmax(mask, dim=-1))

    layer.forward = forward


# Predictions.


class Profiles:
    """Profiles of GPUs, each without measurements on the GPU or its chip."""

    def __init__(self, steptime: str, neusight: Path, aiconfigurator: Optional[Path], scratch: Path) -> None:
        self.steptime, self.scratch = steptime, scratch
        engines = other_gpus.tables_of_engines(aiconfigurator)
        tables = other_gpus.training(neusight) + [path for name, path in engines.items() if name not in other_gpus.LIKE_THE_LENDER]
        self.learnt = [str(path) for path in tables]
        self.made: Dict[str, str] = {}

    def without(self, name: str) -> str:
        """Argument of `predict --device` for a GPU that is left out."""
        if name not in self.made:
            self.made[name] = name if name in UNTAUGHT else str(self._make(name))
        return self.made[name]

    def _make(self, name: str) -> Path:
        folder = self.scratch / name
        folder.mkdir()
        header = (PROFILES / name / "profile.toml").read_text(encoding="utf-8")
        if name in other_gpus.LIKE_THE_LENDER:
            # The specification only: the models of the H200 are transferred unchanged.
            header = re.sub(r"^onto = .*\n", "", header, flags=re.M)
            (folder / "profile.toml").write_text(re.split(r"^\[sweep\]|^\[\[family", header, flags=re.M)[0], encoding="utf-8")
            return folder
        (folder / "profile.toml").write_text(header, encoding="utf-8")
        left_out, learnt = other_gpus.NEUSIGHT[name], str(folder / "corrections")
        other_gpus.run([self.steptime, "device", "transfer", *self.learnt, "--most", "15000", "--without", *left_out, "-o", learnt])
        return folder


def predicted(steptime: str, neusight: Path, captures: Path, profiles: Profiles, row: Row) -> Row:
    """A label with its predictions."""
    traces = captured(neusight, captures, row)
    answers = {}
    for how, device in [("left_out", profiles.without(row["profile"])), ("shipped", row["profile"])]:
        steps = {part: step(steptime, trace, device) for part, trace in traces.items()}
        forward, whole = steps["forward"], steps.get("all", steps["forward"])
        backward = whole["step_ms"] - steps["loss"]["step_ms"] if "all" in steps else 0.0
        ms = forward["step_ms"] + backward
        answers[how] = {
            "ms": ms, "forward_ms": forward["step_ms"], "interval_ms": [ms * bound / whole["step_ms"] for bound in whole["interval_ms"]],
            "active_share": whole["active_ms"] / whole["step_ms"],
        }  # fmt: skip
    left_out, shipped = answers["left_out"], answers["shipped"]
    taught = row["profile"] not in UNTAUGHT | other_gpus.LIKE_THE_LENDER
    how = "corrections learnt without this chip" if taught else "corrections that ship: they know nothing of it"
    if row["profile"] in other_gpus.LIKE_THE_LENDER:
        how = "models of an H200, without a layer"
    numbers: Row = rounded({
        **row, "predicted_ms": left_out["ms"], "interval_ms": left_out["interval_ms"], "predicted_forward_ms": left_out["forward_ms"],
        "active_share": left_out["active_share"], "shipped_ms": shipped["ms"], "shipped_interval_ms": shipped["interval_ms"], "how": how,
    })  # fmt: skip
    return numbers


def rounded(value: Any) -> Any:
    """Numbers rounded to their significant digits."""
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    if isinstance(value, list):
        return [rounded(one) for one in value]
    return round(value, 3) if isinstance(value, float) else value


def step(steptime: str, trace: Path, device: str) -> Row:
    answer: Row = json.loads(other_gpus.run([steptime, "predict", str(trace), "--device", device, "--json"]))
    return answer


# Tables.


def tables(rows: List[Row], title: str) -> None:
    """Scores by GPU and by model, then all rows."""
    print(f"\n**{title}**\n")
    for by in ("profile", "model"):
        groups = {name: [row for row in rows if row[by] == name] for name in dict.fromkeys(row[by] for row in rows)}
        groups["NVIDIA's together"] = [row for row in rows if not row["gpu"].startswith("AMD")]
        groups["all"] = rows
        parts = " forward | backward |" if rows[0]["measured_backward_ms"] else ""
        more = "median of predicted over measured | in the interval | with its own tables | NeuSight | its roofline |"
        heads = f"| {by} | labels | mean error |{parts} {more}"
        print(heads + "\n|---" + "|--:" * (heads.count("|") - 2) + "|")
        for name, group in groups.items():
            print(scores(name, group))
        print()
    print("| GPU | model | batch | sequence | ms, measured | predicted | 90 % interval | error | NeuSight |")
    print("|---|---|--:|--:|--:|--:|--:|--:|--:|")
    for row in rows:
        low, high = row["interval_ms"]
        print(
            f"| {row['profile']} | {row['model']} | {row['batch']} | {row['sequence']} | {row['measured_ms']:.1f} | {row['predicted_ms']:.1f} | "
            f"{low:.0f} to {high:.0f} | {row['predicted_ms'] / row['measured_ms'] - 1:+.1%} | {row['neusight_ms'] / row['measured_ms'] - 1:+.1%} |"
        )


def scores(name: str, rows: List[Row]) -> str:
    """One line of a table of scores."""
    ratio = statistics.median(row["predicted_ms"] / row["measured_ms"] for row in rows)
    inside = sum(row["interval_ms"][0] <= row["measured_ms"] <= row["interval_ms"][1] for row in rows)
    cells = [name, str(len(rows)), error(rows, "predicted_ms")]
    if rows[0]["measured_backward_ms"]:
        back = [{"ms": row["predicted_ms"] - row["predicted_forward_ms"], "measured": row["measured_backward_ms"]} for row in rows]
        cells += [error(rows, "predicted_forward_ms", "measured_forward_ms"), error(back, "ms", "measured")]
    cells += [f"{ratio:.2f}", f"{inside} of {len(rows)}"]
    cells += [error(rows, key) for key in ("shipped_ms", "neusight_ms", "neusight_roofline_ms")]
    return f"| {' | '.join(cells)} |"


def error(rows: Iterable[Row], key: str, against: str = "measured_ms") -> str:
    """Mean absolute error of a column, over the rows that have it."""
    errors = [abs(row[key] / row[against] - 1) for row in rows if row[key]]
    return f"{100 * statistics.mean(errors):.1f} %" if errors else "-"


if __name__ == "__main__":
    sys.exit(main())
