// Sums of the gradients that the lookups of a row receive, in their order.
//
// Comes after row_lanes.cuh.

// What one group works on: a table and where its lookups lie.
struct Work {
    Table table;
    u64 begin;
    u32 base, end;
    u32 means;
};

// The gradient that a lookup receives, and its factor.
__device__ __forceinline__ void load_lookup(
    const Sources &from, const Work &work, u32 payload, Vec gradient[VECTORS], float &factor) {
    u32 row = payload;
    factor = 1.0f;
    if (RECEIVES != 0) {
        u64 at = work.begin + payload;
        if (RECEIVES == 1) row = (u32)at;
        if (RECEIVES == 2) row = __ldg(from.bag_of + at);
        if (WEIGHTED) factor = __ldg(from.weights + at);
    }
    if (MEAN) {
        float mean = __ldg(from.means + work.means + row);
        factor = WEIGHTED ? __fmul_rn(factor, mean) : mean;
    }
    const float *at = from.gradient + (u64)row * from.stride + work.table.column;
#pragma unroll
    for (u32 v = 0; v < VECTORS; v++) {
        gradient[v] = load_gradient(at + column(v));
        if (MAX) {
            const u32 *winners = work.table.winners + (u64)row * DIM + column(v);
#pragma unroll
            for (u32 i = 0; i < VECTOR; i++) {
                if (__ldg(winners + i) != payload) gradient[v].at[i] = 0.0f;
            }
        }
    }
}

// sum + factor x gradient, rounded twice.
__device__ __forceinline__ void add_one(Vec &sum, const Vec &gradient, float factor) {
#pragma unroll
    for (u32 i = 0; i < VECTOR; i++) {
        float one = WEIGHTED || MEAN ? __fmul_rn(gradient.at[i], factor) : gradient.at[i];
        sum.at[i] = __fadd_rn(sum.at[i], one);
    }
}

// Adds lookups first .. last, in order; AHEAD of them are loaded at once.
template <u32 AHEAD>
__device__ __forceinline__ void add_places(
    const Sources &from, const Work &work, u32 first, u32 last, Vec sum[VECTORS]) {
    const u32 step = GROUP < AHEAD ? GROUP : AHEAD;
    u32 place = first + group_lane();
    u32 payload = payload_of(from.pairs[place < last ? place : last - 1]);
    for (u32 at = first; at < last; at += GROUP) {
        place = at + GROUP + group_lane();
        u32 next = payload_of(from.pairs[place < last ? place : last - 1]);
        for (u32 part = 0; part < GROUP && at + part < last; part += step) {
            Vec gradient[step][VECTORS];
            float factor[step];
#pragma unroll
            for (u32 j = 0; j < step; j++) {
                u32 one = __shfl_sync(group_mask(), payload, part + j, GROUP);
                load_lookup(from, work, one, gradient[j], factor[j]);
            }
#pragma unroll
            for (u32 j = 0; j < step; j++) {
                if (at + part + j < last) {
#pragma unroll
                    for (u32 v = 0; v < VECTORS; v++) add_one(sum[v], gradient[j][v], factor[j]);
                }
            }
        }
        payload = next;
    }
}

// The sum over lookups first .. last.
template <u32 AHEAD>
__device__ __forceinline__ void sum_places(
    const Sources &from, const Work &work, u32 first, u32 last, Vec sum[VECTORS]) {
#pragma unroll
    for (u32 v = 0; v < VECTORS; v++) {
#pragma unroll
        for (u32 i = 0; i < VECTOR; i++) sum[v].at[i] = 0.0f;
    }
    add_places<AHEAD>(from, work, first, last, sum);
}

// The first place from `low` on, before `high`, whose row is at least `row`; one of them there is.
__device__ __forceinline__ u32 first_of(const u64 *pairs, u32 row, u32 low, u32 high) {
    while (low < high) {
        u32 step = (high - low + GROUP - 1) / GROUP;
        u32 probe = low + group_lane() * step;
        bool found = probe >= high || key_of(pairs[probe]) >= row;
        u32 votes = __ballot_sync(group_mask(), found) >> ((threadIdx.x & 31) / GROUP * GROUP);
        u32 first = votes == 0 ? GROUP : __ffs(votes) - 1; // the answer lies after probe first - 1, up to probe first
        u32 upto = low + first * step;
        if (first < GROUP && upto < high) high = upto;
        if (first == 0) return low;
        low = low + (first - 1) * step + 1;
    }
    return low;
}

__device__ __forceinline__ bool open_window(const Sources &from, u32 window, Work &work) {
    u32 place = from.windows[window];
    if (place == NOTHING) return false;
    work.table = from.tables[place];
    if (work.table.kind != CLASS) return false;
    Plan plan = from.plans[place];
    work.begin = plan.begin;
    work.base = plan.base;
    work.end = plan.base + plan.count;
    work.means = place * from.bags;
    return true;
}

