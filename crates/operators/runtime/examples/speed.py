"""Time of a training step of a described model in PyTorch, beside that of the example `speed`: one line of JSON a peer.

    python speed.py MODEL.toml [--device cpu|cuda] [--batch B] [--steps 20] [--tf32] [--bf16] [--peers eager,compile,bags,graph,fbgemm]
    python speed.py MODEL.toml --device cuda --rows-at-most 100000 --check

eager          the module of `steptime.models`: an EmbeddingBag for each table, with the gradients that the description has
compile        the same with torch.compile; tables with sparse gradients are apart from it where it cannot compile them
compile-graph  the same, the whole step captured as one CUDA graph; sparse gradients cannot be captured
bags           steptime's operators for tables and for the interaction of DLRM, torch.compile for the rest (STEPTIME_CUDA_LIBRARY)
graph          the same, the whole step captured as one CUDA graph
fbgemm         FBGEMM's table-batched bags with torch.compile, the whole step captured as one CUDA graph

Bags of the last three update rows in the backward pass. With Adam they update the rows of the batch, and the tables of the first three
all rows. FBGEMM's row-wise kernels need a multiple of four columns; narrower rows are padded. Indices are uniform, bags have one size, the
batch is on the device and no loss is read. The time is the median of five rounds of steps; steps before them are not counted.

With `--check` each peer makes three steps from equal parameters on one batch, and a captured peer makes them again by replays. The loss
after them agrees with that of the first peer within 1e-3 of its value, or within 1e-2 for bf16; otherwise the exit status is 1.
"""

import argparse
import dataclasses
import gc
import json
import math
import sys
import time
from pathlib import Path

import torch
from torch import nn

ROOT = Path(__file__).resolve().parents[4]
sys.path.insert(0, str(ROOT / "python"))

from steptime.models import build  # noqa: E402
from steptime.models import description as descriptions  # noqa: E402
from steptime.models.layers import Tables  # noqa: E402

PEERS = ("eager", "compile", "compile-graph", "bags", "graph", "fbgemm")
CAPTURED = ("compile-graph", "graph", "fbgemm")
FUSED_TABLES = ("bags", "graph", "fbgemm")
MODES = ("max-autotune-no-cudagraphs", "default")
APART = ", tables apart"
OPTIMIZERS = {"sgd": torch.optim.SGD, "adagrad": torch.optim.Adagrad, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW}
RATES = {"sgd": 1e-3, "adagrad": 1e-2, "adam": 1e-3, "adamw": 1e-3}
EPSILON = {"adagrad": 1e-10, "adam": 1e-8, "adamw": 1e-8}
WARM_UP, ROUNDS, CHECKED_STEPS = 5, 5, 3


class Pooled(nn.Module):
    """A module in place of `Tables`: returns vectors that were pooled before. `padded` is the width of each vector there."""

    def __init__(self, at, columns, padded):
        super().__init__()
        self.at, self.columns, self.padded = at, columns, padded

    def forward(self, pooled):
        vectors = pooled[self.at].split(self.padded, 1)
        return [vector[:, :columns] for vector, columns in zip(vectors, self.columns)]


