// The gradient of every row that was looked up, and its optimizer step, over lookups in sorted order.
//
// A group of GROUP lanes takes one row at a time, VECTOR columns a lane, VECTORS times; narrow rows leave 32 / GROUP
// rows to a warp. Lookups of a row are summed from first to last, in chunks of WINDOW; the sums of the chunks are added
// in order, as the CPU's operators do.
//
//   update_rows 256 threads, two kinds of blocks.
//               The first `chunk_blocks`, at least windows / 32, sum chunks: a block looks at every chunk_blocks-th
//               window, one a lane of its first warp; its groups then sum, in turn, the one full chunk that starts in
//               each window of a row with more lookups than that. Where there is none, they end at once.
//               The others take one window each, a group GROUP places of it. A group owns the rows whose first lookup
//               is among its places and which have at most SHORT lookups, and takes BATCH lookups of them, with the
//               rows that end there, at once. Rows with more go to a list; their order there changes nothing. Bags of
//               any length cost nothing here; a group whose places all belong to rows begun earlier ends at once;
//               lanes idle only where D is no multiple of VECTOR x GROUP.
//   update_runs 128 threads, any grid: one group a row of that list. Loads RUN_AHEAD lookups at once.
//
// Macros: DIM, ELEMENT (0 f32, 1 f16, 2 bf16), RULE (0 SGD, 1 SGD with momentum, 2 Adagrad, 3 row-wise Adagrad, 4 Adam,
// 5 partial row-wise Adam), RECEIVES (0 bags, 1 positions, 2 bags with the payload a position), WEIGHTED, MEAN, MAX,
// STOCHASTIC, VECTOR, GROUP, BATCH, SHORT, CLASS (of the tables to take), UPDATE_BLOCKS (of a multiprocessor), INDEX and
// OFFSET (their types).

#define COLUMNS (VECTOR * GROUP)
#define VECTORS ((DIM + COLUMNS - 1) / COLUMNS)
#define WHOLE (DIM % COLUMNS == 0)
#define STATES (RULE == 1 || RULE == 2 || RULE == 5 ? 1 : RULE == 4 ? 2 : 0)
#define ROW_STATE (RULE == 3 || RULE == 5)
// Lookups of a full chunk, and of a row with many, that are loaded at once.
#define CHUNK_AHEAD (VECTORS == 1 ? 8 : VECTORS == 2 ? 4 : 2)
#define RUN_AHEAD (4 * CHUNK_AHEAD)

struct Table {
    void *weights;
    float *state;
    u32 pitch;       // elements from row to row
    u32 state_pitch; // floats from row to row
    u32 rows;        // E
    u32 column;      // where its gradient begins in a row of gradients
    u32 kind;        // the CLASS that takes it
    u32 place;       // among the tables
    const u32 *winners; // [B, D]: the only position of a bag that gets the gradient of a column
};

// What an optimizer's step uses: the names of the CPU's operators.
struct Numbers {
    float lr, decay, keep, rate, root, momentum, beta1, beta2, eps, unused;
    u64 dice; // seed and step, mixed
    u64 seed, step;
};

struct Sources {
    const u64 *pairs;
    const u32 *windows;
    const Plan *plans;
    const Table *tables;
    const float *gradient;
    u32 stride;           // of the gradient
    u32 bags;             // B
    const float *weights; // a factor for each lookup
    const u32 *bag_of;    // the bag of each lookup
    const float *means;   // a factor for each bag of each table
    float *slots;         // sums of full chunks, one for each window
    u32 *runs;            // rows with more than SHORT lookups: how many, blocks done with them, first place of each
    u32 slot_pitch;
};

struct Vec {
    float at[VECTOR];
};

// The lanes of this thread's group.
__device__ __forceinline__ u32 group_mask() {
    return GROUP == 32 ? 0xffffffffu : ((1u << (GROUP % 32)) - 1) << ((threadIdx.x & 31) / GROUP * GROUP);
}

__device__ __forceinline__ u32 group_lane() { return threadIdx.x % GROUP; }

// Whether this lane's vector `v` lies in the row.
__device__ __forceinline__ bool has(u32 v) { return WHOLE || (v * GROUP + group_lane()) * VECTOR < DIM; }

