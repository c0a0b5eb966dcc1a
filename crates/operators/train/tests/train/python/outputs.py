"""Checks a model with `onnx`, runs it with `onnxruntime`, and writes every output's bytes: outputs.py MODEL FOLDER.

FOLDER/inputs.json names the inputs with type and shape; FOLDER/NAME.bin has their bytes.
"""

import json
import sys
from pathlib import Path

import numpy
import onnx
import onnxruntime

model, folder = sys.argv[1], Path(sys.argv[2])
onnx.checker.check_model(model, full_check=True)
inputs = {
    name: numpy.fromfile(folder / f"{name}.bin", dtype=dtype).reshape(shape)
    for name, (dtype, shape) in json.loads((folder / "inputs.json").read_text()).items()
}
session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
names = [output.name for output in session.get_outputs()]
for output, value in zip(session.get_outputs(), session.run(names, inputs), strict=True):
    declared = output.shape
    assert len(declared) == value.ndim, (output.name, declared, value.shape)
    assert all(isinstance(a, str) or a == b for a, b in zip(declared, value.shape)), (output.name, declared, value.shape)
    assert value.dtype == numpy.float32, (output.name, value.dtype)
    value.tofile(folder / f"{output.name}.bin")
    print(output.name, *value.shape)