class Bags:
    """The tables of one module in one call. `module` is that of a library, `tables` its weights, `zero` sets its states to zero."""

    def __init__(self, peer, tables, lookups, batch, pooling, optimizer, device):
        own = list(tables.values())
        self.columns = [bag.embedding_dim for bag in own]
        self.padded = [-(-columns // 4) * 4 for columns in self.columns] if peer == "fbgemm" else self.columns
        rows, counts = [bag.num_embeddings for bag in own], [lookups[int(at)].shape[1] for at in tables]
        self.indices = torch.cat([lookups[int(at)].flatten() for at in tables])
        lengths = torch.tensor(counts, device=device).repeat_interleave(batch)
        self.offsets = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
        make = self.of_fbgemm if peer == "fbgemm" else self.of_steptime
        make(rows, pooling, optimizer, batch * max(counts), device)
        with torch.no_grad():
            for table, bag in zip(self.tables, own):
                table.zero_()
                table[:, : bag.embedding_dim].copy_(bag.weight)

    def of_steptime(self, rows, pooling, optimizer, longest, device):
        from steptime.operators import EmbeddingBags

        name = optimizer.replace("adamw", "adam")
        decay = {"weight_decay": 1e-2, "decay": "decoupled"} if optimizer == "adamw" else {}
        options = {"lr": RATES[optimizer], "longest": longest, "device": device, **decay}
        self.module = EmbeddingBags(rows, self.padded, mode=pooling, optimizer=name, **options)
        self.tables = list(self.module.tables)

    def of_fbgemm(self, rows, pooling, optimizer, longest, device):
        from fbgemm_gpu.split_embedding_configs import EmbOptimType
        from fbgemm_gpu.split_table_batched_embeddings_ops_common import BoundsCheckMode, EmbeddingLocation, PoolingMode
        from fbgemm_gpu.split_table_batched_embeddings_ops_training import ComputeDevice, SplitTableBatchedEmbeddingBagsCodegen

        kinds = {"sgd": EmbOptimType.EXACT_SGD, "adagrad": EmbOptimType.EXACT_ADAGRAD, "adam": EmbOptimType.ADAM}
        if optimizer not in kinds:
            raise ValueError(f"FBGEMM's bags have no {optimizer}")
        specs = [(count, columns, EmbeddingLocation.DEVICE, ComputeDevice.CUDA) for count, columns in zip(rows, self.padded)]
        options = {"optimizer": kinds[optimizer], "learning_rate": RATES[optimizer], "device": torch.device(device)}
        options |= {"eps": EPSILON[optimizer]} if optimizer in EPSILON else {}
        mode = PoolingMode.MEAN if pooling == "mean" else PoolingMode.SUM
        self.module = SplitTableBatchedEmbeddingBagsCodegen(specs, pooling_mode=mode, bounds_check_mode=BoundsCheckMode.NONE, **options)
        self.tables = self.module.split_embedding_weights()

    def restore(self, weights):
        """Sets the first columns of each table, and zeros as optimizer states."""
        for table, weight in zip(self.tables, weights):
            table.copy_(weight)
        if hasattr(self.module, "split_optimizer_states"):  # FBGEMM's
            for state in [each for states in self.module.split_optimizer_states() for each in states]:
                state.zero_()
            return
        states = {name: value for name, value in self.module.state_dict().items() if name.startswith("optimizer_state")}
        if states:
            self.module.load_state_dict({name: torch.zeros_like(value) for name, value in states.items()}, strict=False)


class Step:
    """A training step of a peer: from parameters that depend on the seed alone, on a batch that does too."""

    def __init__(self, peer, of, optimizer, batch, mode, given):
        self.peer, self.optimizer, self.bf16, self.device = peer, optimizer, given.bf16, given.device
        torch.manual_seed(1)
        with torch.device(given.device):
            self.lookups = [torch.randint(table.rows, (batch, table.lookups)) for table in of.tables]
            self.dense = torch.rand(batch, of.dense) if of.dense else None
            self.labels = torch.randint(2, (batch, 1)).float()
            self.module = build(of)
        if mode.endswith(APART):
            for tables in [each for each in self.module.modules() if isinstance(each, Tables)]:
                tables.forward = torch.compiler.disable(tables.forward)
        self.bags = []
        if peer in (*CAPTURED, *FUSED_TABLES) and given.device != "cuda":
            raise ValueError(f"{peer} needs a GPU: --device cuda")
        if peer in FUSED_TABLES:
            for name, tables in [(name, each) for name, each in self.module.named_modules() if isinstance(each, Tables)]:
                bags = Bags(peer, tables, self.lookups, batch, of.pooling, optimizer, given.device)
                owner = self.module.get_submodule(name.rpartition(".")[0])
                setattr(owner, name.rpartition(".")[2], Pooled(len(self.bags), bags.columns, bags.padded))
                self.bags.append(bags)
            if peer != "fbgemm" and of.model == "dlrm" and of.interaction == "dot" and of.dense:
                self.module.interact = interaction_of_steptime()
        self.optimizers = self.optimizers_of(optimizer, of.sparse and not self.bags)
        self.forward = self.module if peer == "eager" else torch.compile(self.module, mode=mode.removesuffix(APART))
        self.run = self.step

    def optimizers_of(self, name, sparse):
        """The described class: fused where it exists, and apart for tables with sparse gradients, which fused ones do not take."""
        tables = [bag.weight for bag in self.module.modules() if isinstance(bag, nn.EmbeddingBag)] if sparse else []
        rest = [each for each in self.module.parameters() if all(each is not table for table in tables)]
        options = {"lr": RATES[name]}
        quick = {"fused": True} if name != "adagrad" or self.device == "cpu" else {"foreach": True}
        if self.peer in CAPTURED and name in ("adam", "adamw"):
            quick["capturable"] = True
        kind = OPTIMIZERS[name]
        return [kind(rest, **options, **quick)] + ([kind(tables, **options)] if tables else [])

    def loss(self):
        inputs = [bags.module(bags.indices, bags.offsets) for bags in self.bags] or self.lookups
        with torch.autocast(self.device, torch.bfloat16, enabled=self.bf16):
            output = self.forward(self.dense, inputs)
        return self.module.loss(output.float(), self.labels)

    def step(self):
        for optimizer in self.optimizers:
            optimizer.zero_grad(set_to_none=True)
        self.loss().backward()
        for optimizer in self.optimizers:
            optimizer.step()

    def capture(self):
        """Captures the step as one CUDA graph, after steps on another stream."""
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(WARM_UP):
                self.step()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.step()
        self.graph, self.run = graph, graph.replay

    def weights(self):
        return [each.detach().clone() for each in self.module.parameters()], [[table.detach().clone() for table in bags.tables] for bags in self.bags]

    @torch.no_grad()
    def restore(self, weights):
        """Sets all parameters, and zeros as optimizer states, in place."""
        for parameter, value in zip(self.module.parameters(), weights[0]):
            parameter.copy_(value)
        for bags, values in zip(self.bags, weights[1]):
            bags.restore(values)
        for optimizer in self.optimizers:
            for state in optimizer.state.values():
                for value in state.values():
                    value.zero_()

    def loss_after_steps(self):
        for _ in range(CHECKED_STEPS):
            self.run()
        # With gradients on, the same compiled code runs.
        return float(self.loss().detach())

    def losses(self):
        """Losses after the checked steps: run, and replayed where the peer is captured."""
        first = self.weights()
        found = [self.loss_after_steps()]
        # FBGEMM's Adam counts its steps on the host: replays repeat one count.
        if self.peer in CAPTURED and not (self.peer == "fbgemm" and self.optimizer == "adam"):
            self.forget_uses()
            self.capture()
            self.restore(first)
            found.append(self.loss_after_steps())
        return found

    def forget_uses(self):
        """Drops the pending gradients of the last loss."""
        for bags in self.bags:
            if hasattr(bags.module, "next_step"):
                bags.module.next_step()

    def time(self, steps):
        """Milliseconds a step: the median of the rounds."""
        if self.peer in CAPTURED:
            self.capture()
        for _ in range(WARM_UP):
            self.run()
        times = []
        for _ in range(ROUNDS):
            wait(self.device)
            start = time.perf_counter()
            for _ in range(steps):
                self.run()
            wait(self.device)
            times.append((time.perf_counter() - start) / steps * 1e3)
        return sorted(times)[ROUNDS // 2]


def interaction_of_steptime():
    from steptime.operators import interaction

    own = torch.compiler.disable(interaction)
    return lambda dense, rows: own(torch.stack([vector.float() for vector in dense + rows], 1))


def wait(device):
    if device == "cuda":
        torch.cuda.synchronize()


def free(device):
    """Frees the memory of the peer before, which is in cycles."""
    torch._dynamo.reset()
    gc.collect()
    if device == "cuda":
        torch.cuda.empty_cache()


def measured(peer, of, optimizer, batch, given):
    """The answer of a peer in the first mode of torch.compile that works, with the failures of those before."""
    modes, failures = ["default"] if peer == "eager" else given.modes.split(","), []
    if of.sparse and peer in ("compile", "compile-graph"):
        modes = [mode + apart for mode in modes for apart in ("", APART)]
    for mode in modes:
        free(given.device)
        try:
            step = Step(peer, of, optimizer, batch, mode, given)
            answer = {"losses": step.losses()} if given.check else {"ms": round(step.time(given.steps), 4)}
            tables = "rows of the batch" if step.bags else "sparse gradients" if of.sparse else "dense gradients"
            return {**answer, "tables": tables, "mode": None if peer == "eager" else mode, **({"failed": failures} if failures else {})}
        except Exception as error:  # a peer that fails is reported, and the others run
            failures.append(f"{mode}: {type(error).__name__}: {str(error)[:400]}")
    return {"error": "; ".join(failures)}


def main():
    """Prints the lines. Returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--batch", type=int, help="samples a step [default: that of the model]")
    parser.add_argument("--steps", type=int, default=20, help="steps of a round")
    parser.add_argument("--threads", type=int, default=2, help="threads of the processor")
    parser.add_argument("--rows-at-most", type=int, help="largest number of rows of a table")
    parser.add_argument("--tf32", action="store_true")
    parser.add_argument("--bf16", action="store_true", help="autocast; the rest in f32, or in TF32 with --tf32")
    parser.add_argument("--peers", default="eager,compile,bags,graph", help=f"of {', '.join(PEERS)}")
    parser.add_argument("--modes", default=",".join(MODES), help="modes of torch.compile; the first that works is used")
    parser.add_argument("--check", action="store_true", help="compare the losses of the peers instead of their times")
    given = parser.parse_args()
    peers = given.peers.split(",")
    if unknown := [peer for peer in peers if peer not in PEERS]:
        parser.error(f"--peers: {unknown[0]} is unknown: choose of {', '.join(PEERS)}")
    torch.set_num_threads(given.threads)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = given.tf32
    text = given.model.read_text(encoding="utf-8")
    of, keys = descriptions.parse(text, str(given.model)), descriptions.toml(text, str(given.model))
    if given.rows_at_most:
        of = dataclasses.replace(of, tables=tuple(dataclasses.replace(table, rows=min(table.rows, given.rows_at_most)) for table in of.tables))
    optimizer, batch = keys.get("optimizer", {}).get("name", "sgd"), given.batch or keys["batch"]
    precision = "bf16" if given.bf16 else "tf32" if given.tf32 else "f32"
    about = {"model": given.model.stem, "batch": batch, "precision": precision, "device": given.device, "torch": torch.__version__}
    first, agree = None, True
    for peer in peers:
        answer = measured(peer, of, optimizer, batch, given)
        if given.check and "losses" in answer:
            first = answer["losses"][0] if first is None else first
            within = 1e-2 if given.bf16 else 1e-3
            answer["agrees"] = all(math.isclose(loss, first, rel_tol=within) for loss in answer["losses"])
            agree &= answer["agrees"]
        print(json.dumps({**about, "peer": peer, **answer}), flush=True)
    return 0 if agree else 1


if __name__ == "__main__":
    sys.exit(main())
