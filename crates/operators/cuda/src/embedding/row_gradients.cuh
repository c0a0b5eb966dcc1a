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

// A lookup: which row of the gradient it receives, times what.
struct Lookup {
    u32 payload, row;
    float factor;
};

__device__ __forceinline__ Lookup find_lookup(const Sources &from, const Work &work, u32 payload) {
    Lookup found = {payload, payload, 1.0f};
    if (RECEIVES != 0) {
        u64 at = work.begin + payload;
        if (RECEIVES == 1) found.row = (u32)at;
        if (RECEIVES == 2) found.row = __ldg(from.bag_of + at);
        if (WEIGHTED) found.factor = __ldg(from.weights + at);
    }
    if (MEAN) {
        float mean = __ldg(from.means + work.means + found.row);
        found.factor = WEIGHTED ? __fmul_rn(found.factor, mean) : mean;
    }
    return found;
}

__device__ __forceinline__ void load_gradients(
    const Sources &from, const Work &work, const Lookup &lookup, Vec gradient[VECTORS]) {
    const GRADIENT *at = from.gradient + (u64)lookup.row * from.stride + work.table.column;
#pragma unroll
    for (u32 v = 0; v < VECTORS; v++) {
        gradient[v] = load_gradient(at + column(v));
        if (MAX) {
            const u32 *winners = work.table.winners + (u64)lookup.row * DIM + column(v);
#pragma unroll
            for (u32 i = 0; i < VECTOR; i++) {
                if (__ldg(winners + i) != lookup.payload) gradient[v].at[i] = 0.0f;
            }
        }
    }
}

// The gradient that a lookup receives, and its factor.
__device__ __forceinline__ void load_lookup(
    const Sources &from, const Work &work, u32 payload, Vec gradient[VECTORS], float &factor) {
    Lookup lookup = find_lookup(from, work, payload);
    factor = lookup.factor;
    load_gradients(from, work, lookup, gradient);
}

// sum + factor x gradient, rounded twice.
__device__ __forceinline__ void add_one(Vec &sum, const Vec &gradient, float factor) {
#pragma unroll
    for (u32 i = 0; i < VECTOR; i++) {
        float one = WEIGHTED || MEAN ? __fmul_rn(gradient.at[i], factor) : gradient.at[i];
        sum.at[i] = __fadd_rn(sum.at[i], one);
    }
}

// What a lane holds of the lookup `i x GROUP + lane` of those from `at` on; of the last one where there are fewer, and the
// table's first where there are none.
template <u32 HELD>
__device__ __forceinline__ void hold_payloads(const Sources &from, u32 at, u32 first, u32 last, u32 payload[HELD]) {
#pragma unroll
    for (u32 i = 0; i < HELD; i++) {
        u32 place = at + i * GROUP + group_lane();
        payload[i] = first < last ? payload_of(from.pairs[place < last ? place : last - 1]) : 0;
    }
}

// Adds lookups first .. last, in order; AHEAD of them are loaded at once. Their places are loaded two turns ahead, and
// which gradients they receive one turn: by one lane for all of its group.
//
// `mask` has the lanes that come here together, of whole groups: the group's own, or ALL. Groups with fewer lookups than
// others do as those do and add nothing: groups that part from each other run one after the other.
template <u32 AHEAD>
__device__ __forceinline__ void add_places(
    u32 mask, const Sources &from, const Work &work, u32 first, u32 last, Vec sum[VECTORS]) {
    const u32 held = AHEAD > GROUP ? AHEAD / GROUP : 1; // lookups a lane
    const u32 turn = held * GROUP;
    const u32 step = turn < AHEAD ? turn : AHEAD;
    u32 next[held];
    Lookup now[held];
    hold_payloads<held>(from, first, first, last, next);
#pragma unroll
    for (u32 i = 0; i < held; i++) now[i] = find_lookup(from, work, next[i]);
    hold_payloads<held>(from, first + turn, first, last, next);
    for (u32 at = first; __any_sync(mask, at < last); at += turn) {
        for (u32 part = 0; part < turn && (turn == step || __any_sync(mask, at + part < last)); part += step) {
            Vec gradient[step][VECTORS];
            float factor[step];
#pragma unroll
            for (u32 j = 0; j < step; j++) {
                u32 lane = (part + j) % GROUP;
                const Lookup &mine = now[held == 1 ? 0 : j / GROUP];
                Lookup one;
                one.row = __shfl_sync(mask, mine.row, lane, GROUP);
                one.payload = MAX ? __shfl_sync(mask, mine.payload, lane, GROUP) : 0;
                factor[j] = WEIGHTED || MEAN ? __shfl_sync(mask, mine.factor, lane, GROUP) : 1.0f;
                load_gradients(from, work, one, gradient[j]);
            }
            if (part + step >= turn) {
#pragma unroll
                for (u32 i = 0; i < held; i++) now[i] = find_lookup(from, work, next[i]);
                hold_payloads<held>(from, at + 2 * turn, first, last, next);
            }
#pragma unroll
            for (u32 j = 0; j < step; j++) {
                if (at + part + j < last) {
#pragma unroll
                    for (u32 v = 0; v < VECTORS; v++) add_one(sum[v], gradient[j][v], factor[j]);
                }
            }
        }
    }
}

// The sum over lookups first .. last.
template <u32 AHEAD>
__device__ __forceinline__ void sum_places(
    u32 mask, const Sources &from, const Work &work, u32 first, u32 last, Vec sum[VECTORS]) {
#pragma unroll
    for (u32 v = 0; v < VECTORS; v++) {
#pragma unroll
        for (u32 i = 0; i < VECTOR; i++) sum[v].at[i] = 0.0f;
    }
    add_places<AHEAD>(mask, from, work, first, last, sum);
}

