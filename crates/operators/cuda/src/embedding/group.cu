// Lookups of all tables grouped by row: a stable radix sort, least significant digit first, of all tables at once.
//
// Two ways, with the same result:
//
//   count_indices, scan, scatter_indices, then (count_pairs, scan, scatter_pairs) for each further digit
//     one block a tile of TILE lookups of one table; THREADS threads, ITEMS lookups a thread; grid N / TILE + T.
//     Every lane has a lookup but in the last tile of a table. `scan`: grid (RADIX / 32, T), 1024 threads, a lane a
//     digit and a warp a share of the tiles; warps without a tile (tables of fewer than 32) only take part in the sum.
//   sort_tables: one block a table that fits one tile, all digits in shared memory.
//
// Ranks within a tile come from counters that each warp has for itself and steps through in order, so that nothing
// depends on the order in which threads run. Shared-memory atomics only count and set bits.
//
// Macros: THREADS, ITEMS, BITS (of a digit), SCATTER_BLOCKS (of a multiprocessor), INDEX and OFFSET (the types of both),
// POSITIONS (1: the payload is the position, and bag_of is filled where given; 0: the payload is the bag).
//
// Comes after grouped.cuh, group_tiles.cuh and group_rank.cuh.

// Counts a digit of a tile.
__device__ __forceinline__ void count_tile(const u32 key[ITEMS], u32 shift, u32 valid, u32 *counts, u32 *histogram) {
    for (u32 digit = threadIdx.x; digit < RADIX; digit += THREADS) counts[digit] = 0;
    __syncthreads();
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++) {
        if (i * THREADS + threadIdx.x < valid) atomicAdd(&counts[key[i] >> shift & (RADIX - 1)], 1u);
    }
    __syncthreads();
    for (u32 digit = threadIdx.x; digit < RADIX; digit += THREADS) histogram[digit] = counts[digit];
}

// Looks for offsets that fall, lie beyond the last index, or do not begin with 0 and end with all indices.
__device__ __forceinline__ void check_offsets(const Lookups &in, u32 blocks, Report *report) {
    u64 last = (u64)in.tables * in.bags;
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        if (in.offsets[0] != 0) report_first(&report->first_fall, 0);
        if ((u64)in.offsets[last] != in.total) report_first(&report->first_fall, (u32)last);
    }
    for (u64 at = (u64)blockIdx.x * THREADS + threadIdx.x; at < last; at += (u64)blocks * THREADS) {
        u64 next = (u64)in.offsets[at + 1];
        if (next < (u64)in.offsets[at] || next > in.total) report_first(&report->first_fall, (u32)at + 1);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) count_indices(
    Lookups in, u32 *histograms, Plan *plans, u32 *windows, u32 all_windows, Report *report) {
    __shared__ u32 counts[RADIX];
    check_offsets(in, gridDim.x, report);
    Tile tile = find_tile(in, blockIdx.x);
    if (tile.table == NOTHING) return;
    write_plan(in, tile, plans, windows, all_windows);
    u32 rows = in.rows[tile.table];
    u32 key[ITEMS];
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++) {
        u32 place = i * THREADS + threadIdx.x;
        key[i] = place < tile.count ? read_row(in, tile.plan.begin + tile.first + place, rows, report) : 0;
    }
    count_tile(key, 0, tile.count, counts, histograms + (u64)blockIdx.x * RADIX);
}

extern "C" __global__ void __launch_bounds__(THREADS) count_pairs(
    Lookups in, const u64 *pairs, u32 shift, u32 *histograms) {
    __shared__ u32 counts[RADIX];
    Tile tile = find_tile(in, blockIdx.x);
    if (tile.table == NOTHING) return;
    u32 key[ITEMS];
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++) {
        u32 place = i * THREADS + threadIdx.x;
        key[i] = place < tile.count ? key_of(pairs[tile.plan.base + tile.first + place]) : 0;
    }
    count_tile(key, shift, tile.count, counts, histograms + (u64)blockIdx.x * RADIX);
}

