"""Gathers in Triton, for `cuda.py`: row by row, and tiles of rows and columns in both grid orders."""

import triton
import triton.language as tl


@triton.jit
def _line(table, indices, out, total, D: tl.constexpr, X: tl.constexpr):
    """Gathers consecutive elements of the output, X per program."""
    place = tl.program_id(0).to(tl.int64) * X + tl.arange(0, X)
    inside = place < total
    row = tl.load(indices + place // D, inside, 0, eviction_policy="evict_last")
    tl.store(out + place, tl.load(table + row * D + place % D, inside), inside)


@triton.jit
def _tile(
    table, indices, out, lookups,
    D: tl.constexpr, X: tl.constexpr, Y: tl.constexpr, ROWS: tl.constexpr, KEEP: tl.constexpr,
):  # fmt: skip
    """Gathers X lookups by Y columns per program. ROWS: whether the first grid axis runs over lookups. KEEP: whether rows,
    rather than the output, stay in the cache."""
    first, second = tl.program_id(0), tl.program_id(1)
    if not ROWS:
        first, second = second, first
    place = (first * X + tl.arange(0, X)).to(tl.int64)[:, None]
    column = (second * Y + tl.arange(0, Y))[None, :]
    inside = (place < lookups) & (column < D)
    row = tl.load(indices + place, place < lookups, 0)
    if KEEP:
        value = tl.load(table + row * D + column, inside, eviction_policy="evict_last")
        tl.store(out + place * D + column, value, inside, eviction_policy="evict_first")
    else:
        tl.store(out + place * D + column, tl.load(table + row * D + column, inside), inside)


def gathers(table, out) -> dict:
    """Functions of indices that write `out`."""
    dim, lookups = table.shape[1], out.shape[0]
    total = lookups * dim

    def line(indices):
        _line[(triton.cdiv(total, 1024),)](table, indices, out, total, dim, 1024)

    def tile(x, y, rows, keep):
        grid = (triton.cdiv(lookups, x), triton.cdiv(dim, y))
        grid = grid if rows else grid[::-1]

        def run(indices):
            _tile[grid](table, indices, out, lookups, dim, x, y, rows, keep, num_warps=8)

        return run

    return {
        "1-D, 1024": line,
        "2-D 128 x 128, lookups first": tile(128, 128, True, False),
        "2-D 128 x 128, columns first": tile(128, 128, False, False),
        "2-D 8 x 512, lookups first, hints": tile(8, 512, True, True),
        "2-D 8 x 256, lookups first, hints": tile(8, 256, True, True),
    }
