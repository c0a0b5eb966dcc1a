"""Sweeps that mix rare shapes of several families.

A share of their cases is drawn by the usual families, so that corrections learnt from rare shapes do not distort the rest.
"""

from __future__ import annotations

from steptime.measure.case import Case
from steptime.measure.draw import Draw
from steptime.measure.families import attention, batch_norm, concat_index, conv, elementwise, embedding, gemm, layout, optimizer, pool, reduce, rnn
from steptime.measure.families import softmax_norm_loss as rows

USUAL = {
    gemm: 22, conv: 20, elementwise: 20, reduce: 10, rows: 8, batch_norm: 4, pool: 2, concat_index: 6,
    embedding: 8, attention: 5, optimizer: 8,
}  # fmt: skip


def usual(rng: Draw) -> Case:
    """A case of one of the usual families."""
    return rng.weigh(USUAL).draw(rng)


# Shapes that models use often and the usual families draw rarely.
RARE_SHAPES = {
    usual: 34, conv.sequences: 12, conv.odd_channels: 7, conv.transposed: 7, rows.narrow_layer_norm: 7, attention.short_heads: 9,
    rows.softmax_across: 7, rows.group_norm_of_maps: 6, gemm.small_products: 6, concat_index.narrow_cat: 5, embedding.bags_of_small_table: 4,
    embedding.lookups_of_small_table: 3, concat_index.positions: 4, gemm.linear_backward: 5, reduce.sums_of_rows: 4, rows.nll_of_positions: 1,
    rows.dropout_backward: 1, concat_index.triangle: 1,
}  # fmt: skip
# Kinds of `layout` and of rare shapes that are hardest to learn, and need the most cases.
HARD_SHAPES = {
    layout._conv: 20, layout._depthwise: 10, layout._patches: 3, layout._reduce: 6, layout._pool: 2, layout._upsample: 2, layout._group_norm: 1,
    conv.sequences: 15, conv.odd_channels: 10, conv.transposed: 11, rows.group_norm_of_maps: 4, rows.softmax_across: 4, attention.short_heads: 6,
    concat_index.positions: 4, reduce.sums_of_rows: 3, rows.nll_of_positions: 2, gemm.small_products: 2, concat_index.narrow_cat: 2, usual: 10,
}  # fmt: skip
# Convolutions and recurrent layers of large batches, of generators and of gradients of gradients.
RARE_LAYERS = {conv.short_rows: 36, conv.generator: 34, conv.gradient_of_gradient: 12, rnn.large_batches: 18}
# Shapes of models from other packages.
THIRD_PARTY = {usual: 30, conv.patches: 26, rows.classes_first: 18, gemm.gates: 14, concat_index.parts_joined: 12}


def rare_shapes(rng: Draw) -> Case:
    return rng.weigh(RARE_SHAPES)(rng)


def hard_shapes(rng: Draw) -> Case:
    return rng.weigh(HARD_SHAPES)(rng)


def rare_layers(rng: Draw) -> Case:
    return rng.weigh(RARE_LAYERS)(rng)


def third_party(rng: Draw) -> Case:
    return rng.weigh(THIRD_PARTY)(rng)