// Its first column; a column of the row for lanes beyond its end, which load all the same: loads under a condition
// would wait for each other.
__device__ __forceinline__ u32 column(u32 v) { return has(v) ? (v * GROUP + group_lane()) * VECTOR : 0; }

// Reads and writes through the caches as neither read nor written again soon.
__device__ __forceinline__ Vec load_once(const float *from) {
    Vec to;
#if VECTOR == 4
    float4 v = __ldcs((const float4 *)from);
    to.at[0] = v.x, to.at[1] = v.y, to.at[2] = v.z, to.at[3] = v.w;
#elif VECTOR == 2
    float2 v = __ldcs((const float2 *)from);
    to.at[0] = v.x, to.at[1] = v.y;
#else
    to.at[0] = __ldcs(from);
#endif
    return to;
}

__device__ __forceinline__ void store_once(float *to, const Vec &v) {
#if VECTOR == 4
    __stcs((float4 *)to, make_float4(v.at[0], v.at[1], v.at[2], v.at[3]));
#elif VECTOR == 2
    __stcs((float2 *)to, make_float2(v.at[0], v.at[1]));
#else
    __stcs(to, v.at[0]);
#endif
}

// A gradient is read once for each lookup of its bag.
__device__ __forceinline__ Vec load_gradient(const float *from) {
    Vec to;
#if VECTOR == 4
    float4 v = __ldg((const float4 *)from);
    to.at[0] = v.x, to.at[1] = v.y, to.at[2] = v.z, to.at[3] = v.w;
#elif VECTOR == 2
    float2 v = __ldg((const float2 *)from);
    to.at[0] = v.x, to.at[1] = v.y;
#else
    to.at[0] = __ldg(from);
#endif
    return to;
}

// ---- weights of each type; the conversions are those of the CPU's operators, bit by bit ----

#if ELEMENT == 0
typedef float Element;
typedef Vec Raw;
__device__ __forceinline__ Raw load_raw(const Element *from) { return load_once(from); }
__device__ __forceinline__ float widen_one(float value) { return value; }
__device__ __forceinline__ Vec widen(const Raw &raw) { return raw; }
__device__ __forceinline__ void store_row(Element *to, const Vec &v, u64, u32) { store_once(to, v); }
#else
typedef u16 Element;
struct Raw {
    u16 at[VECTOR];
};

__device__ __forceinline__ Raw load_raw(const Element *from) {
    Raw to;
#if VECTOR == 4
    uint2 v = __ldcs((const uint2 *)from);
    to.at[0] = (u16)v.x, to.at[1] = (u16)(v.x >> 16), to.at[2] = (u16)v.y, to.at[3] = (u16)(v.y >> 16);
#elif VECTOR == 2
    u32 v = __ldcs((const u32 *)from);
    to.at[0] = (u16)v, to.at[1] = (u16)(v >> 16);
#else
    to.at[0] = *from;
#endif
    return to;
}

__device__ __forceinline__ float widen_one(u32 bits) {
#if ELEMENT == 2
    return __uint_as_float(bits << 16);
#else
    u32 sign = (bits & 0x8000) << 16, rest = (bits & 0x7fff) << 13;
    // As if the exponent were single precision's, then scaled by 2^112: right for normal and subnormal numbers.
    u32 finite = __float_as_uint(__fmul_rn(__uint_as_float(rest), __uint_as_float((127u + 112u) << 23)));
    u32 special = rest | 0x7f800000u;
    return __uint_as_float(sign | ((bits & 0x7c00) == 0x7c00 ? special : finite));
#endif
}

#if ELEMENT == 1
// A magnitude rounded in both ways: right where it is at least 2^-14, and right where it is below.
__device__ __forceinline__ u32 join_half(u32 bits, u32 normal, u32 small) {
    u32 magnitude = bits & 0x7fffffffu;
    u32 finite = magnitude < (127u - 14u) << 23 ? small : normal < 0x7c00u ? normal : 0x7c00u;
    u32 nan = 0x7e00u | (magnitude >> 13 & 0x3ffu);
    return (bits >> 16 & 0x8000u) | (magnitude > 0x7f800000u ? nan : finite);
}

__device__ __forceinline__ u32 above(u32 value, u32 floor) { return value > floor ? value - floor : 0; }
#endif