// The first place from `low` on, before `high`, whose row is at least `row`; `high` where there is none. `mask` as above.
__device__ __forceinline__ u32 first_of(u32 mask, const u64 *pairs, u32 row, u32 low, u32 high) {
    while (__any_sync(mask, low < high)) {
        u32 step = (high - low + GROUP - 1) / GROUP;
        u32 probe = low + group_lane() * step;
        bool found = probe >= high || key_of(pairs[probe]) >= row;
        u32 votes = __ballot_sync(mask, found) >> ((threadIdx.x & 31) / GROUP * GROUP);
        if (GROUP < 32) votes &= (1u << (GROUP % 32)) - 1;
        u32 first = votes == 0 ? GROUP : __ffs(votes) - 1; // the answer lies after probe first - 1, up to probe first
        if (first == 0) {
            high = low;
        } else {
            u32 upto = low + first * step;
            if (first < GROUP && upto < high) high = upto;
            low = low + (first - 1) * step + 1;
        }
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

// Sums the full chunk of a window, if there is one. All lanes of the warp come here; those of a group for which it is not
// `wanted` do nothing that lasts.
__device__ __forceinline__ void sum_chunk(const Sources &from, u32 window, bool wanted) {
    Work work;
    open_window(from, window, work);
    u32 start = window * WINDOW, last = start + WINDOW - 1;
    u32 row = key_of(from.pairs[last]);
    u32 first = first_of(ALL, from.pairs, row, work.base, wanted ? last : work.base);
    wanted = wanted && first + WINDOW < work.end && key_of(from.pairs[first + WINDOW]) == row;
    u32 at = first >= start ? first : first + (start - first + WINDOW - 1) / WINDOW * WINDOW;
    wanted = wanted && at + WINDOW <= work.end && key_of(from.pairs[at + WINDOW - 1]) == row;
    if (!__any_sync(ALL, wanted)) return;
    Vec sum[VECTORS];
    sum_places<CHUNK_AHEAD>(ALL, from, work, at, wanted ? at + WINDOW : at, sum);
    if (!wanted) return;
    float *slot = from.slots + (u64)(at / WINDOW) * from.slot_pitch;
#pragma unroll
    for (u32 v = 0; v < VECTORS; v++) {
        if (has(v)) {
#pragma unroll
            for (u32 i = 0; i < VECTOR; i++) slot[column(v) + i] = sum[v].at[i];
        }
    }
}

// Sums the full chunks of windows first, first + step, ... before `windows`.
__device__ __forceinline__ void sum_chunks(const Sources &from, u32 first, u32 step, u32 windows) {
    __shared__ u32 found;
    u32 lane = threadIdx.x & 31;
    if (threadIdx.x < 32) {
        u32 votes = __ballot_sync(ALL, may_have_chunk(from, first + lane * step, windows));
        if (lane == 0) found = votes;
    }
    __syncthreads();
    // Each group takes the windows whose number among those found is its own, or as many groups more.
    u32 count = __popc(found), group = threadIdx.x / GROUP;
    for (u32 turn = group; __any_sync(ALL, turn < count); turn += WINDOW / GROUP) {
        bool wanted = turn < count;
        u32 votes = found;
        for (u32 before = wanted ? turn : 0; before > 0; before--) votes &= votes - 1;
        sum_chunk(from, first + (__ffs(votes) - 1) * step, wanted);
    }
}

// The gradient of a row with many lookups, the first of them at `first`: from its chunks where it has more than WINDOW. All
// lanes of the warp come here.
template <u32 AHEAD>
__device__ __forceinline__ void sum_run(const Sources &from, const Work &work, u32 row, u32 first, Vec sum[VECTORS]) {
    u32 end = first_of(ALL, from.pairs, row + 1, first, work.end);
    u32 full = end - first > WINDOW ? (end - first) / WINDOW : 0, rest = first + full * WINDOW;
    const float *slots = from.slots + (u64)(first / WINDOW) * from.slot_pitch;
#pragma unroll
    for (u32 v = 0; v < VECTORS; v++) sum[v] = load_slot(slots + column(v));
    const u32 step = AHEAD;
    for (u32 chunk = 1; __any_sync(ALL, chunk < full); chunk += step) {
        Vec more[step][VECTORS];
#pragma unroll
        for (u32 j = 0; j < step; j++) {
#pragma unroll
            for (u32 v = 0; v < VECTORS; v++) {
                u32 one = chunk + j < full ? chunk + j : 0;
                more[j][v] = load_slot(slots + (u64)one * from.slot_pitch + column(v));
            }
        }
#pragma unroll
        for (u32 j = 0; j < step; j++) {
            if (chunk + j < full) {
#pragma unroll
                for (u32 v = 0; v < VECTORS; v++) {
#pragma unroll
                    for (u32 i = 0; i < VECTOR; i++) sum[v].at[i] = __fadd_rn(sum[v].at[i], more[j][v].at[i]);
                }
            }
        }
    }
    Vec more[VECTORS];
    sum_places<AHEAD>(ALL, from, work, rest, end, more);
#pragma unroll
    for (u32 v = 0; v < VECTORS; v++) {
#pragma unroll
        for (u32 i = 0; i < VECTOR; i++) {
            float both = __fadd_rn(sum[v].at[i], more[v].at[i]);
            sum[v].at[i] = full == 0 ? more[v].at[i] : rest < end ? both : sum[v].at[i];
        }
    }
}
