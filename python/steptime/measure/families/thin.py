"""Thin shapes: products of vectors in tall batches, attention with its casts, 16-bit convolutions over volumes, transposed ones over few
pixels, recurrent layers in training. A share of the cases is drawn by the usual families."""

from __future__ import annotations

from steptime.measure.case import Case, nbytes
from steptime.measure.draw import Draw
from steptime.measure.families import gemm, mixtures, rnn
from steptime.measure.families.conv import convolution

PRODUCTS = {"float32": 55, "tf32": 12, "bfloat16": 20, "float16": 13}
HALVES = {"bfloat16": 60, "float16": 40}
MOST = 4e8  # elements of a tensor


def draw(rng: Draw) -> Case:
    return rng.weigh(KINDS)(rng)


_usual = mixtures.usual


def _usual_products(rng: Draw) -> Case:
    return gemm.draw(rng)


def _vectors(rng: Draw) -> Case:
    """`[B,1,D] x [B,D,N]`, dot products of rows, outer products, and products by a vector."""
    dtype, times = rng.weigh(PRODUCTS), rng.batch(64, 1 << 18)
    wide, few = rng.size(4, 1024, nice=0.7), rng.weigh({1: 30, 2: 6, 4: 6, 8: 6, 9: 4, 16: 6, 26: 4, 27: 4, 50: 6, 64: 4, 0: 24}) or rng.size(2, 512)
    m, n, k = rng.pick((1, few, wide), (1, few, wide), (few, 1, wide), (1, wide, few), (wide, few, 1), (few, wide, 1), (1, 1, wide))
    if times * (m * k + k * n + m * n) > MOST:
        return None
    left, right = rng.chance(0.25), rng.chance(0.5)
    whole = rng.chance(0.08)  # one matrix and one vector

    def setup(make):
        if whole:
            matrix, vector = make.matrix(times, wide, dtype, left), make.new((wide,), dtype)
            return lambda: make.aten.mv(matrix, vector)
        a = make.laid((times, m, k), dtype, "transposed" if left else "plain")
        b = make.laid((times, k, n), dtype, "transposed" if right else "plain")
        return lambda: make.aten.bmm(a, b)

    if whole:
        return Case(f"mv {times}x{wide} {dtype}", setup, nbytes(dtype, (times, wide)), flops=2.0 * times * wide, dtype=dtype)
    moved = nbytes(dtype, (times, m, k), (times, k, n), (times, m, n))
    return Case(f"bmm {times} of {m}x{k} {k}x{n} {dtype}", setup, moved, flops=2.0 * times * m * n * k, dtype=dtype)


def _attention(rng: Draw) -> Case:
    """An attention layer under autocast from float32, forward or backward, including its casts."""
    dtype, batch, heads = rng.dtype(HALVES), rng.batch(1, 128), rng.pick(1, 2, 4, 8, 12, 16)
    width, length = rng.pick(8, 16, 32, 64, 64, 80, 128), rng.batch(16, 2048) if rng.chance(0.6) else rng.size(10, 1024)
    causal, back, drop = rng.chance(0.4), rng.chance(0.6), rng.pick(0.0, 0.0, 0.1)
    wide = heads * width
    if batch * length * wide > 5e7:
        return None

    def setup(make):
        torch = make.torch
        x = make.grad(make.new((batch, length, wide)))
        split = torch.nn.Linear(wide, 3 * wide, device=make.device)
        joined = torch.nn.Linear(wide, wide, device=make.device)
        device = "cpu" if make.device == "cpu" else "cuda"

        def forward():
            with torch.autocast(device, make.type(dtype)):
                q, k, v = split(x).view(batch, length, 3, heads, width).permute(2, 0, 3, 1, 4)
                out = torch.nn.functional.scaled_dot_product_attention(q, k, v, dropout_p=drop, is_causal=causal)
                return joined(out.transpose(1, 2).reshape(batch, length, wide))

        if not back:
            return forward
        out = forward()
        return make.backward(out, [x, *split.parameters(), *joined.parameters()], torch.randn_like(out))

    flops = (8.0 * batch * length * wide * wide + 4.0 * batch * length * length * wide) * (2.5 if back else 1)
    moved = nbytes("float32", (batch, length, wide)) * 8 * (2 if back else 1)
    name = f"attention layer{' backward' if back else ''} {batch} x {length} x {heads} of {width}{' causal' if causal else ''} {dtype}"
    return Case(name, setup, moved, flops=flops, dtype=dtype, memory=3 * moved)


