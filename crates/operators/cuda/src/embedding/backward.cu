// The gradient of every row that was looked up, and its optimizer step, over lookups in sorted order.
//
// A group of GROUP lanes takes one row at a time, VECTOR columns a lane, VECTORS times; narrow rows leave 32 / GROUP
// rows to a warp. Lookups of a row are summed from first to last, in chunks of WINDOW; the sums of the chunks are added
// in order, as the CPU's operators do.
//
//   update_rows 256 threads, two kinds of blocks, for spans of windows one after the other, so that the gradients of
//               one table or two are read at a time, which the L2 holds.
//               `chunks` of them sum the chunks of a span while those of the span before step its rows: the former read
//               what the L2 holds, the latter wait for memory. A block looks at every chunks-th window of the span, one
//               a lane of its first warp; its groups then sum, in turn, the one full chunk that starts in each window
//               of a row with more lookups than that. Where there is none, they end at once.
//               The others take one window each, a group GROUP places of it. A group owns the rows whose first lookup
//               is among its places and which have at most SHORT lookups, and takes BATCH lookups of them, with the
//               rows that end there, at once. With OWN it first does its rows of up to WINDOW lookups, one by one.
//               Rows with more go to a list; their order there changes nothing. Bags of any length cost nothing here;
//               a group whose places all belong to rows begun earlier ends at once; lanes idle only where D is no
//               multiple of VECTOR x GROUP.
//   update_runs 128 threads, any grid: one group a row of that list. Loads RUN_AHEAD lookups at once.
//
// With TOGETHER, for few lookups, `update_rows` is the only launch: the last block to end does the rows of the list.
//
// Macros: DIM, ELEMENT (0 f32, 1 f16, 2 bf16), RULE (0 SGD, 1 SGD with momentum, 2 Adagrad, 3 row-wise Adagrad, 4 Adam,
// 5 partial row-wise Adam), RECEIVES (0 bags, 1 positions, 2 bags with the payload a position), WEIGHTED, MEAN, MAX,
// STOCHASTIC, VECTOR, GROUP, BATCH, CHUNK_AHEAD, RUN_AHEAD, TOGETHER, OWN, SHORT, CLASS (of the tables to take),
// UPDATE_BLOCKS and RUN_BLOCKS (of a multiprocessor), INDEX, OFFSET and GRADIENT (their types).
//
// Comes after float.cuh, grouped.cuh, row_lanes.cuh, row_elements.cuh, row_gradients.cuh and row_step.cuh.

// Whether lookups are such that no table may change.
__device__ __forceinline__ bool refused(const Report *report, u32 stop_at_bad) {
    return report->first_fall != 0 || report->first_long != 0 || (stop_at_bad && report->bad != 0);
}

// The votes of this thread's group; all lanes of the warp come here.
__device__ __forceinline__ u64 vote(bool yes) {
    u32 votes = __ballot_sync(ALL, yes) >> ((threadIdx.x & 31) / GROUP * GROUP);
    return GROUP == 32 ? votes : votes & ((1u << (GROUP % 32)) - 1);
}

__device__ __forceinline__ u32 first_bit(u64 bits) { return __ffsll((long long)bits) - 1; }

// The step of a row of many lookups, the first of them at `place`, where it is `wanted` and has no more than WINDOW; returns
// whether it has more. All lanes of the warp come here.
__device__ __forceinline__ bool update_run(
    const Sources &from, const Work &work, const Numbers &n, u32 row, u32 place, bool wanted) {
    u32 most = work.end - place < WINDOW + 1 ? work.end : place + WINDOW + 1;
    u32 end = first_of(ALL, from.pairs, row + 1, place, wanted ? most : place);
    bool longer = wanted && end - place > WINDOW;
    wanted = wanted && !longer;
    Row state;
    Vec sum[VECTORS];
    // Where lookups are few the row is on its way meanwhile; else its registers would be spilled.
    if (TOGETHER) load_row(work, wanted, row, state);
    sum_places<CHUNK_AHEAD>(ALL, from, work, place, wanted ? end : place, sum);
    if (!TOGETHER) load_row(work, wanted, row, state);
    if (wanted) step_row(work, n, row, state, sum);
    return longer;
}

