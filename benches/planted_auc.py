"""Trains one model on planted rows in `steptime-train` and in PyTorch: equal initial parameters, equal batches, equal optimizer.

    cargo build --release -p steptime-train-cli
    python benches/planted_auc.py [--runs NAME,...] [--folder FOLDER] [--out benches/results/planted_auc.json]       (a CPU, PyTorch)
    python benches/planted_auc.py --device cuda --dtype f32,tf32,bf16 [--out FILE.json]                                   (a GPU, PyTorch)

`steptime-train data synthetic` writes the rows, whose labels are drawn with known probabilities. A step of rate 0 writes a checkpoint of the
initial parameters, which `steptime.models` loads into the PyTorch module. Both train one epoch, and both are evaluated on all rows for
validation. PyTorch reads the rows from the dataset, in the order in which `steptime-train` shuffles them. With bf16 it trains under
autocast. FILE.json has the AUC of both, and that of the true probabilities on the same labels. With several precisions, the names of
runs end with theirs.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Tuple

import numpy
import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python"))

from steptime.models import load  # noqa: E402
from steptime.models.description import toml  # noqa: E402

# Planted rows: columns with few categories, so that an epoch has thousands of rows of each.
ROWS, VALIDATION, BATCH, SEED = 4_500_000, 500_000, 512, 1
COMMON = """
batch = {batch}
dense = 4
table_init = "{tables}"
tables = [{{ rows = 20, columns = 8, count = 6 }}, {{ rows = 100, columns = 8, count = 2 }}]
optimizer = {{ name = "{optimizer}" }}
"""
MODELS = {
    "dlrm": 'model = "dlrm"\nbottom_mlp = [32, 8]\ntop_mlp = [32, 1]' + COMMON,
    "deepfm": 'model = "deepfm"\ntop_mlp = [8, 1]' + COMMON,
}


class Run(NamedTuple):
    """A model, its initial tables, the optimizer, its rate, and whether the rate decays to 0, linearly."""

    model: str
    tables: str
    optimizer: str
    rate: float
    decay: bool

    def described(self) -> str:
        """The text of `model.toml`."""
        return MODELS[self.model].format(batch=BATCH, tables=self.tables, optimizer=self.optimizer)


RUNS = {
    "dlrm": Run("dlrm", "uniform", "adam", 0.01, True),
    "dlrm_constant_rate": Run("dlrm", "uniform", "adam", 0.01, False),
    "dlrm_normal_tables": Run("dlrm", "normal", "adam", 0.01, True),
    "dlrm_adagrad": Run("dlrm", "uniform", "adagrad", 0.1, True),
    "deepfm_adagrad": Run("deepfm", "uniform", "adagrad", 0.1, True),
    "deepfm_adagrad_normal_tables": Run("deepfm", "normal", "adagrad", 0.1, True),
}
TYPES = {"u8": numpy.uint8, "u16": numpy.uint16, "i32": numpy.int32}
WORD = 1 << 64


def mix(bits: int) -> int:
    """The finalizer of SplitMix64."""
    bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9 % WORD
    bits = (bits ^ bits >> 27) * 0x94D049BB133111EB % WORD
    return bits ^ bits >> 31


def permutation(n: int, key: int) -> numpy.ndarray:
    """`0..n` in the order of a key: the one of the crate `steptime-dataset`."""
    width = max((n - 1).bit_length(), 1)
    mask, shift = numpy.uint64((1 << width) - 1), numpy.uint64(-(-width // 2))
    rounds: List[Tuple[numpy.uint64, numpy.uint64]] = []
    for _ in range(6):
        factor = key = mix((key + 0x9E3779B97F4A7C15) % WORD)
        key = mix((key + 0x9E3779B97F4A7C15) % WORD)
        rounds.append((numpy.uint64(factor | 1), numpy.uint64(key)))

    def turned(values: numpy.ndarray) -> numpy.ndarray:
        for factor, summand in rounds:
            values = values * factor + summand & mask
            values = values ^ values >> shift
        return values

    values = turned(numpy.arange(n, dtype=numpy.uint64))
    while (values >= n).any():
        values = numpy.where(values >= n, turned(values), values)
    return values.astype(numpy.int64)


def order(rows: int, seed: int, epoch: int = 0, block: int = 2048, blocks: int = 16) -> numpy.ndarray:
    """The rows of an epoch in the order of `steptime-train`: blocks in random order, then rows within each window of blocks."""
    key, window = mix(seed ^ mix(epoch + 1)), block * blocks
    whole = permutation(rows // block, key)
    starts = numpy.concatenate([whole, [rows // block] * (rows % block > 0)]).astype(numpy.int64) * block
    found = []
    for at in range(-(-rows // window)):
        first, end = at * window, min((at + 1) * window, rows)
        within = permutation(end - first, mix(key ^ mix(~at % WORD)))
        found.append(starts[first // block :][within // block] + within % block)
    return numpy.concatenate(found)


class Dataset:
    """A dataset, in memory."""

    def __init__(self, folder: Path, device: str) -> None:
        self.device = device
        features = toml((folder / "features.toml").read_text(), str(folder))
        self.splits = features["splits"]
        self.label = numpy.fromfile(folder / features["label"]["file"], numpy.float32)
        self.dense = numpy.fromfile(folder / features["dense"]["file"], numpy.float32).reshape(len(self.label), -1)
        columns = [(numpy.fromfile(folder / one["file"], TYPES[one["type"]]), one["hotness"]) for one in features["categorical"]]
        self.categorical = [values.reshape(len(self.label), hotness) for values, hotness in columns]

    def batch(self, rows: Any) -> Tuple[torch.Tensor, List[torch.Tensor], torch.Tensor]:
        """Dense values, indices of each table, labels."""
        lookups = [torch.from_numpy(values[rows].astype(numpy.int64)).to(self.device) for values in self.categorical]
        return torch.from_numpy(self.dense[rows]).to(self.device), lookups, torch.from_numpy(self.label[rows]).to(self.device)

    def batches(self, rows: numpy.ndarray, batch: int, short: bool) -> Iterator[Any]:
        end = len(rows) if short else len(rows) // batch * batch
        return (self.batch(rows[at : at + batch]) for at in range(0, end, batch))


def auc(scores: numpy.ndarray, labels: numpy.ndarray) -> float:
    """The exact area under the curve; equal scores count half."""
    _, group, counts = numpy.unique(scores, return_inverse=True, return_counts=True)
    ranks = (numpy.cumsum(counts) - (counts - 1) / 2)[group]
    positives = float(labels.sum())
    return float((ranks[labels > 0].sum() - positives * (positives + 1) / 2) / (positives * (len(labels) - positives)))


def in_pytorch(model: Path, start: Path, data: Dataset, of: Run, dtype: str) -> Dict[str, float]:
    """AUC and log loss after an epoch of PyTorch."""
    torch.backends.cuda.matmul.allow_tf32 = dtype == "tf32"
    autocast = torch.autocast(data.device, torch.bfloat16, enabled=dtype == "bf16")
    module = load(model, start, data.device)
    kinds = {"sgd": torch.optim.SGD, "adagrad": torch.optim.Adagrad, "adam": torch.optim.Adam}
    trained = kinds[of.optimizer](module.parameters(), lr=of.rate)
    first, end = data.splits["train"]
    rows = first + order(end - first, SEED)
    steps = len(rows) // BATCH
    for step, (dense, lookups, labels) in enumerate(data.batches(rows, BATCH, short=False)):
        for group in trained.param_groups:
            group["lr"] = of.rate * (1 - step / steps) if of.decay else of.rate
        trained.zero_grad()
        with autocast:
            output = module(dense, lookups)
        module.loss(output.float(), labels).backward()
        trained.step()
    with torch.no_grad(), autocast:
        rows = numpy.arange(*data.splits["validation"])
        logits = torch.cat([module(dense, lookups)[:, 0].float().cpu() for dense, lookups, _ in data.batches(rows, 8192, short=True)])
    labels = torch.from_numpy(data.label[rows])
    loss = torch.nn.functional.binary_cross_entropy_with_logits(logits.double(), labels.double())
    return {"auc": auc(logits.numpy(), labels.numpy()), "log_loss": float(loss)}


def run(program: Path, *arguments: object) -> Dict[str, Any]:
    """The JSON of a run of `steptime-train`."""
    done = subprocess.run([str(program), *map(str, arguments), "--json"], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    answer: Dict[str, Any] = json.loads(done.stdout)
    return answer


def compared(program: Path, folder: Path, name: str, data: Dataset, dtype: str) -> Dict[str, Any]:
    """A run in both."""
    of, own = RUNS[name], folder / f"{name}_{dtype}"
    own.mkdir()
    model, schedule = own / "model.toml", own / "schedule.toml"
    model.write_text(of.described())
    first, end = data.splits["train"]
    decay = f'decay = {{ kind = "polynomial", steps = {(end - first) // BATCH}, power = 1.0 }}\n'
    schedule.write_text(decay if of.decay else "")
    given = [model, "--data", folder / "rows", "--seed", SEED, "--device", data.device, "--dtype", dtype]
    run(program, *given, "--rate", 0, "--steps", 1, "--eval-rows", 1000, "-o", own / "start")
    answer = run(program, *given, "--rate", of.rate, "--epochs", 1, "--schedule", schedule)
    ours = {key: answer["evaluations"][-1][key] for key in ("auc", "log_loss")}
    theirs = in_pytorch(model, own / "start", data, of, dtype)
    print(f"{name:30} {dtype:5} steptime-train {ours['auc']:.5f}  PyTorch {theirs['auc']:.5f}", flush=True)
    return {**of._asdict(), "device": answer["device"], "dtype": dtype, "steps": answer["measured"]["steps"], "steptime_train": ours, "pytorch": theirs}


def main() -> None:
    """Writes the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=Path, default=ROOT / "target/release/steptime-train")
    parser.add_argument("--runs", help=f"names of runs, separated by commas, of {', '.join(RUNS)} [default: all]")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--dtype", default="f32", help="precisions, separated by commas: f32, and tf32 and bf16 on a GPU")
    parser.add_argument("--folder", type=Path, help="folder for the rows and checkpoints [default: a temporary one]")
    parser.add_argument("--out", type=Path, help="the file to write")
    asked = parser.parse_args()
    names = asked.runs.split(",") if asked.runs else list(RUNS)
    dtypes = asked.dtype.split(",")
    for given, known in ((names, RUNS), (dtypes, ("f32", "tf32", "bf16") if asked.device == "cuda" else ("f32",))):
        for name in given:
            if name not in known:
                parser.error(f"{name} is unknown on a {asked.device}: choose of {', '.join(known)}")
    # The tensors of a step are small: a second thread waits more than it computes.
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(dir=asked.folder) as place:
        folder = Path(place)
        (folder / "model.toml").write_text(RUNS["dlrm"].described())
        share = VALIDATION / ROWS
        rows = ["--rows", ROWS, "--validation", share, "--seed", SEED]
        best = run(asked.program, "data", "synthetic", folder / "model.toml", "-o", folder / "rows", *rows)
        true = {key: best["true_probabilities"][key] for key in ("auc", "log_loss")}
        print(f"best possible {best['best']['auc']:.5f}, on these labels {true['auc']:.5f}", flush=True)
        data = Dataset(folder / "rows", asked.device)
        every = [(name, dtype) for name in names for dtype in dtypes]
        runs = {name if len(dtypes) == 1 else f"{name}_{dtype}": compared(asked.program, folder, name, data, dtype) for name, dtype in every}
    about = {"made_by": "python benches/planted_auc.py", "torch": torch.__version__, "train_rows": best["train"], "validation_rows": best["validation"]}
    result = {**about, "batch": BATCH, "best": best["best"], "true_probabilities": true, "runs": runs}
    if asked.out:
        asked.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
