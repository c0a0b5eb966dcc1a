"""Measures the value of knowing which kernel a library picks: trees fitted on a sweep, with and without the class of the kernel.

    pip install pyarrow pandas scikit-learn
    python lab/kernel_choice.py SWEEP.parquet gemm
    python lab/kernel_choice.py SWEEP.parquet conv

Trees predict the logarithm of measured over roofline time: from features of the shape alone; with the class of the kernel that ran;
and with the class probabilities of a classifier on the same features. Five folds; equal shapes are in one fold. Features are simple
(those of convolutions have neither padding nor dilation): only the difference between the three matters.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from typing import Any, List, Tuple

RARE = 30  # classes with fewer rows are merged into one
PRODUCTS = ("aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm")
CONVOLUTIONS = ("aten::convolution_backward", "aten::cudnn_convolution", "aten::_conv_depthwise2d")
TYPES = {"float": 0, "c10::Half": 1, "c10::BFloat16": 2}
MASKS = {"[True, True, False]": 3, "[False, True, False]": 2, "[True, False, False]": 1, "[True, True, True]": 7, "[False, True, True]": 6}


def main() -> int:
    import numpy as np
    import pyarrow.parquet as pq
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from sklearn.model_selection import GroupKFold, cross_val_predict

    path, family = sys.argv[1:3]
    read = {"gemm": product, "conv": convolution}[family]
    table = pq.read_table(path).to_pandas()
    # Earlier sweeps have the earlier names of families.
    names = [family, "hard_shapes", "rare_shapes", "rare_layers", "hard", "corners", "seldom"]
    rows = [read(row) for row in table[table.family.isin(names)].itertuples()]
    shapes, classes, ratios = zip(*[row for row in rows if row is not None])
    x, y = np.array(shapes, float), np.array(ratios)
    counts = Counter(classes)
    kinds = np.array([kind if counts[kind] >= RARE else "rare" for kind in classes])
    names = np.unique(kinds)
    folds = {"cv": GroupKFold(5), "groups": [str(list(shape[:8])) for shape in x]}

    def error(features: Any) -> float:
        trees = HistGradientBoostingRegressor(max_iter=300, learning_rate=0.08, loss="absolute_error")
        return 100 * float(np.mean(np.abs(np.exp(cross_val_predict(trees, features, y, **folds) - y) - 1)))

    classifier = HistGradientBoostingClassifier(max_iter=80, learning_rate=0.1)
    chances = cross_val_predict(classifier, x, kinds, method="predict_proba", **folds)
    right = 100 * float(np.mean(names[chances.argmax(1)] == kinds))
    print(f"{len(y)} rows, {len(names)} classes, {right:.0f} % of them predicted right")
    print(f"mean error by shape {error(x):.1f} %, ", end="")
    print(f"with the true class {error(np.hstack([x, kinds[:, None] == names])):.1f} %, ", end="")
    print(f"with a predicted class {error(np.hstack([x, chances])):.1f} %")
    return 0


def over_roofline(row: Any, shape: List[float], flops: float, moved: float, half: int) -> Tuple[List[float], float]:
    """Features including those of the roofline (400, 200 and 50 TFLOP/s, 3 TB/s, 3 us), and the logarithm of measured over roofline time."""
    from math import log

    compute = flops / ((400 if half in (1, 2) else 200 if row.tf32 else 50) * 1e6)
    memory = moved / 3e6
    return [*shape, log(compute), log(memory), log(flops / moved)], log(row.us / (max(compute, memory) + 3))


def product(row: Any) -> Any:
    from math import log

    if row.op not in PRODUCTS:
        return None
    matrices = [(size, stride) for size, stride in zip(json.loads(row.dims), json.loads(row.strides)) if len(size) >= 2]
    (a, of_a), (b, of_b) = matrices[-2:]
    batch, m, k, n = a[0] if len(a) == 3 else 1, a[-2], a[-1], b[-1]
    if min(batch, m, n, k) < 1:
        return None
    half = TYPES.get(json.loads(row.types)[0], 3)
    shape = [log(batch), log(m), log(n), log(k), m % 8, n % 8, k % 8, half, row.tf32, of_a[-1] == 1, of_b[-1] == 1]
    shape += [row.op == "aten::addmm", row.state == "cold", log(m * n * batch / 16384 / 132), len(a)]
    moved = batch * (m * k + k * n + m * n) * (2 if half in (1, 2) else 4)
    features, ratio = over_roofline(row, shape, 2 * batch * m * n * k, moved, half)
    return features, product_class(json.loads(row.kernels)), ratio


def product_class(kernels: List[str]) -> str:
    """Kernel class of a matrix product: the unit, whether sums are split, and the tile."""
    text = " ".join(kernels)
    moves = len(kernels) == 1 and ("Memcpy" in text or "elementwise" in text)
    unit = (
        "vector" if any(word in text for word in ("gemv", "dot_kernel", "gemmSN"))
        else "nvjet" if "nvjet" in text
        else "simt" if "ffma" in text or "simt" in text or "sgemm" in text.lower()
        else "tensor" if any(word in text for word in ("tensor", "xmma", "wmma"))
        else "copy" if moves
        else "other"
    )  # fmt: skip
    named = " ".join(name for name in kernels if any(word in name for word in ("gemm", "nvjet", "utlass")))
    patterns = (r"tilesize(\d+x\d+)", r"_(\d+x\d+)_\d+x\d+", r"(\d+x\d+)_")
    tile = next((found[1] for found in (re.search(pattern, named) for pattern in patterns) if found), "")
    return f"{unit} {'split' if re.search('plitK|largek', text) else ''} {tile}"


def convolution(row: Any) -> Any:
    from math import log

    if row.op not in CONVOLUTIONS:
        return None
    sizes, strides, concrete = json.loads(row.dims), json.loads(row.strides), json.loads(row.concrete)
    backward = row.op == "aten::convolution_backward"
    image, weight, of_image = (sizes[1], sizes[2], strides[1]) if backward else (sizes[0], sizes[1], strides[0])
    if len(image) != 4 or len(weight) != 4:
        return None
    pairs = [json.loads(value) for value in concrete if value.startswith("[") and value.count(",") == 1 and "T" not in value and "F" not in value]
    step = pairs[0][0] if pairs else 1
    mask = MASKS.get(concrete[-1], 0) if backward else 0
    half = TYPES.get(json.loads(row.types)[0], 3)
    count, channels, height, width = image
    out, per_group, high, wide = weight
    rows, columns = sizes[0][2:] if backward else (max(1, side // max(1, step)) for side in (height, width))
    groups = channels / max(1, per_group)
    shape = [log(count), log(channels), log(out), log(height * width), log(high * wide), step, log(groups), groups == channels, half, row.tf32]
    shape += [of_image[1] == 1 and channels > 1, mask, row.op == "aten::_conv_depthwise2d", log(rows * columns), channels % 8, out % 8]
    shape += [row.state == "cold"]
    both = mask in (3, 7)
    flops = 2 * count * rows * columns * out * per_group * high * wide * (2 if both else 1)
    moved = count * channels * height * width + count * out * rows * columns + out * per_group * high * wide
    features, ratio = over_roofline(row, shape, flops, moved * (2 if half in (1, 2) else 4) * (1.5 if both else 1), half)
    return features, convolution_class(json.loads(row.kernels)), ratio


def convolution_class(kernels: List[str]) -> str:
    """Kernel class of a convolution: the algorithm or unit, the number of layout changes, and whether sums are split."""
    text = " ".join(kernels)
    low = text.lower()
    way = (
        "winograd" if "winograd" in low
        else "fft" if "fft" in low
        else "depthwise" if any(word in text for word in ("depthwise", "grouped_direct", "dgrad2d", "conv2d_c1"))
        else "direct" if re.search("dgrad_engine|wgrad_alg|implicit_convolve|explicit_convolve|bgrad|dgrad_alg", text)
        else "simt" if "ffma" in text or "simt" in text or "sgemm" in low
        else "tensor" if any(word in low for word in ("gemm", "tensorop", "xmma", "nvjet", "cutlass"))
        else "other"
    )  # fmt: skip
    changes = sum(bool(re.search("nchwToNhwc|nhwcToNchw|AddPadding|convertTensor", name)) for name in kernels)
    return f"{way} {min(changes, 3)} {'split' if re.search('[Ss]plitK', text) else ''}"


if __name__ == "__main__":
    sys.exit(main())
