// Dot interaction of 16-bit vectors by matrix instructions, forward and backward: a warp a sample, WARPS samples a block.
//
// Vectors go through registers only. A warp loads eight vectors by 32 columns at once: lane 4 g + t has the 16 bytes of
// vector g at column 8 t, a piece of four words. Over the lanes a word is an 8 x 8 matrix of pairs of columns.
//
//   forward   The order of the columns of a product is free, so that words 2 s and 2 s + 1 are fragments of step s of both
//             factors as they are. Results are collected in shared memory, and leave it as whole rows.
//   backward  `movmatrix` turns each word into a fragment of the right factor. Results of the four words are pieces again.
//
// Both work on blocks of 32 vectors by 32. Up to four pieces of a vector are loaded before the first is used, where there
// is one block: F = 27 and D = 128 has 7 KB a warp in flight. Sums are in 32 bits, in the same order in each run.
//
// Comes after float.cuh and vectors.cuh. Macros: WARPS, ALIGNED (vectors may be read and written 16 bytes at a time).

#define BLOCKS ((F + 31) / 32)
#define CHUNKS ((D + 31) / 32)
#define AHEAD (BLOCKS > 1 ? 1 : CHUNKS < 4 ? CHUNKS : 4)
#define COLUMNS (D + PAIRS)
// Elements of a row in shared memory.
#define ROOM ((COLUMNS + 7) / 8 * 8)

// Eight columns of a vector.
typedef Words<4> Piece;

extern __shared__ uint4 room[];

__device__ __forceinline__ u32 join(Bf16 low, Bf16 high) { return low.bits | (u32)high.bits << 16; }

__device__ __forceinline__ u32 part() { return threadIdx.x % 4; }

__device__ __forceinline__ u32 group() { return threadIdx.x % 32 / 4; }

// Loads this lane's piece of the vectors first .. first + 8, with zeros beyond the last vector and column.
__device__ __forceinline__ Piece load_piece(const Vectors &of, u64 sample, u32 first, u32 chunk) {
    const u32 i = first + group(), column = 32 * chunk + 8 * part();
    Piece piece = {};
    if (i >= F || column >= D) return piece;
    const Bf16 *from = vector_of(of, sample, i) + column;
#if ALIGNED
    piece = *reinterpret_cast<const Piece *>(from);
#else
    const Bf16 none = {};
#pragma unroll
    for (u32 k = 0; k < 4; k++) {
        const Bf16 low = column + 2 * k < D ? from[2 * k] : none;
        piece.at[k] = join(low, column + 2 * k + 1 < D ? from[2 * k + 1] : none);
    }
#endif
    return piece;
}

// Loads AHEAD pieces of each of the block's vectors.
__device__ __forceinline__ void load_pieces(const Vectors &of, u64 sample, u32 block, u32 chunk, Piece to[AHEAD][4]) {
#pragma unroll
    for (u32 ahead = 0; ahead < AHEAD; ahead++) {
#pragma unroll
        for (u32 i = 0; i < 4; i++) to[ahead][i] = load_piece(of, sample, 32 * block + 8 * i, chunk + ahead);
    }
}

__device__ __forceinline__ void multiply(float sum[4], u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

// The transposed 8 x 8 matrix.
__device__ __forceinline__ u32 transpose(u32 word) {
    u32 transposed;
    asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(transposed) : "r"(word));
    return transposed;
}

