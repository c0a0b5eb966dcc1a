// Bags over many tables in one launch: out[b, column(t) ..] = the pooled rows of bag b of table t.
//
// Grid     x: bags of one table, THREADS / 32 warps a block, GROUPS x BAGS bags a warp; y: table; z: range of columns
//          (only rows of more than LANES x PASSES vectors have several). x goes fastest, so that the blocks in flight
//          work on one table and its rows meet in the caches.
// Lanes    LANES lanes hold one row, PASSES vectors of BYTES each; a warp holds GROUPS = 32 / LANES bags side by side.
//          The 32 % LANES lanes left over only take part in votes.
// A group  takes BAGS bags in a row, whose lookups lie one after the other: it walks over all of them as one stream,
//          fetches indices CHUNK at a time and one chunk ahead, keeps UNROLL rows in flight, adds them in their order,
//          and writes a bag out where it ends. So short bags keep as many loads in flight as long ones.
// Ragged   groups of a warp run in step until the longest stream ends; loads of the others are switched off.
// Sums     have the order and the roundings of the CPU reference: the same bits.
//
// Shifted  rows whose values begin at odd places are loaded as shifted.cuh says.
//
// Comes after float.cuh, rows.cuh and shifted.cuh. Compiled with: TABLES, THREADS, MIN_BLOCKS, INDEX, OFFSET and RESULT
// (types), WEIGHTED, BOUNDS (0 error, 1 zero, 2 ignore), STORE (elements stored at once), and CLASSES, a list of
// CLASS(kind, D, ELEMENT, POOL, BYTES, LANES, PASSES, BAGS, UNROLL, SHIFTED), one for each kind of table.

enum Pool { SUM, MEAN, MAX, NONE };

constexpr int WARPS = THREADS / 32;

struct Table {
    const u8* rows;
    u64 count;
    u32 pitch;
    u32 column;
    u32 kind;
    u32 unused;
};

struct Tables {
    Table at[TABLES];
};

// What was wrong: lookups out of range and the first of them, and the first bag whose offsets fall.
struct Report {
    u64 bad;
    u64 first;
    u64 offset;
};

// ---- stores of 16 bits, rounded to nearest

__device__ __forceinline__ void stream(Bf16* to, float a) {
    asm volatile("st.global.cs.u16 [%0], %1;" ::"l"(to), "h"(u16(pack(a, 0.0f))) : "memory");
}
__device__ __forceinline__ void stream(Bf16* to, float a, float b) {
    asm volatile("st.global.cs.u32 [%0], %1;" ::"l"(to), "r"(pack(a, b)) : "memory");
}
__device__ __forceinline__ void stream(Bf16* to, float a, float b, float c, float d) {
    asm volatile("st.global.cs.v2.u32 [%0], {%1, %2};" ::"l"(to), "r"(pack(a, b)), "r"(pack(c, d)) : "memory");
}

// ---- bags

// Whether an offset is among those that can be: all lookups lie between the first, which is 0, and the last.
__device__ __forceinline__ bool fits(long long offset, int at, int bags, long long lookups) {
    bool first = blockIdx.y == 0 && at == 0, last = blockIdx.y == TABLES - 1 && at == bags;
    return offset >= 0 && offset <= lookups && (!first || offset == 0) && (!last || offset == lookups);
}

// Kept out of the way of those that do not need it.
__device__ __noinline__ void complain(Report* report, long long lookup) {
    atomicAdd(&report->bad, 1ull);
    atomicMin(&report->first, u64(lookup));
}

