"""Measures of checkpoints in PyTorch: `pytorch.py FOLDER...` prints for each folder, with `model.toml`, a checkpoint in `run` and the dataset
`rows`, the loss on all rows for training, and AUC and log loss on those for validation, as JSON."""

import json
import sys
from pathlib import Path

import torch
from steptime.models import load
from steptime.models.description import toml

TYPES = {"u8": torch.uint8, "u16": torch.uint16, "i32": torch.int32}


def read(folder, name, dtype):
    path = folder / name
    return torch.frombuffer(bytearray(path.read_bytes()), dtype=dtype)


def auc(scores, labels):
    positives, negatives = scores[labels > 0, None], scores[None, labels == 0]
    return float((positives > negatives).double().mean() + (positives == negatives).double().mean() / 2)


def measures(place):
    folder = place / "rows"
    features = toml((folder / "features.toml").read_text(), "features.toml")
    labels = read(folder, features["label"]["file"], torch.float32)
    columns = features["dense"]["columns"]
    dense = read(folder, features["dense"]["file"], torch.float32).view(-1, len(columns)) if columns else None
    lookups = [read(folder, one["file"], TYPES[one["type"]]).view(-1, one["hotness"]).long() for one in features["categorical"]]
    module = load(place / "model.toml", place / "run")
    train, validation = (slice(*features["splits"][name]) for name in ("train", "validation"))

    def outputs(rows):
        return module(None if dense is None else dense[rows], [indices[rows] for indices in lookups])

    answer = {"loss": float(module.loss(outputs(train), labels[train]))}
    if module.description.model != "two_towers":
        found = outputs(validation)[:, 0].double()
        found = found if module.description.loss == "mse" else torch.sigmoid(found)
        answer["samples"] = len(found)
        answer["auc"] = auc(found, labels[validation])
        answer["log_loss"] = float(torch.nn.functional.binary_cross_entropy(found, labels[validation].double()))
    return answer


with torch.no_grad():
    print(json.dumps([measures(Path(folder)) for folder in sys.argv[1:]]))
