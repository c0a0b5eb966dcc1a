"""Writes schemas.txt: the schemas of the ops named on standard input, from the installed PyTorch.

    cargo run -p steptime-aten --example names | python crates/model/aten/data/schemas.py > crates/model/aten/data/schemas.txt
"""

import sys

import torch

wanted = set(sys.stdin.read().split())
lines = []
for schema in torch._C._jit_get_all_schemas():
    out = schema.overload_name.endswith("out") or any(a.is_out for a in schema.arguments)
    tensors = any("Tensor" in str(a.type) for a in [*schema.arguments, *schema.returns])
    overload = schema.overload_name.lower()
    # Overloads that only scripts or named dimensions use.
    rare = any(word in overload for word in ("dimname", "hacked_twin", "list_", "names", "prim_", "generator"))
    if schema.name in wanted and tensors and not (out or rare):
        lines.append(str(schema))
print("\n".join(sorted(set(lines))))