// The steps of the rows that begin in a window.
__device__ __forceinline__ void update_window(const Sources &from, const Numbers *numbers, u32 window) {
    Work work;
    if (!open_window(from, window, work)) return;
    u32 place = window * WINDOW + threadIdx.x / GROUP * GROUP;
    // Each lane holds two lookups, so that a group sees twice its places: bit i of a mask is lookup place + i.
    u32 lane = group_lane();
    u64 low = from.pairs[place + lane], high = from.pairs[place + GROUP + lane];
    u32 low_row = row_at(work, place + lane, low), high_row = row_at(work, place + GROUP + lane, high);
    u32 before = place > work.base ? row_at(work, place - 1, from.pairs[place - 1]) : NOTHING;
    u32 previous = __shfl_up_sync(ALL, low_row, 1, GROUP);
    u64 heads = vote(low_row != (lane == 0 ? before : previous));
    u64 valid = vote(low_row != NOTHING);
    u64 starts = heads & valid;
    // Groups of a warp stay together: one with nothing to do loads what the others wait for, and changes nothing.
    if (__all_sync(ALL, starts == 0)) return;
    previous = __shfl_up_sync(ALL, high_row, 1, GROUP);
    u32 last = __shfl_sync(ALL, low_row, GROUP - 1, GROUP);
    u64 high_heads = vote(high_row != (lane == 0 ? last : previous));
    heads |= high_heads << GROUP;
    valid |= vote(high_row != NOTHING) << GROUP;
    u32 ahead_low = __shfl_sync(ALL, low_row, (lane + SHORT) % GROUP, GROUP);
    u32 ahead_high = __shfl_sync(ALL, high_row, (lane + SHORT) % GROUP, GROUP);
    u64 far = vote((lane + SHORT < GROUP ? ahead_low : ahead_high) == low_row) & starts;
    // The lookups to do: those of rows begun here, up to the first row begun later.
    u32 end = high_heads == 0 ? 2 * GROUP : GROUP + first_bit(high_heads);
    u64 mine = starts == 0 ? 0 : valid & ~((1ull << first_bit(starts)) - 1);
    if (end < 64) mine &= (1ull << end) - 1;
    Numbers n = *numbers;
    while (__any_sync(ALL, far != 0)) {
        bool wanted = far != 0;
        u32 first = wanted ? first_bit(far) : 0;
        far &= far - 1;
        u64 later = heads & ~((2ull << first) - 1);
        u64 row = (later == 0 ? ~0ull : (1ull << first_bit(later)) - 1) & ~((1ull << first) - 1);
        if (wanted) mine &= ~row;
        bool listed = wanted;
#if OWN
        listed = update_run(from, work, n, __shfl_sync(ALL, low_row, first, GROUP), place + first, wanted);
#endif
        if (listed && lane == 0) from.runs[2 + atomicAdd(from.runs, 1u)] = place + first;
    }
    Vec sum[VECTORS];
    while (__any_sync(ALL, mine != 0)) {
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
            row[j] = __shfl_sync(ALL, in_low ? low_row : high_row, source, GROUP);
            u32 payload = __shfl_sync(ALL, payload_of(in_low ? low : high), source, GROUP);
            bool real = at[j] < 64;
            tail[j] = real && (heads >> at[j] >> 1 & 1);
            load_row(work, tail[j], row[j], rows[j]);
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

// Steps rows of the list, one a group of the `groups` that there are. Groups of a warp stay together: one without a row
// does as the others do with the first row, and steps nothing.
template <u32 AHEAD>
__device__ __forceinline__ void update_list(
    const Sources &from, const Numbers &n, u32 count, u32 group, u32 groups) {
    for (u32 run = group; __any_sync(ALL, run < count); run += groups) {
        bool mine = run < count;
        u32 place = __ldcg(from.runs + 2 + (mine ? run : 0));
        Work work;
        open_window(from, place / WINDOW, work);
        u32 row = key_of(from.pairs[place]);
        Row state;
        load_row(work, mine, row, state);
        Vec sum[VECTORS];
        sum_run<AHEAD>(from, work, row, place, sum);
        if (mine) step_row(work, n, row, state, sum);
    }
}

// How blocks are dealt: to each span of windows `chunks` for its chunks, and one a window. The chunks of a span come
// before the windows of the span before.
struct Dealt {
    u32 chunks, span, windows;
};

extern "C" __global__ void __launch_bounds__(WINDOW, UPDATE_BLOCKS) update_rows(
    const __grid_constant__ Sources from, const Numbers *numbers, const Report *report, u32 stop_at_bad,
    const __grid_constant__ Dealt dealt) {
    if (refused(report, stop_at_bad)) return;
    u32 both = dealt.chunks + dealt.span, block = blockIdx.x - dealt.chunks;
    u32 begin = 0, place = blockIdx.x; // of the span, and among its blocks
    if (blockIdx.x >= dealt.chunks) {
        begin = block / both * dealt.span, place = block % both;
        bool more = dealt.windows - begin > dealt.span; // the last span has no chunks of another before its windows
        if (more && place < dealt.chunks) begin += dealt.span;
        else place += more ? 0 : dealt.chunks;
    }
    if (place < dealt.chunks) {
        u32 left = dealt.windows - begin;
        sum_chunks(from, begin + place, dealt.chunks, begin + (left < dealt.span ? left : dealt.span));
    } else {
        update_window(from, numbers, begin + place - dealt.chunks);
    }
#if TOGETHER
    __shared__ bool last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) last = atomicAdd(from.runs + 1, 1u) + 1 == gridDim.x;
    __syncthreads();
    if (!last) return;
    __threadfence();
    u32 count = __ldcg(from.runs);
    __syncthreads();
    if (threadIdx.x == 0) from.runs[0] = from.runs[1] = 0;
    update_list<CHUNK_AHEAD>(from, *numbers, count, threadIdx.x / GROUP, WINDOW / GROUP);
#endif
}

extern "C" __global__ void __launch_bounds__(128, RUN_BLOCKS) update_runs(
    const __grid_constant__ Sources from, const Numbers *numbers, const Report *report, u32 stop_at_bad) {
    if (refused(report, stop_at_bad)) return;
    u32 count = from.runs[0];
    __syncthreads();
    // The last block to read the count leaves an empty list to the next step.
    if (threadIdx.x == 0 && atomicAdd(from.runs + 1, 1u) + 1 == gridDim.x) from.runs[0] = from.runs[1] = 0;
    update_list<RUN_AHEAD>(
        from, *numbers, count, (blockIdx.x * 128 + threadIdx.x) / GROUP, gridDim.x * (128 / GROUP));
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

// Settings of the steps to come; one thread. How many there were stays, and with `advance` what depends on that.
extern "C" __global__ void set_numbers(Numbers *numbers, const __grid_constant__ Numbers given) {
    numbers->lr = numbers->rate = given.lr;
    numbers->decay = given.decay;
    numbers->keep = given.keep;
}

// A table whose address may differ from step to step; one thread.
extern "C" __global__ void place_table(Table *tables, const __grid_constant__ Table given) {
    tables[given.place] = given;
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