// Counts of tiles become counts of earlier tiles of the table; `totals` [T, RADIX] the sums over its tiles.
extern "C" __global__ void __launch_bounds__(1024) scan(const Plan *plans, u32 *histograms, u32 *totals) {
    __shared__ u32 sums[32][33];
    Plan plan = plans[blockIdx.y];
    u32 digit = blockIdx.x * 32 + lane_id();
    u32 share = (plan.tiles + 31) / 32;
    u32 first = warp_id() * share, last = first + share;
    if (last > plan.tiles) last = plan.tiles;
    u32 *column = histograms + (u64)plan.first_tile * RADIX + digit;
    u32 sum = 0;
    for (u32 tile = first; tile < last; tile++) sum += column[(u64)tile * RADIX];
    sums[warp_id()][lane_id()] = sum;
    __syncthreads();
    u32 before = 0;
    for (u32 warp = 0; warp < warp_id(); warp++) before += sums[warp][lane_id()];
    if (warp_id() == 31) totals[blockIdx.y * RADIX + digit] = before + sum;
    for (u32 tile = first; tile < last; tile++) {
        u32 count = column[(u64)tile * RADIX];
        column[(u64)tile * RADIX] = before;
        before += count;
    }
}

// Writes a tile's pairs, sorted by a digit through shared memory, to their places in the sorted table.
__device__ __forceinline__ void scatter_tile(
    const Tile &tile, const u32 key[ITEMS], const u32 payload[ITEMS], u32 shift, const u32 *histograms,
    const u32 *totals, u64 *room, u64 *out) {
    __shared__ u32 starts[RADIX];
    __shared__ u32 base[RADIX];
    u32 rank[ITEMS];
    rank_tile(key, shift, (u16 *)room, rank, starts, totals + tile.table * RADIX,
              histograms + (u64)blockIdx.x * RADIX, base, tile.plan.base);
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++) room[rank[i]] = (u64)key[i] << 32 | payload[i];
    __syncthreads();
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++) {
        u32 at = i * THREADS + threadIdx.x;
        if (at < tile.count) {
            u64 pair = room[at];
            out[base[key_of(pair) >> shift & (RADIX - 1)] + at] = pair;
        }
    }
}

// Reads this thread's lookups of a tile, in the order that ranks count in; the last digit beyond the tile's end.
__device__ __forceinline__ void read_lookups(
    const Lookups &in, const Tile &tile, u32 *marks, u32 *bag_of, Report *report, u32 key[ITEMS], u32 payload[ITEMS]) {
    u32 rows = in.rows[tile.table];
    u32 start = warp_id() * WARP_ITEMS;
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++) {
        u32 place = start + i * 32 + lane_id();
        key[i] = 0xffffffffu;
        if (place < tile.count) {
            u64 at = tile.plan.begin + tile.first + place;
            key[i] = read_row(in, at, rows, report);
        }
    }
    if (!POSITIONS || bag_of != nullptr) {
        u32 end = tile.count < start + WARP_ITEMS ? tile.count : start + WARP_ITEMS;
        find_bags(in, tile.plan, tile.table, tile.first + start, tile.first + end, marks + start, payload);
    }
    if (POSITIONS) {
        for (u32 i = 0; i < ITEMS; i++) {
            u32 place = start + i * 32 + lane_id();
            if (bag_of != nullptr && place < tile.count) {
                bag_of[tile.plan.begin + tile.first + place] = payload[i];
            }
            payload[i] = tile.first + place;
        }
    }
    __syncthreads();
}

extern __shared__ u64 room[];

