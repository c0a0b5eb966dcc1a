"""Reads a checkpoint with the package `safetensors`, and writes every tensor's bytes: shards.py CHECKPOINT FOLDER."""

import sys
import tomllib
from pathlib import Path

from safetensors import deserialize

checkpoint, folder = Path(sys.argv[1]), Path(sys.argv[2])
manifest = tomllib.loads((checkpoint / "checkpoint.toml").read_text())
shards = [dict(deserialize((checkpoint / shard["file"]).read_bytes())) for shard in manifest["shards"]]
for index, tensor in enumerate(manifest["tensors"]):
    data, first = b"", 0
    rows = tensor["shape"][0] if tensor["shape"] else 1
    for piece in tensor["pieces"]:
        last = first + piece["rows"]
        name = tensor["name"] if piece["rows"] == rows else f"{tensor['name']}[{first}..{last}]"
        part = shards[piece["shard"]][name]
        assert part["dtype"] == tensor["dtype"].upper(), part["dtype"]
        assert part["shape"] == [piece["rows"], *tensor["shape"][1:]][: len(tensor["shape"])], part["shape"]
        data += bytes(part["data"])
        first = last
    assert first == rows
    (folder / f"{index}.bin").write_bytes(data)
print(manifest["state"]["step"], len(manifest["tensors"]), len(shards))