__device__ __forceinline__ u32 nearest(float wide) {
    u32 bits = __float_as_uint(wide);
#if ELEMENT == 2
    u32 rounded = (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
    return wide != wide ? bits >> 16 | 0x40u : rounded;
#else
    u32 magnitude = bits & 0x7fffffffu;
    u32 rounded = magnitude + 0xfffu + (magnitude >> 13 & 1);
    // Adding 0.5 leaves single precision as many bits as a subnormal half has.
    u32 small = __float_as_uint(__fadd_rn(__uint_as_float(magnitude), 0.5f)) - 0x3f000000u;
    return join_half(bits, above(rounded >> 13, 112u << 10), small);
#endif
}

__device__ __forceinline__ u32 stochastic(float wide, u32 random) {
    u32 bits = __float_as_uint(wide);
#if ELEMENT == 2
    bool finite = (bits & 0x7f800000u) != 0x7f800000u;
    return finite ? (bits + (random & 0xffffu)) >> 16 : bits >> 16 | (wide != wide ? 0x40u : 0);
#else
    u32 magnitude = bits & 0x7fffffffu;
    u32 normal = above((magnitude + (random & 0x1fffu)) >> 13, 112u << 10);
    // In units of the smallest half, plus a random share of one.
    float share = __fmul_rn((float)(random & 0x1fffu), 1.0f / 8192.0f);
    float least = fminf(__uint_as_float(magnitude), 1.0f);
    u32 small = (u32)__fadd_rn(__fmul_rn(least, __uint_as_float((127u + 24u) << 23)), share);
    return join_half(bits, magnitude == 0x7f800000u ? 0x7c00u : normal, small);
#endif
}

__device__ __forceinline__ Vec widen(const Raw &raw) {
    Vec v;
#pragma unroll
    for (u32 i = 0; i < VECTOR; i++) v.at[i] = widen_one(raw.at[i]);
    return v;
}

// The random bits of a column: the finalizer of MurmurHash3 over a counter that starts at random.
__device__ __forceinline__ u32 roll(u64 dice, u32 column) {
    u32 bits = (u32)dice + column * 0x9e3779b9u;
    bits = (bits ^ bits >> 16) * 0x85ebca6bu;
    bits = (bits ^ bits >> 13) * 0xc2b2ae35u;
    return (bits ^ bits >> 16) ^ (u32)(dice >> 32);
}

__device__ __forceinline__ void store_row(Element *to, const Vec &v, u64 dice, u32 column) {
    u32 bits[VECTOR];
#pragma unroll
    for (u32 i = 0; i < VECTOR; i++) {
        bits[i] = (STOCHASTIC ? stochastic(v.at[i], roll(dice, column + i)) : nearest(v.at[i])) & 0xffffu;
    }
#if VECTOR == 4
    __stcs((uint2 *)to, make_uint2(bits[0] | bits[1] << 16, bits[2] | bits[3] << 16));
#elif VECTOR == 2
    __stcs((u32 *)to, bits[0] | bits[1] << 16);
#else
    *to = (u16)bits[0];
#endif
}
#endif

// A mix of all bits of a number (the finalizer of SplitMix64).
__device__ __forceinline__ u64 mix(u64 number) {
    number = (number ^ number >> 30) * 0xbf58476d1ce4e5b9ull;
    number = (number ^ number >> 27) * 0x94d049bb133111ebull;
    return number ^ number >> 31;
}

// ---- gradients of lookups ----

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

// ---- the step of a row ----

// A row's weights and state, on their way from memory.
struct Row {
    Raw weights[VECTORS];
    Vec state[STATES > 0 ? STATES * VECTORS : 1];
    float row_state;
};

// Loads them; where they are not wanted, something else that can be read.
__device__ __forceinline__ void load_row(const Sources &sources, const Work &work, bool wanted, u32 row, Row &to) {
    const Element *weights = (const Element *)work.table.weights + (u64)row * work.table.pitch;
    const float *state = work.table.state + (u64)row * work.table.state_pitch;
    if (!wanted) weights = (const Element *)sources.gradient;
#pragma unroll
    for (u32 v = 0; v < VECTORS; v++) {
        to.weights[v] = load_raw(weights + column(v));
#pragma unroll
        for (int s = 0; s < STATES; s++) {
            const float *at = wanted ? state + s * DIM : sources.gradient;
            to.state[s * VECTORS + v] = load_once(at + column(v));
        }
    }
    if (ROW_STATE) to.row_state = *(wanted ? state + STATES * DIM : sources.gradient);
}

// The gradient that the rule sees: with its part of the weights.
__device__ __forceinline__ float with_decay(const Numbers &n, float gradient, float weight) {
    return __fadd_rn(gradient, __fmul_rn(n.decay, weight));
}

__device__ __forceinline__ void step_row(
    const Work &work, const Numbers &n, u32 row, const Row &from, const Vec sum[VECTORS]) {
    Element *weights = (Element *)work.table.weights + (u64)row * work.table.pitch;
    float *state = work.table.state + (u64)row * work.table.state_pitch;
    u64 dice = STOCHASTIC ? mix(mix(n.dice ^ work.table.place) ^ row) : 0;
    float row_rate = 0.0f;
    if (ROW_STATE) {
        float squares = 0.0f;
#pragma unroll
        for (u32 v = 0; v < VECTORS; v++) {
            if (has(v)) {
                Vec p = widen(from.weights[v]);
#pragma unroll
                for (u32 i = 0; i < VECTOR; i++) {
                    float g = with_decay(n, sum[v].at[i], p.at[i]);
                    squares = __fadd_rn(squares, __fmul_rn(g, g));
                }
            }
        }
#pragma unroll
        for (u32 reach = GROUP / 2; reach > 0; reach /= 2) {
            squares = __fadd_rn(squares, __shfl_xor_sync(group_mask(), squares, reach, GROUP));
        }
        float mean = __fdiv_rn(squares, (float)DIM);
        float now;
        if (RULE == 3) {
            now = __fadd_rn(from.row_state, mean);
            row_rate = __fdiv_rn(n.lr, __fadd_rn(__fsqrt_rn(now), n.eps));
        } else {
            now = __fadd_rn(__fmul_rn(n.beta2, from.row_state), __fmul_rn(__fsub_rn(1.0f, n.beta2), mean));
            row_rate = __fdiv_rn(n.rate, __fadd_rn(__fdiv_rn(__fsqrt_rn(now), n.root), n.eps));
        }
        if (group_lane() == 0) state[STATES * DIM] = now;
    }
#pragma unroll
    for (u32 v = 0; v < VECTORS; v++) {
        if (!has(v)) continue;
        Vec p = widen(from.weights[v]);
        Vec first = from.state[STATES > 0 ? v : 0], second = from.state[STATES > 1 ? VECTORS + v : 0];
#pragma unroll
        for (u32 i = 0; i < VECTOR; i++) {
            float g = with_decay(n, sum[v].at[i], p.at[i]);
            float kept = __fmul_rn(p.at[i], n.keep);
            float change;
            if (RULE == 0) {
                change = __fmul_rn(n.lr, g);
            } else if (RULE == 1) {
                first.at[i] = __fadd_rn(__fmul_rn(n.momentum, first.at[i]), g);
                change = __fmul_rn(n.lr, first.at[i]);
            } else if (RULE == 2) {
                first.at[i] = __fadd_rn(first.at[i], __fmul_rn(g, g));
                change = __fmul_rn(n.lr, __fdiv_rn(g, __fadd_rn(__fsqrt_rn(first.at[i]), n.eps)));
            } else if (RULE == 3) {
                change = __fmul_rn(row_rate, g);
            } else {
                float take = __fsub_rn(1.0f, n.beta1);
                first.at[i] = __fadd_rn(first.at[i], __fmul_rn(take, __fsub_rn(g, first.at[i])));
                if (RULE == 4) {
                    float square = __fmul_rn(__fsub_rn(1.0f, n.beta2), __fmul_rn(g, g));
                    second.at[i] = __fadd_rn(__fmul_rn(n.beta2, second.at[i]), square);
                    float root = __fadd_rn(__fdiv_rn(__fsqrt_rn(second.at[i]), n.root), n.eps);
                    change = __fmul_rn(n.rate, __fdiv_rn(first.at[i], root));
                } else {
                    change = __fmul_rn(row_rate, first.at[i]);
                }
            }
            p.at[i] = __fsub_rn(kept, change);
        }
        store_row(weights + column(v), p, dice, column(v));
        if (STATES > 0) store_once(state + column(v), first);
        if (STATES > 1) store_once(state + DIM + column(v), second);
    }
}

// Whether lookups are such that no table may change.
__device__ __forceinline__ bool refused(const Report *report, u32 stop_at_bad) {
    return report->first_fall != 0 || report->first_long != 0 || (stop_at_bad && report->bad != 0);
}

// The votes of this thread's group.
__device__ __forceinline__ u64 vote(bool yes) {
    u32 votes = __ballot_sync(group_mask(), yes) >> ((threadIdx.x & 31) / GROUP * GROUP);
    return GROUP == 32 ? votes : votes & ((1u << (GROUP % 32)) - 1);
}

__device__ __forceinline__ u32 first_bit(u64 bits) { return __ffsll((long long)bits) - 1; }

extern "C" __global__ void __launch_bounds__(WINDOW, UPDATE_BLOCKS) update_rows(
    const __grid_constant__ Sources from, const Numbers *numbers, const Report *report, u32 stop_at_bad,
    u32 chunk_blocks) {
    if (refused(report, stop_at_bad)) return;
    if (blockIdx.x < chunk_blocks) {
        sum_chunks(from, blockIdx.x, chunk_blocks, gridDim.x - chunk_blocks);
        return;
    }
    u32 window = blockIdx.x - chunk_blocks;
    Work work;
    if (!open_window(from, window, work)) return;
    u32 place = window * WINDOW + threadIdx.x / GROUP * GROUP;
    if (place >= work.end) return;
    // Each lane holds two lookups, so that a group sees twice its places: bit i of a mask is lookup place + i.
    u32 lane = group_lane();
    u64 low = from.pairs[place + lane], high = from.pairs[place + GROUP + lane];
    u32 low_row = row_at(work, place + lane, low), high_row = row_at(work, place + GROUP + lane, high);
    u32 before = place > work.base ? row_at(work, place - 1, from.pairs[place - 1]) : NOTHING;
    u32 previous = __shfl_up_sync(group_mask(), low_row, 1, GROUP);
    u64 heads = vote(low_row != (lane == 0 ? before : previous));
    u64 valid = vote(low_row != NOTHING);
    u64 starts = heads & valid;
    if (starts == 0) return;
    previous = __shfl_up_sync(group_mask(), high_row, 1, GROUP);
    u32 last = __shfl_sync(group_mask(), low_row, GROUP - 1, GROUP);
    u64 high_heads = vote(high_row != (lane == 0 ? last : previous));
    heads |= high_heads << GROUP;
    valid |= vote(high_row != NOTHING) << GROUP;
    u32 ahead_low = __shfl_sync(group_mask(), low_row, (lane + SHORT) % GROUP, GROUP);
    u32 ahead_high = __shfl_sync(group_mask(), high_row, (lane + SHORT) % GROUP, GROUP);
    u64 far = vote((lane + SHORT < GROUP ? ahead_low : ahead_high) == low_row) & starts;
    // The lookups to do: those of rows begun here, up to the first row begun later.
    u32 end = high_heads == 0 ? 2 * GROUP : GROUP + first_bit(high_heads);
    u64 mine = valid & ~((1ull << first_bit(starts)) - 1);
    if (end < 64) mine &= (1ull << end) - 1;
    for (; far != 0; far &= far - 1) {
        u32 first = first_bit(far);
        u64 later = heads & ~((2ull << first) - 1);
        u64 row = (later == 0 ? ~0ull : (1ull << first_bit(later)) - 1) & ~((1ull << first) - 1);
        mine &= ~row;
        if (lane == 0) from.runs[2 + atomicAdd(from.runs, 1u)] = place + first;
    }
    Numbers n = *numbers;
    Vec sum[VECTORS];
    while (mine != 0) {
        u32 at[BATCH], row[BATCH];
        bool tail[BATCH];
        Vec gradient[BATCH][VECTORS];
        float factor[BATCH];
        Row rows[BATCH];
#pragma unroll
        for (u32 j = 0; j < BATCH; j++) {
            at[j] = mine == 0 ? 64 : first_bit(mine);
            mine &= mine - 1;
            u32 source = at[j] % GROUP;
            bool in_low = at[j] < GROUP;
            row[j] = __shfl_sync(group_mask(), in_low ? low_row : high_row, source, GROUP);
            u32 payload = __shfl_sync(group_mask(), payload_of(in_low ? low : high), source, GROUP);
            bool real = at[j] < 64;
            tail[j] = real && (heads >> at[j] >> 1 & 1);
            load_row(from, work, tail[j], row[j], rows[j]);
            load_lookup(from, work, real ? payload : 0, gradient[j], factor[j]);
        }
#pragma unroll
        for (u32 j = 0; j < BATCH; j++) {
            if (at[j] == 64) break;
            if (heads >> at[j] & 1) {
                // A row's only lookup keeps the sign of zeros, as on the CPU.
                float zero = tail[j] && !MAX ? -0.0f : 0.0f;
#pragma unroll
                for (u32 v = 0; v < VECTORS; v++) {
#pragma unroll
                    for (u32 i = 0; i < VECTOR; i++) sum[v].at[i] = zero;
                }
            }
#pragma unroll
            for (u32 v = 0; v < VECTORS; v++) add_one(sum[v], gradient[j][v], factor[j]);
            if (tail[j]) step_row(work, n, row[j], rows[j], sum);
        }
    }
}

extern "C" __global__ void __launch_bounds__(128) update_runs(
    const __grid_constant__ Sources from, const Numbers *numbers, const Report *report, u32 stop_at_bad) {
    if (refused(report, stop_at_bad)) return;
    u32 count = from.runs[0];
    __syncthreads();
    // The last block to read the count leaves an empty list to the next step.
    if (threadIdx.x == 0 && atomicAdd(from.runs + 1, 1u) + 1 == gridDim.x) from.runs[0] = from.runs[1] = 0;
    for (u32 run = (blockIdx.x * 128 + threadIdx.x) / GROUP; run < count; run += gridDim.x * (128 / GROUP)) {
        u32 place = from.runs[2 + run];
        Work work;
        open_window(from, place / WINDOW, work);
        u32 row = key_of(from.pairs[place]);
        Row state;
        load_row(from, work, true, row, state);
        Vec sum[VECTORS];
        sum_run(from, work, row, place, sum);
        step_row(work, *numbers, row, state, sum);
    }
}

// The numbers of the next step, and that it is taken; one thread. Numbers that stay are the host's.
extern "C" __global__ void advance(Numbers *numbers, const Report *report, u32 stop_at_bad) {
    if (refused(report, stop_at_bad)) return;
    Numbers n = *numbers;
    n.step++;
    double powers[2] = {1.0, 1.0}, factors[2] = {n.beta1, n.beta2};
    for (u64 left = n.step; left > 0; left /= 2) {
        for (u32 i = 0; i < 2; i++) {
            if (left % 2 == 1) powers[i] = powers[i] * factors[i];
            factors[i] = factors[i] * factors[i];
        }
    }
    n.rate = (float)((double)n.lr / (1.0 - powers[0]));
    n.root = (float)sqrt(1.0 - powers[1]);
    n.dice = mix(mix(n.seed) ^ n.step);
    *numbers = n;
}

// For each bag and column of a table the position, counted from the table's first lookup, of the largest of its rows,
// the first of equals; NOTHING where the bag is empty or the zero of a lookup of no row is the largest. One block a bag,
// a thread a column at a time; no lane parts from the others but for the last columns.
extern "C" __global__ void __launch_bounds__(128) find_winners(
    const INDEX *indices, const OFFSET *offsets, u64 total, Table table, u32 bags, u32 ignore, u32 *winners) {
    const Element *weights = (const Element *)table.weights;
    u64 first = (u64)offsets[(u64)table.place * bags];
    u64 begin = (u64)offsets[(u64)table.place * bags + blockIdx.x];
    u64 end = (u64)offsets[(u64)table.place * bags + blockIdx.x + 1];
    if (end > total) end = total;
    for (u32 c = threadIdx.x; c < DIM; c += 128) {
        float largest = 0.0f;
        u32 winner = NOTHING;
        bool seen = false;
        for (u64 at = begin; at < end; at++) {
            u64 row = (u64)(long long)indices[at];
            bool there = row < table.rows;
            if (!there && ignore) continue;
            float value = there ? widen_one(weights[row * table.pitch + c]) : 0.0f;
            if (!seen || value > largest) {
                largest = value;
                winner = there ? (u32)(at - first) : NOTHING;
            }
            seen = true;
        }
        winners[(u64)blockIdx.x * DIM + c] = winner;
    }
}
