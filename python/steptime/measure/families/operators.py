"""Steptime's own operators, where their library is found: fused bags forward and backward, gather, dot interaction.

Tables are slices of one buffer that all cases share, so that the tables of a large model fit; a case allocates only memory
for its batch and its optimizer's state.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict, List, Tuple

from steptime.measure.case import Case, Op
from steptime.measure.draw import Draw
from steptime.measure.families.embedding import spread
from steptime.operators.library import load
from steptime.operators.plans import BITS, OPTIMIZERS, BackwardPlan, BagPlan, Bags, GatherPlan, InteractionPlan, pitch

POOL = 20_000_000_000  # bytes of the shared buffer of tables
ALIGNED = 512  # alignment of tables, as of an allocator
FAKE = 1 << 32  # an address for compiling, which is never read

_pools: Dict[str, Any] = {}


def draw(rng: Draw) -> Case:
    return rng.weigh(KINDS)(rng)


def width(rng: Draw) -> int:
    usual = {4: 2, 8: 6, 16: 18, 32: 20, 64: 24, 128: 20, 256: 6, 512: 2, 1024: 1, 48: 2, 96: 2, 0: 5}
    return rng.weigh(usual) or rng.size(4, 512)


def tables(rng: Draw) -> Tuple[Tuple[int, ...], Tuple[int, ...]]:
    """E and D of each table: mostly one D for all, and often one E."""
    count = rng.weigh({1: 8, 2: 3, 4: 8, 8: 12, 16: 12, 26: 16, 32: 6, 64: 5, 0: 30}) or rng.size(1, 64)
    largest = rng.log(10, 8_000_000)
    rows = tuple(rng.log(10, largest) for _ in range(count)) if rng.chance(0.4) else (largest,) * count
    if count > 1 and rng.chance(0.12):
        some = [width(rng) for _ in range(rng.pick(2, 2, 3))]
        return rows, tuple(rng.pick(*some) for _ in rows)
    return rows, (width(rng),) * count


def lookups(rng: Draw) -> Tuple[int, int, bool]:
    """B, L, and whether bags have different lengths with mean L."""
    usual = {256: 1, 512: 2, 1024: 3, 2048: 8, 4096: 7, 8192: 7, 16384: 4, 65536: 1}
    bags = rng.weigh(usual) if rng.chance(0.65) else rng.size(16, 32768)
    if rng.chance(0.35):
        return bags, 1, False
    return bags, rng.weigh({2: 1, 5: 1, 10: 2, 20: 2, 32: 1, 0: 7}) or rng.size(2, 100), rng.chance(0.35)


def batch(rng: Draw, element: str, modes: Dict[int, float]) -> Tuple[Bags, int, bool]:
    """Tables and lookups; L, and whether it varies."""
    (rows, dims), (bags, each, ragged) = tables(rng), lookups(rng)
    mode = rng.weigh(modes)
    if element == "int4":
        dims = tuple(dim + dim % 2 for dim in dims)
    weighted, index_bits = mode == 0 and rng.chance(0.15), 32 if rng.chance(0.3) else 64
    return Bags(rows, dims, bags, len(rows) * bags * each, element, index_bits, weighted, mode), each, ragged


def held(of: Bags) -> int:
    """Bytes of the buffer that the tables need."""
    return sum(-(-rows * pitch(of.element, dim) // ALIGNED) * ALIGNED for rows, dim in zip(of.rows, of.dims))


def describe(what: str, of: Bags, each: int, ragged: bool, how: str) -> str:
    shape = f"{len(of.rows)} tables of {max(of.rows)}x{'/'.join(str(dim) for dim in sorted(set(of.dims)))} {of.element}"
    return f"{what}: {shape}, {of.bags} bags of {'about ' if ragged else ''}{each}, mode {of.mode}{' weighted' if of.weighted else ''}, {how}"


# Tensors of a case on the GPU. ---------------------------------------------------------------------------------------


def cut(make: Any, of: Bags) -> List[Any]:
    """The tables, as slices of the shared buffer."""
    torch, found, at = make.torch, [], 0
    pool = shared(make)
    for rows, dim in zip(of.rows, of.dims):
        wide = pitch(of.element, dim)
        part = pool[at : at + rows * wide]
        at += -(-rows * wide // ALIGNED) * ALIGNED
        found.append(part.view(rows, wide) if BITS[of.element] < 16 else part.view(getattr(torch, of.element)).view(rows, dim))
    return found


def shared(make: Any) -> Any:
    """The shared buffer, whose bytes are small finite numbers in every type."""
    if make.device not in _pools:
        _pools[make.device] = make.torch.randint(0, 59, (POOL,), dtype=make.torch.uint8, device=make.device)
    return _pools[make.device]


def offsets(make: Any, of: Bags, each: int, ragged: bool) -> Any:
    """Offsets of all bags; varying lengths are from 0 to twice the mean, with the same sum in each table."""
    torch, count = make.torch, len(of.rows) * of.bags
    kind = make.type(f"int{of.index_bits}")
    if not ragged:
        return torch.arange(0, count * each + 1, each, dtype=kind, device=make.device)
    lengths = torch.full((len(of.rows), of.bags), each, device=make.device)
    half = of.bags // 2
    lengths[:, :half] = torch.randint(0, 2 * each + 1, (len(of.rows), half), device=make.device)
    lengths[:, half : 2 * half] = 2 * each - lengths[:, :half]
    return torch.cat([lengths.new_zeros(1), lengths.flatten().cumsum(0)]).to(kind)


def indices(make: Any, of: Bags, each: int, how: str) -> Any:
    """Indices of all tables, concatenated."""
    kind = f"int{of.index_bits}"
    return make.torch.cat([make.indices((of.bags * each,), rows, how, kind) for rows in of.rows])


def ordinal(device: str) -> int:
    return int(device.partition(":")[2] or 0)


# The cases. ----------------------------------------------------------------------------------------------------------


def _forward(rng: Draw) -> Any:
    element = rng.weigh({"float32": 70, "float16": 10, "bfloat16": 6, "int8": 9, "int4": 5})
    of, each, ragged = batch(rng, element, {0: 76, 1: 16, 2: 8})
    how = spread(rng)
    if held(of) > POOL:
        return None

    def setup(make: Any) -> Op:
        import steptime.operators.ops  # noqa: F401  registers the ops

        parts, index, starts = cut(make, of), indices(make, of, each, how), offsets(make, of, each, ragged)
        weights = make.new((of.lookups,)) if of.weighted else None
        plan = BagPlan(load(), ordinal(make.device), of, [part.data_ptr() for part in parts])
        op = make.torch.ops.steptime.embedding_bag
        return Op(
            lambda: op(parts, index, starts, weights, of.mode, BITS[of.element], plan.number),
            lists={"steptime::embedding_bag": {0: parts}},
        )

    def compile(device: str) -> None:
        BagPlan(load(), ordinal(device), of, [FAKE] * len(of.rows))

    columns = sum(of.dims)
    moved = of.lookups * (sum(pitch(element, dim) for dim in of.dims) / len(of.dims) + of.index_bits / 8) + 4.0 * of.bags * columns
    allocated = of.lookups * 12.0 + 4.0 * of.bags * columns
    return Case(describe("bags", of, each, ragged, how), setup, moved, memory=allocated, indices=how, ops="steptime::", compile=compile)


def _backward(rng: Draw) -> Any:
    element = rng.weigh({"float32": 84, "float16": 10, "bfloat16": 6})
    of, each, ragged = batch(rng, element, {0: 82, 1: 18})
    how, optimizer = spread(rng), rng.weigh(dict(zip(OPTIMIZERS, (28, 16, 26, 18, 12))))
    state = {"sgd": 0.0, "adagrad": 1.0, "rowwise_adagrad": 0.0, "adam": 2.0, "partial_rowwise_adam": 1.0}[optimizer]
    longest = of.bags * each
    if held(of) > POOL:
        return None

    def setup(make: Any) -> Op:
        import steptime.operators.ops  # noqa: F401  registers the ops

        parts, index, starts = cut(make, of), indices(make, of, each, how), offsets(make, of, each, ragged)
        weights = make.new((of.lookups,)) if of.weighted else None
        grad = make.new((of.bags, of.columns))
        places, stream = [part.data_ptr() for part in parts], make.torch.cuda.current_stream().cuda_stream
        plan = BackwardPlan(load(), ordinal(make.device), of, places, optimizer, 1e-3, stream, longest)
        name = f"embedding_bag_backward_{optimizer}"
        op = getattr(make.torch.ops.steptime, name)
        return Op(lambda: op(grad, parts, index, starts, weights, of.mode, plan.number), lists={f"steptime::{name}": {1: parts}})

    def compile(device: str) -> None:
        # Rows beyond a power of two do not change the kernels, but need memory for state.
        few = replace(of, rows=tuple(1 << (rows.bit_length() - 1) for rows in of.rows))
        BackwardPlan(load(), ordinal(device), few, [FAKE] * len(of.rows), optimizer, 1e-3, 0, longest)

    wide = sum(of.dims) / len(of.dims)
    row = sum(pitch(element, dim) for dim in of.dims) / len(of.dims)
    touched = sum(min(longest, rows) for rows in of.rows)
    moved = of.lookups * (4.0 * wide + 60.0) + 2.0 * touched * (row + 4 * state * wide) + 4.0 * of.bags * sum(of.dims)
    kept = 4.0 * state * sum(rows * dim for rows, dim in zip(of.rows, of.dims)) + 4.0 * sum(of.rows)
    allocated = of.lookups * 60.0 + 4.0 * of.bags * sum(of.dims) + kept
    what = describe(f"bags backward {optimizer}", of, each, ragged, how)
    return Case(what, setup, moved, memory=allocated, indices=how, ops="steptime::", compile=compile)


def _gather(rng: Draw) -> Any:
    rows, how = rng.log(10, 4_000_000), spread(rng)
    dim = rng.weigh({16: 4, 32: 6, 64: 10, 128: 16, 256: 14, 512: 14, 1024: 10, 2048: 8, 4096: 6, 0: 12}) or rng.size(4, 4096)
    count = rng.batch(64, 1 << 20) if rng.chance(0.7) else rng.size(1, 1 << 20)
    wanted = rng.weigh({-1: 50, 0: 20, 128: 3, 256: 5, 512: 8, 1024: 7, 2048: 5, 4096: 2})
    of = Bags((rows,), (dim,), 1, count)
    if held(of) > POOL:
        return None
    zipf = float(how.partition(":")[2] or 0)

    def slice_on(device: int) -> int:
        return load().choose_slice(device, rows, dim, count, zipf) if wanted < 0 else wanted

    def setup(make: Any) -> Op:
        import steptime.operators.ops  # noqa: F401  registers the ops

        (table,), index, gpu = cut(make, of), make.indices((count,), rows, how), ordinal(make.device)
        slice, op = slice_on(gpu), make.torch.ops.steptime.gather
        plan = GatherPlan(load(), gpu, rows, dim, slice, table.data_ptr())
        return Op(lambda: op(table, index, slice, plan.number))

    def compile(device: str) -> None:
        gpu = ordinal(device)
        GatherPlan(load(), gpu, rows, dim, slice_on(gpu), FAKE)

    moved = 8.0 * count * dim + 8.0 * count
    order = "the planner's slice" if wanted < 0 else f"slice {wanted}"
    what = f"gather: {count} of {rows}x{dim}, {order}, {how}"
    return Case(what, setup, moved, memory=moved, indices=how, ops="steptime::", compile=compile)


def _interacting(rng: Draw) -> Tuple[int, int, int]:
    features = rng.weigh({9: 10, 14: 4, 27: 16, 40: 4, 0: 66}) or rng.size(2, 64)
    dim = rng.weigh({8: 4, 16: 14, 32: 18, 64: 22, 128: 24, 256: 6, 0: 12}) or rng.size(8, 256)
    return (rng.batch(256, 32768) if rng.chance(0.8) else rng.size(64, 65536)), features, dim


def _interaction(rng: Draw, back: bool = False) -> Case:
    samples, features, dim = shape = _interacting(rng)

    def setup(make: Any) -> Op:
        import steptime.operators.ops  # noqa: F401  registers the ops

        vectors, ops = make.new(shape), make.torch.ops.steptime
        plan = InteractionPlan(load(), ordinal(make.device), features, dim)
        if not back:
            return Op(lambda: ops.interaction(vectors, plan.number))
        grad = make.new((samples, plan.columns))
        return Op(lambda: ops.interaction_backward(grad, vectors, plan.number))

    def compile(device: str) -> None:
        InteractionPlan(load(), ordinal(device), features, dim)

    pairs = features * (features - 1) // 2
    moved = 4.0 * samples * ((2 if back else 1) * features * dim + dim + pairs)
    flops = (4.0 if back else 2.0) * samples * pairs * dim
    what = f"interaction{' backward' if back else ''}: {samples} x {features} x {dim}"
    return Case(what, setup, moved, flops, ops="steptime::", compile=compile)


def _interaction_backward(rng: Draw) -> Case:
    return _interaction(rng, back=True)


# Weights of the kinds of cases.
KINDS = {_forward: 34, _backward: 44, _gather: 10, _interaction: 6, _interaction_backward: 6}
