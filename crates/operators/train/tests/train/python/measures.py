"""Measures by scikit-learn: measures.py FOLDER, with scores.bin and labels.bin (f32, logits); prints area and log loss."""

import sys
from pathlib import Path

import numpy
from sklearn.metrics import log_loss, roc_auc_score

folder = Path(sys.argv[1])
scores = numpy.fromfile(folder / "scores.bin", dtype=numpy.float32)
labels = numpy.fromfile(folder / "labels.bin", dtype=numpy.float32)
probabilities = 1 / (1 + numpy.exp(-scores.astype(numpy.float64)))
print(repr(float(roc_auc_score(labels, scores))), repr(float(log_loss(labels, probabilities))))