extern "C" __global__ void __launch_bounds__(THREADS, SCATTER_BLOCKS) scatter_indices(
    Lookups in, const u32 *histograms, const u32 *totals, u64 *out, u32 *bag_of) {
    Tile tile = find_tile(in, blockIdx.x);
    if (tile.table == NOTHING) return;
    u32 key[ITEMS], payload[ITEMS];
    read_lookups(in, tile, (u32 *)room, bag_of, nullptr, key, payload);
    scatter_tile(tile, key, payload, 0, histograms, totals, room, out);
}

extern "C" __global__ void __launch_bounds__(THREADS, SCATTER_BLOCKS) scatter_pairs(
    Lookups in, const u64 *pairs, u32 shift, const u32 *histograms, const u32 *totals, u64 *out) {
    Tile tile = find_tile(in, blockIdx.x);
    if (tile.table == NOTHING) return;
    u32 key[ITEMS], payload[ITEMS];
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++) {
        u32 place = warp_id() * WARP_ITEMS + i * 32 + lane_id();
        u64 pair = place < tile.count ? pairs[tile.plan.base + tile.first + place] : ~0ull;
        key[i] = key_of(pair);
        payload[i] = payload_of(pair);
    }
    scatter_tile(tile, key, payload, shift, histograms, totals, room, out);
}

extern "C" __global__ void __launch_bounds__(THREADS) sort_tables(
    Lookups in, u64 *out, u32 *bag_of, Plan *plans, u32 *windows, u32 all_windows, Report *report) {
    __shared__ u32 starts[RADIX];
    check_offsets(in, gridDim.x, report);
    u32 table = blockIdx.x;
    u64 begin = begin_of(in, table);
    u32 count = count_of(begin, begin_of(in, table + 1));
    if (count > TILE) {
        if (threadIdx.x == 0) report_first(&report->first_long, table);
        count = TILE;
    }
    Tile tile = {table, 0, count, Plan{begin, base_of(begin, table), count, table, 1}};
    write_plan(in, tile, plans, windows, all_windows);
    u32 key[ITEMS], payload[ITEMS], rank[ITEMS];
    read_lookups(in, tile, (u32 *)room, bag_of, report, key, payload);
    u32 rows = in.rows[table];
    u32 bits = 32 - __clz(rows); // of 0 ..= E
    for (u32 shift = 0; shift < bits; shift += BITS) {
        rank_tile(key, shift, (u16 *)room, rank, starts, nullptr, nullptr, nullptr, 0);
#pragma unroll
        for (u32 i = 0; i < ITEMS; i++) room[rank[i]] = (u64)key[i] << 32 | payload[i];
        __syncthreads();
#pragma unroll
        for (u32 i = 0; i < ITEMS; i++) {
            u64 pair = room[warp_id() * WARP_ITEMS + i * 32 + lane_id()];
            key[i] = key_of(pair);
            payload[i] = payload_of(pair);
        }
        __syncthreads();
    }
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++) {
        u32 place = warp_id() * WARP_ITEMS + i * 32 + lane_id();
        if (place < count) out[tile.plan.base + place] = (u64)key[i] << 32 | payload[i];
    }
}

// 1 / L of each bag of each table, [T, B]: a thread a bag. With `ignore`, lookups of rows that are not there do not
// count, and lanes whose bags are short wait for the longest.
extern "C" __global__ void __launch_bounds__(128) bag_means(Lookups in, u32 ignore, float *means) {
    u64 at = (u64)blockIdx.x * 128 + threadIdx.x;
    if (at >= (u64)in.tables * in.bags) return;
    u64 begin = (u64)in.offsets[at], end = (u64)in.offsets[at + 1];
    if (end > in.total) end = in.total;
    u32 count = count_of(begin, end);
    if (ignore) {
        u32 rows = in.rows[at / in.bags];
        count = 0;
        for (u64 lookup = begin; lookup < end; lookup++) {
            if ((u64)(long long)in.indices[lookup] < rows) count++;
        }
    }
    means[at] = __fdiv_rn(1.0f, (float)count);
}