template <int D, int ELEMENT, int POOL, int BYTES, int LANES, int PASSES, int BAGS, int UNROLL, bool SHIFTED>
__device__ __forceinline__ void pool(const Table& table, const INDEX* __restrict__ indices,
    const OFFSET* __restrict__ offsets, const float* __restrict__ weights, RESULT* __restrict__ out, long long stride,
    int bags, int first_bag, int last_bag, long long lookups, Report* report) {
    using Code = Codec<ELEMENT>;
    constexpr int GROUPS = 32 / LANES;
    constexpr int VALUES = BYTES * 8 / Code::BITS;
    constexpr int VECTORS = (D + VALUES - 1) / VALUES;
    constexpr int RANGE = LANES * PASSES;
    constexpr int RANGES = (VECTORS + RANGE - 1) / RANGE;
    constexpr bool FULL = VECTORS % RANGE == 0;
    constexpr int CHUNK = LANES >= UNROLL ? LANES / UNROLL * UNROLL : UNROLL;
    constexpr int HELD = (CHUNK + LANES - 1) / LANES;
    constexpr bool QUANTIZED = Code::INT8 || Code::INT4;
    // Rows are compared or copied, not summed.
    constexpr bool COMPARE = POOL == MAX || (POOL == NONE && !WEIGHTED);
    static_assert(!SHIFTED || (BYTES == 8 && Code::HEADER == 4 && RANGES == 1), "vectors of a whole row");
    static_assert(BAGS <= LANES || BAGS == 1, "the ends of a group's bags are held one a lane");

    if (RANGES < gridDim.z && blockIdx.z >= RANGES) return;
    const int range = RANGES == 1 ? 0 : blockIdx.z * RANGE;
    const int lane = threadIdx.x % 32;
    const int group = GROUPS == 1 ? 0 : lane / LANES;
    const int part = GROUPS == 1 ? lane : lane - group * LANES;
    const int leader = group * LANES;
    const bool spare = LANES * GROUPS < 32 && group == GROUPS;
    const int warp = blockIdx.x * WARPS + threadIdx.x / 32;
    if (warp * (GROUPS * BAGS) >= last_bag - first_bag) return;
    int bag = first_bag + (warp * GROUPS + group) * BAGS;
    int count = spare ? 0 : min(max(last_bag - bag, 0), BAGS);
    const OFFSET* mine = offsets + (long long)blockIdx.y * bags + bag;

    // Where the stream begins, and where each of its bags ends.
    long long start = 0;
    int ends = 0;
    bool rises = true;
    if constexpr (BAGS == 1) {
        if (count > 0) {
            start = once(mine);
            long long end = once(mine + 1);
            rises = end >= start && fits(start, bag, bags, lookups) && fits(end, bag + 1, bags, lookups);
            ends = int(end - start);
        }
    } else {
        if (count > 0) start = once(mine);
        long long end = part < count ? once(mine + 1 + part) : 0;
        long long before = __shfl_up_sync(ALL, end, 1);
        if (part == 0) before = start;
        bool good = part >= count || (end >= before && fits(end, bag + part + 1, bags, lookups));
        good = good && (count == 0 || fits(start, bag, bags, lookups));
        u32 wrong = __ballot_sync(ALL, !good);
        rises = GROUPS == 1 ? wrong == 0 : (wrong >> (leader & 31) & (ALL >> (32 - LANES))) == 0;
        ends = int(end - start);
    }
    if (!rises) {
        if (part == 0) atomicMin(&report->offset, u64(blockIdx.y) * bags + bag);
        count = 0;
    }
    int length = 0, end = 0, at = 0;
    if constexpr (BAGS == 1) {
        length = end = count > 0 ? ends : 0;
    } else {
        int last = __shfl_sync(ALL, ends, (leader + max(count, 1) - 1) & 31);
        end = __shfl_sync(ALL, ends, leader & 31);
        length = count > 0 ? last : 0;
    }

    const u64 rows_count = table.count;
    const u32 last_row = u32(rows_count - 1);
    // Where row 0 begins, or a lane's part of it.
    const u64 base = u64(table.rows) + (SHIFTED ? 0 : Code::HEADER + (range + part) * BYTES);
    const u32 pitch = table.pitch;
    const INDEX* first_index = indices + start + part;
    const float* first_weight = weights + start + part;

    float sum[PASSES][VALUES];
    float bias_sum = 0.0f;
    int seen = 0;
    auto clear = [&]() {
        #pragma unroll
        for (int p = 0; p < PASSES; p++)
            #pragma unroll
            for (int j = 0; j < VALUES; j++) sum[p][j] = 0.0f;
        bias_sum = 0.0f;
        seen = 0;
    };
    clear();

    auto write = [&](long long row) {
        float scale = 1.0f;
        if constexpr (POOL == MEAN) scale = seen > 0 ? __fdiv_rn(1.0f, float(seen)) : 0.0f;
        RESULT* to = out + row * stride + table.column;
        #pragma unroll
        for (int p = 0; p < PASSES; p++) {
            int vector = range + p * LANES + part;
            if (!FULL && vector >= VECTORS) continue;
            #pragma unroll
            for (int j = 0; j < VALUES; j++) {
                if constexpr (Code::INT8 && !COMPARE) sum[p][j] += bias_sum;
                if constexpr (POOL == MEAN) if (seen > 0) sum[p][j] *= scale;
            }
            if constexpr (D % VALUES == 0 && VALUES % 4 == 0 && STORE == 4) {
                #pragma unroll
                for (int j = 0; j < VALUES; j += 4)
                    stream(to + vector * VALUES + j, sum[p][j], sum[p][j + 1], sum[p][j + 2], sum[p][j + 3]);
            } else if constexpr (D % VALUES == 0 && VALUES % 2 == 0 && STORE >= 2) {
                #pragma unroll
                for (int j = 0; j < VALUES; j += 2) stream(to + vector * VALUES + j, sum[p][j], sum[p][j + 1]);
            } else {
                #pragma unroll
                for (int j = 0; j < VALUES; j++)
                    if (D % VALUES == 0 || vector * VALUES + j < D) stream(to + vector * VALUES + j, sum[p][j]);
            }
        }
        clear();
    };

    // Bags that end here, empty ones too.
    auto flush = [&](int done) {
        while (at < count && done == end) {
            write(bag + at);
            at++;
            // Only the lanes of this group are here.
            if (at < count) {
                u32 mask = GROUPS == 1 ? ALL : (ALL >> (32 - LANES)) << (leader & 31);
                end = __shfl_sync(mask, ends, (leader + at) & 31);
            }
        }
    };
    if constexpr (BAGS > 1 && POOL != NONE) flush(0);

    // Indices are fetched one chunk ahead, and only looked at when their chunk comes.
    INDEX ahead[HELD];
    float weight_ahead[HELD];
    auto wanted = [&](int from, int k) {
        int place = k * LANES + part;
        return from + place < length && (CHUNK % LANES == 0 || place < CHUNK);
    };
    auto fetch = [&](int from) {
        #pragma unroll
        for (int k = 0; k < HELD; k++) {
            ahead[k] = 0;
            if (WEIGHTED) weight_ahead[k] = 0.0f;
            if (wanted(from, k)) {
                ahead[k] = once(first_index + from + k * LANES);
                if (WEIGHTED) weight_ahead[k] = once(first_weight + from + k * LANES);
            }
        }
    };
    fetch(0);

    for (int from = 0; GROUPS == 1 ? from < length : __any_sync(ALL, from < length); from += CHUNK) {
        u32 now[HELD];
        float weight_now[HELD];
        #pragma unroll
        for (int k = 0; k < HELD; k++) {
            bool there = u64((long long)ahead[k]) < rows_count;
            now[k] = NO_ROW;
            if (wanted(from, k)) {
                if (there) now[k] = u32(ahead[k]);
                else if (RANGES == 1 || blockIdx.z == 0) complain(report, start + from + k * LANES + part);
            }
            if (WEIGHTED) weight_now[k] = weight_ahead[k];
        }
        fetch(from + CHUNK);
        #pragma unroll 1
        for (int step = 0; step < CHUNK; step += UNROLL) {
            if (GROUPS == 1 ? from + step >= length : !__any_sync(ALL, from + step < length)) break;
            Vector<BYTES> vectors[UNROLL][PASSES];
            Vector<4> word[UNROLL];
            bool late[UNROLL];
            u32 row[UNROLL];
            float weight[UNROLL], scale[UNROLL], bias[UNROLL];
            #pragma unroll
            for (int u = 0; u < UNROLL; u++) {
                int source = HELD == 1 ? step + u : u % LANES;
                row[u] = __shfl_sync(ALL, now[HELD == 1 ? 0 : u / LANES], (leader + source) & 31);
                if (WEIGHTED)
                    weight[u] = __shfl_sync(ALL, weight_now[HELD == 1 ? 0 : u / LANES], (leader + source) & 31);
                if (spare) row[u] = NO_ROW;
                scale[u] = 1.0f;
                bias[u] = 0.0f;
                // Loads need no branch: where there is no row, the last one is read, and left out below.
                u64 at = base + u64(min(row[u], last_row)) * pitch;
                if constexpr (SHIFTED) {
                    late[u] = is_late(at);
                    load_shifted<LANES, PASSES, VECTORS>(vectors[u], word[u], at, part);
                } else {
                    #pragma unroll
                    for (int p = 0; p < PASSES; p++)
                        if (FULL || range + p * LANES + part < VECTORS) load(vectors[u][p], at + p * LANES * BYTES);
                    if constexpr (QUANTIZED)
                        Code::template header<BYTES>(at - (Code::HEADER + (range + part) * BYTES), scale[u], bias[u]);
                }
            }
            if constexpr (SHIFTED) {
                #pragma unroll
                for (int u = 0; u < UNROLL; u++) {
                    u32 header = shift<LANES, PASSES, VECTORS>(vectors[u], word[u].word[0], late[u], leader, part);
                    Code::header(header, scale[u], bias[u]);
                }
            }
            #pragma unroll
            for (int u = 0; u < UNROLL; u++) {
                // Behind the end there are no rows: a plain sum need not know.
                if ((POOL != SUM || BAGS > 1) && from + step + u >= length) break;
                bool there = row[u] != NO_ROW;
                if constexpr (COMPARE) {
                    if (there || BOUNDS != 2) {
                        #pragma unroll
                        for (int p = 0; p < PASSES; p++)
                            #pragma unroll
                            for (int j = 0; j < VALUES; j++) {
                                float value = Code::value(vectors[u][p], j);
                                if (QUANTIZED) value = __fmaf_rn(value, scale[u], bias[u]);
                                if (!there) value = 0.0f;
                                if (value > sum[p][j] || seen == 0) sum[p][j] = value;
                            }
                    }
                } else if (there) {
                    float s = scale[u], b = bias[u];
                    if (WEIGHTED && QUANTIZED) s *= weight[u], b *= weight[u];
                    #pragma unroll
                    for (int p = 0; p < PASSES; p++)
                        #pragma unroll
                        for (int j = 0; j < VALUES; j++) {
                            float value = Code::value(vectors[u][p], j);
                            if constexpr (Code::INT8) sum[p][j] = __fmaf_rn(value, s, sum[p][j]);
                            else if constexpr (Code::INT4) sum[p][j] += __fmaf_rn(value, s, b);
                            else if constexpr (WEIGHTED) sum[p][j] = __fmaf_rn(weight[u], value, sum[p][j]);
                            else sum[p][j] += value;
                        }
                    if constexpr (Code::INT8) bias_sum += b;
                }
                if (there || BOUNDS != 2) seen++;
                if constexpr (POOL == NONE) write(start + from + step + u);
                else if constexpr (BAGS > 1) flush(from + step + u + 1);
            }
            if (GROUPS > 1) __syncwarp();
        }
    }
    if constexpr (BAGS == 1 && POOL != NONE) if (count > 0) write(bag);
}

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS) bag_forward(const __grid_constant__ Tables tables,
    const INDEX* __restrict__ indices, const OFFSET* __restrict__ offsets, const float* __restrict__ weights,
    RESULT* __restrict__ out, long long stride, int bags, int first_bag, int last_bag, long long lookups,
    Report* report) {
    const Table& table = tables.at[blockIdx.y];
    switch (table.kind) {
#define CLASS(kind, D, ELEMENT, POOL, BYTES, LANES, PASSES, BAGS, UNROLL, SHIFTED)                                     \
    case kind:                                                                                                         \
        pool<D, ELEMENT, POOL, BYTES, LANES, PASSES, BAGS, UNROLL, SHIFTED>(                                           \
            table, indices, offsets, weights, out, stride, bags, first_bag, last_bag, lookups, report);                \
        break;
        CLASSES
    }
}