def _volume(rng: Draw) -> Case:
    """Convolutions of videos and scans."""
    dtype, batch = rng.weigh({"bfloat16": 45, "float16": 25, "float32": 30}), rng.batch(1, 16)
    first = rng.chance(0.1)
    cin, cout = 3 if first else rng.size(8, 512, nice=0.9), rng.size(8, 512, nice=0.9)
    deep, side = rng.pick(1, 2, 4, 8, 8, 16, 16, 32), rng.side(4, 128)
    taps = rng.weigh({(3, 3, 3): 40, (1, 1, 1): 16, (1, 3, 3): 18, (3, 1, 1): 14, (3, 7, 7): 4, (2, 2, 2): 4, (5, 5, 5): 4})
    stride = rng.weigh({1: 76, 2: 24})
    if any(each % 2 == 0 for each in taps):
        stride = 2
    pads = tuple(0 if each % 2 == 0 else each // 2 for each in taps)
    size = (deep, side, side)
    out = tuple((each + 2 * pad - tap) // stride + 1 for each, pad, tap in zip(size, pads, taps))
    if min(out) < 1 or batch * max(cin * deep * side * side, cout * out[0] * out[1] * out[2]) > 1e8:
        return None
    x, w, y = (batch, cin, *size), (cout, cin, *taps), (batch, cout, *out)
    back, mask = rng.chance(0.6), rng.pick((True, True, False), (True, False, False), (False, True, False))

    def setup(make):
        x_, w_ = make.new(x, dtype), make.new(w, dtype)
        strides, ones, zeros = (stride,) * 3, (1,) * 3, (0,) * 3
        if back:
            grad = make.new(y, dtype)
            return lambda: make.aten.convolution_backward(grad, x_, w_, None, strides, pads, ones, False, zeros, 1, mask)
        return lambda: make.aten.convolution(x_, w_, None, strides, pads, ones, False, zeros, 1)

    passes = sum(mask) if back else 1
    flops = 2.0 * batch * cout * out[0] * out[1] * out[2] * cin * taps[0] * taps[1] * taps[2] * passes
    moved = nbytes(dtype, x, w, y) * (1 + 0.5 * (passes - 1))
    name = f"conv3d{' backward' if back else ''} {list(x)} {list(w)} stride {stride} {dtype}"
    return Case(name, setup, bytes=moved, flops=flops * (0.25 if dtype == "float32" else 1), dtype=dtype, memory=3 * moved)


def _few_pixels(rng: Draw) -> Case:
    """Transposed convolutions of the deepest layers of decoders and generators."""
    dtype, batch, side = rng.weigh({"float32": 60, "bfloat16": 22, "float16": 18}), rng.batch(1, 512), rng.pick(1, 2, 3, 4, 4, 5, 6, 7, 8, 8, 12, 16)
    cin, cout = rng.size(8, 1024, nice=0.9), rng.weigh({1: 6, 3: 6, 0: 88}) or rng.size(8, 512, nice=0.9)
    taps, stride, padding, more = rng.weigh({(2, 2, 0, 0): 30, (4, 2, 1, 0): 30, (3, 2, 1, 1): 16, (4, 1, 0, 0): 10, (3, 1, 1, 0): 8, (5, 2, 2, 1): 6})
    large = (side - 1) * stride - 2 * padding + taps + more
    x, w, y = (batch, cin, side, side), (cin, cout, taps, taps), (batch, cout, large, large)
    return convolution(rng, "few pixels", x, w, y, stride, padding, 1, 1, dtype, more)


def _recurrent(rng: Draw) -> Case:
    return rnn.layer(rng, rng.weigh({"LSTM": 50, "GRU": 50}), rng.batch(8, 2048), rng.size(4, 512, nice=0.8), rng.size(8, 512, nice=0.9))


# Weights of the kinds of cases.
KINDS = {_usual: 14, _usual_products: 14, _vectors: 30, _attention: 11, _volume: 13, _few_pixels: 12, _recurrent: 6}