// The row of a place, NOTHING at and after the end and for lookups of rows that are not there.
__device__ __forceinline__ u32 row_at(const Work &work, u32 place, u64 pair) {
    u32 row = key_of(pair);
    return place < work.end && row < work.table.rows ? row : NOTHING;
}

// Whether a window may have a full chunk that starts in it: the chunk reaches the window's last place, and so does its
// row, which, having more than WINDOW lookups, covers half of as many places on one side of it or the other.
__device__ __forceinline__ bool may_have_chunk(const Sources &from, u32 window, u32 windows) {
    Work work;
    if (window >= windows || !open_window(from, window, work)) return false;
    u32 last = window * WINDOW + WINDOW - 1;
    if (last >= work.end) return false;
    const u32 half = WINDOW / 2;
    u32 row = key_of(from.pairs[last]);
    bool before = last >= work.base + half && key_of(from.pairs[last - half]) == row;
    bool after = last + half < work.end && key_of(from.pairs[last + half]) == row;
    return row < work.table.rows && (before || after);
}

// Sums the full chunk of a window, if there is one.
__device__ __forceinline__ void sum_chunk(const Sources &from, u32 window) {
    Work work;
    open_window(from, window, work);
    u32 start = window * WINDOW, last = start + WINDOW - 1;
    u32 row = key_of(from.pairs[last]);
    u32 first = first_of(from.pairs, row, work.base, last);
    if (first + WINDOW >= work.end || key_of(from.pairs[first + WINDOW]) != row) return;
    u32 at = first >= start ? first : first + (start - first + WINDOW - 1) / WINDOW * WINDOW;
    if (at + WINDOW > work.end || key_of(from.pairs[at + WINDOW - 1]) != row) return;
    Vec sum[VECTORS];
    sum_places<CHUNK_AHEAD>(from, work, at, at + WINDOW, sum);
    float *slot = from.slots + (u64)(at / WINDOW) * from.slot_pitch;
#pragma unroll
    for (u32 v = 0; v < VECTORS; v++) {
        if (has(v)) {
#pragma unroll
            for (u32 i = 0; i < VECTOR; i++) slot[column(v) + i] = sum[v].at[i];
        }
    }
}

// Sums the full chunks of windows first, first + step, ...
__device__ __forceinline__ void sum_chunks(const Sources &from, u32 first, u32 step, u32 windows) {
    __shared__ u32 found;
    u32 lane = threadIdx.x & 31;
    if (threadIdx.x < 32) {
        u32 votes = __ballot_sync(0xffffffffu, may_have_chunk(from, first + lane * step, windows));
        if (lane == 0) found = votes;
    }
    __syncthreads();
    u32 votes = found;
    for (u32 turn = 0; votes != 0; turn++, votes &= votes - 1) {
        if (turn % (WINDOW / GROUP) == threadIdx.x / GROUP) sum_chunk(from, first + (__ffs(votes) - 1) * step);
    }
}

// The gradient of a row with many lookups, the first of them at `first`: from its chunks where it has more than WINDOW.
__device__ __forceinline__ void sum_run(const Sources &from, const Work &work, u32 row, u32 first, Vec sum[VECTORS]) {
    u32 end = first_of(from.pairs, row + 1, first, work.end);
    if (end - first <= WINDOW) {
        sum_places<RUN_AHEAD>(from, work, first, end, sum);
        return;
    }
    u32 full = (end - first) / WINDOW;
    const float *slots = from.slots + (u64)(first / WINDOW) * from.slot_pitch;
#pragma unroll
    for (u32 v = 0; v < VECTORS; v++) {
        sum[v] = load_gradient(slots + column(v));
    }
    const u32 step = RUN_AHEAD;
    for (u32 chunk = 1; chunk < full; chunk += step) {
        Vec more[step][VECTORS];
#pragma unroll
        for (u32 j = 0; j < step; j++) {
#pragma unroll
            for (u32 v = 0; v < VECTORS; v++) {
                u32 one = chunk + j < full ? chunk + j : 0;
                more[j][v] = load_gradient(slots + (u64)one * from.slot_pitch + column(v));
            }
        }
#pragma unroll
        for (u32 j = 0; j < step; j++) {
            if (chunk + j < full) {
#pragma unroll
                for (u32 v = 0; v < VECTORS; v++) add_one(sum[v], more[j][v], 1.0f);
            }
        }
    }
    u32 rest = first + full * WINDOW;
    if (rest < end) {
        Vec more[VECTORS];
        sum_places<RUN_AHEAD>(from, work, rest, end, more);
#pragma unroll
        for (u32 v = 0; v < VECTORS; v++) {
#pragma unroll
            for (u32 i = 0; i < VECTOR; i++) sum[v].at[i] = __fadd_rn(sum[v].at[i], more[v].at[i]);
        }
    }
}