// The products of a block of vectors with another, or with itself, whose pairs go to `row`, and with them the dense vector.
template <bool OWN>
__device__ __forceinline__ void multiply_blocks(const Vectors &of, u64 sample, u32 left, u32 right, Bf16 *row) {
    float sum[2][4][4] = {};
    for (u32 chunk = 0; chunk < CHUNKS; chunk += AHEAD) {
        Piece a[AHEAD][4], b[AHEAD][4];
        load_pieces(of, sample, left, chunk, a);
        if (!OWN) load_pieces(of, sample, right, chunk, b);
#pragma unroll
        for (u32 ahead = 0; ahead < AHEAD; ahead++) {
            const Piece *p = a[ahead], *q = OWN ? a[ahead] : b[ahead];
            const u32 column = 32 * (chunk + ahead) + 8 * part();
            if (OWN && left == 0 && group() == 0) {
#if D % 8 == 0
                if (column < D) *reinterpret_cast<Piece *>(row + column) = p[0];
#else
#pragma unroll
                for (u32 k = 0; k < 8; k++) {
                    if (column + k < D) row[column + k].bits = (u16)(p[0].at[k / 2] >> 16 * (k % 2));
                }
#endif
            }
#pragma unroll
            for (u32 s = 0; s < 4; s += 2) {
#pragma unroll
                for (u32 m = 0; m < 2; m++) {
#pragma unroll
                    for (u32 n = 0; n < 4; n++) {
                        // Pairs above the diagonal.
                        if (OWN && n > 2 * m + 1) continue;
                        const Piece &low = p[2 * m], &high = p[2 * m + 1];
                        multiply(sum[m][n], low.at[s], high.at[s], low.at[s + 1], high.at[s + 1], q[n].at[s], q[n].at[s + 1]);
                    }
                }
            }
        }
    }
#pragma unroll
    for (u32 m = 0; m < 2; m++) {
#pragma unroll
        for (u32 n = 0; n < 4; n++) {
#pragma unroll
            for (u32 k = 0; k < 4; k++) {
                const u32 i = 32 * left + 16 * m + 8 * (k / 2) + group(), j = 32 * right + 8 * n + 2 * part() + k % 2;
                if (i < F && (j < i || (SELF && j == i))) store_floats<1>(row + D + ROW_START(i) + j, {{sum[m][n][k]}});
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(32 * WARPS) interaction_forward(
    const Vectors of, Bf16 *out, u64 out_stride, u32 samples) {
    const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const u32 sample = blockIdx.x * WARPS + warp;
    if (sample >= samples) return;
    Bf16 *row = (Bf16 *)room + warp * ROOM;
#pragma unroll 1
    for (u32 left = 0; left < BLOCKS; left++) {
#pragma unroll 1
        for (u32 right = 0; right < left; right++) multiply_blocks<false>(of, sample, left, right, row);
        multiply_blocks<true>(of, sample, left, left, row);
    }
    __syncwarp();
    Bf16 *to = out + sample * out_stride;
    u32 stored = 0;
    if ((u64)to % 16 == 0) {
        stored = COLUMNS / 8 * 8;
        for (u32 at = lane; at < COLUMNS / 8; at += 32) ((uint4 *)to)[at] = ((const uint4 *)row)[at];
    }
    for (u32 at = stored + lane; at < COLUMNS; at += 32) to[at] = row[at];
}

// Copies the gradient of a sample's output to shared memory. It is there after `wait_for_copies`.
__device__ __forceinline__ void copy_gradient(const Bf16 *from, Bf16 *to) {
    const u32 lane = threadIdx.x % 32;
    u32 copied = 0;
    if ((u64)from % 16 == 0) {
        copied = COLUMNS / 8 * 8;
        for (u32 at = 8 * lane; at < copied; at += 8 * 32) {
            u32 place = (u32)__cvta_generic_to_shared(to + at);
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(place), "l"(from + at) : "memory");
        }
    }
    for (u32 at = copied + lane; at < COLUMNS; at += 32) to[at] = from[at];
}

__device__ __forceinline__ void wait_for_copies() {
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncwarp();
}

// The gradient of the product of vectors i and j, in the lower 16 bits; twice where a vector meets itself.
__device__ __forceinline__ Bf16 weight_of(const Bf16 *pairs, u32 i, u32 j) {
    const Bf16 none = {};
    const u32 high = i > j ? i : j, low = i > j ? j : i;
    if (high >= F || (i == j && !SELF)) return none;
    const Bf16 weight = pairs[ROW_START(high) + low];
    if (i != j) return weight;
    const Bf16 twice = {(u16)pack(2.0f * widen(weight), 0.0f)};
    return twice;
}

// The weights of a block of vectors on the left and one on the right, as fragments of the left factor.
__device__ __forceinline__ void load_weights(const Bf16 *pairs, u32 left, u32 right, u32 to[2][2][4]) {
#pragma unroll
    for (u32 m = 0; m < 2; m++) {
#pragma unroll
        for (u32 s = 0; s < 2; s++) {
#pragma unroll
            for (u32 k = 0; k < 4; k++) {
                const u32 i = 32 * left + 16 * m + 8 * (k % 2) + group();
                const u32 j = 32 * right + 16 * s + 8 * (k / 2) + 2 * part();
                to[m][s][k] = join(weight_of(pairs, i, j), weight_of(pairs, i, j + 1));
            }
        }
    }
}

// Stores this lane's columns of vector i.
__device__ __forceinline__ void store_piece(const Vectors &to, u64 sample, u32 i, u32 column, const Floats<8> &values) {
    if (i >= F || column >= D) return;
    Bf16 *at = vector_of(to, sample, i) + column;
#if ALIGNED
    store_floats<8>(at, values);
#else
#pragma unroll
    for (u32 k = 0; k < 8; k++) {
        if (column + k < D) store_floats<1>(at + k, {{values.at[k]}});
    }
#endif
}

// The gradient of the vectors: (G + G^T) X with the triangle G of the pairs' gradients, and the dense vector's own.
extern "C" __global__ void __launch_bounds__(32 * WARPS) interaction_backward(
    const Vectors of, const Bf16 *gradient, u64 gradient_stride, const Vectors to, u32 samples) {
    const u32 warp = threadIdx.x / 32;
    const u32 sample = blockIdx.x * WARPS + warp;
    if (sample >= samples) return;
    Bf16 *row = (Bf16 *)room + warp * ROOM;
    copy_gradient(gradient + sample * gradient_stride, row);
    Piece x[AHEAD][4];
    load_pieces(of, sample, 0, 0, x);
    wait_for_copies();
    u32 weights[2][2][4];
    if (BLOCKS == 1) load_weights(row + D, 0, 0, weights);
#pragma unroll 1
    for (u32 block = 0; block < BLOCKS; block++) {
#pragma unroll 1
        for (u32 chunk = 0; chunk < CHUNKS; chunk += AHEAD) {
            if (block + chunk > 0) load_pieces(of, sample, 0, chunk, x);
#pragma unroll
            for (u32 ahead = 0; ahead < AHEAD; ahead++) {
                float sum[2][4][4] = {};
#pragma unroll 1
                for (u32 right = 0; right < BLOCKS; right++) {
                    if (right > 0) load_pieces(of, sample, right, chunk, x);
                    if (BLOCKS > 1) load_weights(row + D, block, right, weights);
#pragma unroll
                    for (u32 n = 0; n < 4; n++) {
#pragma unroll
                        for (u32 s = 0; s < 2; s++) {
                            const u32 low = transpose(x[ahead][2 * s].at[n]), high = transpose(x[ahead][2 * s + 1].at[n]);
#pragma unroll
                            for (u32 m = 0; m < 2; m++) {
                                const u32 *weight = weights[m][s];
                                multiply(sum[m][n], weight[0], weight[1], weight[2], weight[3], low, high);
                            }
                        }
                    }
                }
                const u32 column = 32 * (chunk + ahead) + 8 * part();
#pragma unroll
                for (u32 m = 0; m < 2; m++) {
#pragma unroll
                    for (u32 half = 0; half < 2; half++) {
                        const u32 i = 32 * block + 16 * m + 8 * half + group();
                        Floats<8> values;
#pragma unroll
                        for (u32 k = 0; k < 8; k++) values.at[k] = sum[m][k / 2][2 * half + k % 2];
                        if (i == 0) {
#pragma unroll
                            for (u32 k = 0; k < 8; k++) values.at[k] += column + k < D ? widen(row[column + k]) : 0.0f;
                        }
                        store_piece(to, sample, i, column, values);
                    }
                }
            }
        }
    }
}
