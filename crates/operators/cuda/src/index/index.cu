// Elements of each sample's matrix at pairs of a row and a column, and additions to them.
//
// Grid     x: elements [BATCH, PAIRS], neighbours along pairs; for `link`: pairs.
// Order    pairs of one position form a chain, from the first pair on. The thread of the first pair adds the values of all,
//          one after the other; threads of the other pairs do nothing.
// Bounds   pairs outside of the matrix are skipped.
//
// Compiled with: THREADS, BATCH, PAIRS, ROWS, COLUMNS, SAMPLE, DOWN, RIGHT (strides), OFFSET, COUNT (a type that holds
// BATCH * PAIRS).

typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

constexpr u64 OUTSIDE = ~0ull;

// Position within a sample's matrix.
__device__ __forceinline__ u64 position(const i64* rows, const i64* columns, u32 pair) {
    const u64 row = rows[pair], column = columns[pair];
    return row < ROWS && column < COLUMNS ? row * DOWN + column * RIGHT : OUTSIDE;
}

extern "C" __global__ void __launch_bounds__(THREADS) gather(
    const float* __restrict__ from, const i64* __restrict__ rows, const i64* __restrict__ columns, float* __restrict__ to
) {
    const COUNT at = COUNT(blockIdx.x) * THREADS + threadIdx.x;
    if (at >= COUNT(BATCH) * PAIRS) return;
    const u64 place = position(rows, columns, u32(at % PAIRS));
    if (place != OUTSIDE) to[at] = from[OFFSET + u64(at / PAIRS) * SAMPLE + place];
}

// For each pair: PAIRS where it is not the first of its position or is outside, otherwise itself, in `first`; the next pair
// of its position, or PAIRS, in `next`.
extern "C" __global__ void __launch_bounds__(THREADS) link(
    const i64* __restrict__ rows, const i64* __restrict__ columns, u32* __restrict__ first, u32* __restrict__ next
) {
    const u32 pair = blockIdx.x * THREADS + threadIdx.x;
    if (pair >= PAIRS) return;
    const u64 place = position(rows, columns, pair);
    bool is_first = place != OUTSIDE;
    for (u32 other = 0; other < pair; other++) is_first = is_first && position(rows, columns, other) != place;
    u32 following = PAIRS;
    for (u32 other = PAIRS - 1; other > pair; other--)
        if (position(rows, columns, other) == place) following = other;
    first[pair] = is_first ? pair : PAIRS;
    next[pair] = following;
}

extern "C" __global__ void __launch_bounds__(THREADS) add(
    const float* __restrict__ values, u64 row_stride, u64 column_stride, const i64* __restrict__ rows,
    const i64* __restrict__ columns, const u32* __restrict__ first, const u32* __restrict__ next, float* __restrict__ to
) {
    const COUNT at = COUNT(blockIdx.x) * THREADS + threadIdx.x;
    if (at >= COUNT(BATCH) * PAIRS) return;
    const u32 pair = u32(at % PAIRS);
    if (first[pair] == PAIRS) return;
    const u64 sample = at / PAIRS;
    const u64 place = OFFSET + sample * SAMPLE + position(rows, columns, pair);
    float sum = to[place];
    for (u32 each = pair; each < PAIRS; each = next[each]) sum += values[sample * row_stride + each * column_stride];
    to[place] = sum;
}
