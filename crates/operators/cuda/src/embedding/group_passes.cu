// Lookups of all tables grouped by row: a stable radix sort, least significant digit first, of all tables at once.
//
//   count_indices, scan, scatter_indices, then (count_pairs, scan, scatter_pairs) for each further digit
//     one block a tile of TILE lookups of one table; THREADS threads, ITEMS lookups a thread; grid N / TILE + T.
//     Every lane has a lookup but in the last tile of a table. `scan`: grid (RADIX / 32, T), 1024 threads, a lane a
//     digit and a warp a share of the tiles; warps without a tile (tables of fewer than 32) only take part in the sum.
//
// Comes after grouped.cuh, group_tiles.cuh, group_rank.cuh and group_read.cuh.

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

extern "C" __global__ void __launch_bounds__(THREADS) count_indices(
    Lookups in, u32 *histograms, Plan *plans, u32 *windows, u32 all_windows, Report *report) {
    __shared__ u32 counts[RADIX];
    check_offsets(in, gridDim.x, report);
    const Tile &tile = find_tile(in, blockIdx.x);
    if (tile.table == NOTHING) return;
    write_plan(in, tile, plans, windows, all_windows);
    u32 rows = in.rows[tile.table];
    u32 key[ITEMS];
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++) {
        u32 place = i * THREADS + threadIdx.x;
        key[i] = place < tile.count ? read_row(in, tile.plan.begin + tile.first + place, rows) : 0;
    }
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++) {
        u32 place = i * THREADS + threadIdx.x;
        if (place < tile.count) report_row(key[i], rows, tile.plan.begin + tile.first + place, report);
    }
    count_tile(key, 0, tile.count, counts, histograms + (u64)blockIdx.x * RADIX);
}

extern "C" __global__ void __launch_bounds__(THREADS) count_pairs(
    Lookups in, const u64 *pairs, u32 shift, u32 *histograms) {
    __shared__ u32 counts[RADIX];
    const Tile &tile = find_tile(in, blockIdx.x);
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
    u32 place[ITEMS];
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++) place[i] = key[i] >> shift & (RADIX - 1);
    rank_tile<ITEMS, RADIX>(place, (u16 *)room, starts, totals + tile.table * RADIX,
                            histograms + (u64)blockIdx.x * RADIX, base, tile.plan.base);
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++) room[place[i]] = (u64)key[i] << 32 | payload[i];
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

extern "C" __global__ void __launch_bounds__(THREADS, 2) scatter_indices(
    Lookups in, const u32 *histograms, const u32 *totals, u64 *out, u32 *bag_of) {
    const Tile &tile = find_tile(in, blockIdx.x);
    if (tile.table == NOTHING) return;
    u32 key[ITEMS], payload[ITEMS];
    read_lookups(in, tile, (u32 *)room, bag_of, nullptr, key, payload);
    scatter_tile(tile, key, payload, 0, histograms, totals, room, out);
}

extern "C" __global__ void __launch_bounds__(THREADS, 2) scatter_pairs(
    Lookups in, const u64 *pairs, u32 shift, const u32 *histograms, const u32 *totals, u64 *out) {
    const Tile &tile = find_tile(in, blockIdx.x);
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
