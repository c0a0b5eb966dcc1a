"""Measures of a checkpoint in PyTorch: `pytorch.py MODEL.toml CHECKPOINT ROWS` prints the loss on all rows of the dataset ROWS for training,
and AUC and log loss on those for validation, as JSON."""

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


model, checkpoint, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
features = toml((folder / "features.toml").read_text(), "features.toml")
labels = read(folder, features["label"]["file"], torch.float32)
columns = features["dense"]["columns"]
dense = read(folder, features["dense"]["file"], torch.float32).view(-1, len(columns)) if columns else None
lookups = [read(folder, one["file"], TYPES[one["type"]]).view(-1, one["hotness"]).long() for one in features["categorical"]]
module = load(model, checkpoint)


def outputs(rows):
    return module(None if dense is None else dense[rows], [indices[rows] for indices in lookups])


with torch.no_grad():
    train, validation = (slice(*features["splits"][name]) for name in ("train", "validation"))
    answer = {"loss": float(module.loss(outputs(train), labels[train]))}
    if module.description.model != "two_towers":
        found = outputs(validation)[:, 0].double()
        if module.description.loss != "mse":
            found = torch.sigmoid(found)
        answer["samples"] = len(found)
        answer["auc"] = auc(found, labels[validation])
        answer["log_loss"] = float(torch.nn.functional.binary_cross_entropy(found, labels[validation].double()))
print(json.dumps(answer))
