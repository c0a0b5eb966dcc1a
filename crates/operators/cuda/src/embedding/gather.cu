// Rows of one table, kept apart: out[n] = row indices[n], as floats.
//
// Grid     blocks of lookups, THREADS / 32 warps each, GROUPS x UNROLL lookups a warp, by SLICES slices of columns.
//          COLUMNS_FIRST 0: x lookups, y slices; x goes fastest, so that all lookups of a slice are launched before
//          the next slice, and a slice of the table stays in the second-level cache until it is done (column order).
//          COLUMNS_FIRST 1: x alone, slices fastest: all columns of some lookups before the next lookups (row order).
// Lanes    LANES lanes hold a slice, PASSES vectors of BYTES each, of UNROLL rows at a time; a warp holds
//          GROUPS = 32 / LANES slices side by side. The 32 % LANES lanes left over do nothing.
// Output   is written past the caches: it is not read here, and shall not drive out rows that come again.
// Ragged   only the last warp has fewer lookups, and only a row's last slice fewer columns.
//
// With GROUPED, lookups come sorted by row, as pairs of row (upper half) and place in the output (lower half): rows
// are read in their order, those that come again from the first-level cache.
//
// Comes after rows.cuh. Compiled with: D, ELEMENT, BYTES, LANES, PASSES, UNROLL, SLICES, COLUMNS_FIRST, THREADS, INDEX
// (type), GROUPED (0 or 1), STORE (floats stored at once).

// What was wrong: lookups out of range, and the first of them.
struct Report {
    u64 bad;
    u64 first;
    u64 offset;
};

using Code = Codec<ELEMENT>;
constexpr int WARPS = THREADS / 32;
constexpr int GROUPS = 32 / LANES;
constexpr int VALUES = BYTES * 8 / Code::BITS;
constexpr int VECTORS = (D + VALUES - 1) / VALUES;
constexpr int SLICE = LANES * PASSES;
constexpr bool FULL = VECTORS % SLICE == 0;
constexpr bool QUANTIZED = Code::INT8 || Code::INT4;

__device__ __forceinline__ void write(
    float* to, int vector, const Vector<BYTES>& from, bool there, float scale, float bias) {
    float value[VALUES];
    #pragma unroll
    for (int j = 0; j < VALUES; j++) {
        value[j] = Code::value(from, j);
        if (QUANTIZED) value[j] = __fmaf_rn(value[j], scale, bias);
        if (!there) value[j] = 0.0f;
    }
    to += vector * VALUES;
    if constexpr (D % VALUES == 0 && VALUES % 4 == 0 && STORE == 4) {
        #pragma unroll
        for (int j = 0; j < VALUES; j += 4) stream(to + j, value[j], value[j + 1], value[j + 2], value[j + 3]);
    } else if constexpr (D % VALUES == 0 && VALUES % 2 == 0 && STORE >= 2) {
        #pragma unroll
        for (int j = 0; j < VALUES; j += 2) stream(to + j, value[j], value[j + 1]);
    } else {
        #pragma unroll
        for (int j = 0; j < VALUES; j++)
            if (D % VALUES == 0 || vector * VALUES + j < D) stream(to + j, value[j]);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) gather(const u8* __restrict__ rows, u64 count, u32 pitch,
    const INDEX* __restrict__ indices, long long lookups, float* __restrict__ out, long long stride, Report* report) {
    const int lane = threadIdx.x % 32;
    const int group = GROUPS == 1 ? 0 : lane / LANES;
    const int part = GROUPS == 1 ? lane : lane - group * LANES;
    if (part >= LANES || group >= GROUPS) return;
    const u32 slice = SLICES == 1 ? 0 : COLUMNS_FIRST ? blockIdx.x % SLICES : blockIdx.y;
    const u32 block = COLUMNS_FIRST ? blockIdx.x / SLICES : blockIdx.x;
    const long long first = (((long long)block * WARPS + threadIdx.x / 32) * GROUPS + group) * UNROLL;
    if (first >= lookups) return;
    u32 row[UNROLL];
    long long place[UNROLL];
    u64 at[UNROLL];
    #pragma unroll
    for (int u = 0; u < UNROLL; u++) {
        row[u] = NO_ROW;
        place[u] = first + u;
        if (first + u < lookups) {
#if GROUPED
            u64 pair = indices[first + u];
            u64 index = pair >> 32;
            place[u] = u32(pair);
#else
            // Every slice reads them again: they may stay.
            u64 index = u64((long long)__ldg(indices + first + u));
#endif
            if (index < count) {
                row[u] = u32(index);
            } else if (slice == 0 && part == 0) {
                atomicAdd(&report->bad, 1ull);
                atomicMin(&report->first, u64(place[u]));
            }
        }
        at[u] = u64(rows) + u64(min(row[u], u32(count - 1))) * pitch;
    }
    const int begin = slice * SLICE + part;
    Vector<BYTES> vectors[UNROLL][PASSES];
    float scale[UNROLL], bias[UNROLL];
    #pragma unroll
    for (int u = 0; u < UNROLL; u++) {
        #pragma unroll
        for (int p = 0; p < PASSES; p++)
            if (FULL || begin + p * LANES < VECTORS)
                load(vectors[u][p], at[u] + Code::HEADER + (begin + p * LANES) * BYTES);
        scale[u] = bias[u] = 0.0f;
        if constexpr (QUANTIZED) Code::template header<BYTES>(at[u], scale[u], bias[u]);
    }
    #pragma unroll
    for (int u = 0; u < UNROLL; u++) {
        // A place beyond the output is left out.
        if (first + u >= lookups || (GROUPED && place[u] >= lookups)) continue;
        #pragma unroll
        for (int p = 0; p < PASSES; p++)
            if (FULL || begin + p * LANES < VECTORS)
                write(out + place[u] * stride, begin + p * LANES, vectors[u][p], row[u] != NO_ROW, scale[u], bias[u]);
    }
}
