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

#define RADIX (1u << BITS)
#define WARPS (THREADS / 32)
#define TILE (THREADS * ITEMS)
#define WARP_ITEMS (32 * ITEMS)
// Neighbouring digits that a thread scans, two to a word.
#define WORDS (RADIX / 2 > THREADS ? RADIX / 2 / THREADS : 1)

struct Lookups {
    const INDEX *indices;
    const OFFSET *offsets;
    const u32 *rows; // E of each table
    u64 total;       // N
    u32 bags;        // B
    u32 tables;      // T
};

struct Tile {
    u32 table;
    u32 first; // its first place within the table
    u32 count;
    Plan plan;
};

__device__ __forceinline__ u32 lane_id() { return threadIdx.x & 31; }
__device__ __forceinline__ u32 warp_id() { return threadIdx.x >> 5; }

__device__ __forceinline__ u32 scan_warp(u32 value) {
    for (u32 step = 1; step < 32; step *= 2) {
        u32 other = __shfl_up_sync(0xffffffffu, value, step);
        if (lane_id() >= step) value += other;
    }
    return value;
}

__device__ __forceinline__ u64 scan_warp64(u64 value) {
    for (u32 step = 1; step < 32; step *= 2) {
        u64 other = __shfl_up_sync(0xffffffffu, value, step);
        if (lane_id() >= step) value += other;
    }
    return value;
}

// Where a table begins among the indices; never beyond their end.
__device__ __forceinline__ u64 begin_of(const Lookups &in, u32 table) {
    u64 at = (u64)in.offsets[(u64)table * in.bags];
    return at < in.total ? at : in.total;
}

__device__ __forceinline__ u32 base_of(u64 begin, u32 table) {
    return (u32)((begin + WINDOW - 1) / WINDOW * WINDOW + (u64)table * WINDOW);
}

__device__ __forceinline__ u32 count_of(u64 begin, u64 end) { return end > begin ? (u32)(end - begin) : 0; }

// The tile of this block, found by its first warp; a table without lookups has one of none. Blocks beyond the last
// tile get table NOTHING.
__device__ __forceinline__ Tile find_tile(const Lookups &in, u32 tile) {
    __shared__ Tile found;
    if (threadIdx.x == 0) found.table = NOTHING;
    if (warp_id() == 0) {
        u32 before = 0;
        for (u32 first = 0; first < in.tables; first += 32) {
            u32 table = first + lane_id();
            u64 begin = 0;
            u32 count = 0, tiles = 0;
            if (table < in.tables) {
                begin = begin_of(in, table);
                count = count_of(begin, begin_of(in, table + 1));
                tiles = count > TILE ? (count + TILE - 1) / TILE : 1;
            }
            u32 end = before + scan_warp(tiles);
            u32 past = __ballot_sync(0xffffffffu, table < in.tables && end > tile);
            if (past != 0) {
                if (lane_id() == __ffs(past) - 1) {
                    u32 place = (tile - (end - tiles)) * TILE;
                    found.table = table;
                    found.first = place;
                    found.count = count - place < TILE ? count - place : TILE;
                    found.plan = Plan{begin, base_of(begin, table), count, end - tiles, tiles};
                }
                break;
            }
            before = __shfl_sync(0xffffffffu, end, 31);
        }
    }
    __syncthreads();
    return found;
}

// Says which table windows first .. last belong to; those up to `next` (the next table's first) to none.
__device__ __forceinline__ void mark_windows(u32 *windows, u32 table, u32 first, u32 last, u32 next) {
    for (u32 window = first + threadIdx.x; window < next; window += THREADS) {
        windows[window] = window < last ? table : NOTHING;
    }
}

// Writes the plan of this block's table and the windows of its tile.
__device__ __forceinline__ void write_plan(const Lookups &in, const Tile &tile, Plan *plans, u32 *windows, u32 all) {
    const Plan &plan = tile.plan;
    if (threadIdx.x == 0 && tile.first == 0) plans[tile.table] = plan;
    u32 first = (plan.base + tile.first) / WINDOW;
    u32 last = (plan.base + tile.first + tile.count + WINDOW - 1) / WINDOW;
    u32 next = last;
    if (tile.first + tile.count == plan.count) {
        bool final = tile.table + 1 == in.tables;
        next = final ? all : base_of(begin_of(in, tile.table + 1), tile.table + 1) / WINDOW;
    }
    mark_windows(windows, tile.table, first, last, next);
}

// The row that a lookup names, E where it is not there, which is counted where there is a report.
__device__ __forceinline__ u32 read_row(const Lookups &in, u64 at, u32 rows, Report *report) {
    u64 row = (u64)(long long)in.indices[at];
    if (row < rows) return (u32)row;
    if (report != nullptr) {
        atomicAdd(&report->bad, 1u);
        report_first(&report->first_bad, (u32)at);
    }
    return rows;
}

// The bags of the lookups that each lane of a warp holds: lookup i of a lane is place `first + 32 i + lane`. A bag is
// marked at its first lookup (or the first of these places), and every lookup takes the last mark before it.
__device__ __forceinline__ void find_bags(
    const Lookups &in, const Plan &plan, u32 table, u32 first, u32 end, u32 *marks, u32 bag[ITEMS]) {
    const OFFSET *offsets = in.offsets + (u64)table * in.bags;
    for (u32 i = 0; i < ITEMS; i++) marks[i * 32 + lane_id()] = NOTHING;
    if (first >= end) return;
    // The last bag that begins at `first` or before: 32 probes at a time.
    u64 target = plan.begin + first;
    u32 low = 0, size = in.bags;
    while (size > 1) {
        u32 step = (size + 31) / 32;
        u32 probe = low + lane_id() * step;
        bool before = lane_id() * step < size && (u64)offsets[probe] <= target;
        u32 votes = __ballot_sync(0xffffffffu, before);
        u32 last = votes == 0 ? 0 : 31 - __clz(votes);
        u32 left = size - last * step;
        low += last * step;
        size = left < step ? left : step;
    }
    __syncwarp();
    if (lane_id() == 0) marks[0] = low;
    __syncwarp();
    const u32 ahead = 4;
    u32 room = end - first;
    for (u32 from = low + 1; from < in.bags; from += 32 * ahead) {
        u32 at[ahead], next[ahead];
#pragma unroll
        for (u32 i = 0; i < ahead; i++) {
            u32 b = from + i * 32 + lane_id();
            at[i] = (u32)((u64)offsets[b < in.bags ? b : in.bags] - target);
            next[i] = (u32)((u64)offsets[b < in.bags ? b + 1 : in.bags] - target);
        }
#pragma unroll
        for (u32 i = 0; i < ahead; i++) {
            if (at[i] < room && next[i] > at[i]) marks[at[i]] = from + i * 32 + lane_id();
        }
        if (__ballot_sync(0xffffffffu, at[ahead - 1] < room) != 0xffffffffu) break;
    }
    __syncwarp();
    u32 open = low;
    u32 upto = 0xffffffffu >> (31 - lane_id());
    for (u32 i = 0; i < ITEMS; i++) {
        u32 mark = marks[i * 32 + lane_id()];
        u32 all = __ballot_sync(0xffffffffu, mark != NOTHING);
        u32 mine = all & upto;
        u32 got = __shfl_sync(0xffffffffu, mark, mine == 0 ? 0 : 31 - __clz(mine));
        bag[i] = mine == 0 ? open : got;
        u32 last = __shfl_sync(0xffffffffu, mark, all == 0 ? 0 : 31 - __clz(all));
        open = all == 0 ? open : last;
    }
}

// Ranks a tile's lookups by a digit. `counters` is room for WARPS x RADIX counts of 16 bits and as many masks of 32. On
// return, rank[i] is the place of lookup i in the sorted tile. With `totals` and `prefix` (of this tile), `base[d]` is what to add to a place of digit
// d for its place in the sorted table.
__device__ __forceinline__ void rank_tile(
    const u32 key[ITEMS], u32 shift, u16 *counters, u32 rank[ITEMS], u32 *starts, const u32 *totals, const u32 *prefix,
    u32 *base, u32 table_base) {
    __shared__ u64 warp_sums[WARPS];
    u32 *words = (u32 *)counters;
    for (u32 at = threadIdx.x; at < WARPS * RADIX * 3 / 2; at += THREADS) words[at] = 0;
    __syncthreads();
    u16 *own = counters + warp_id() * RADIX;
    u32 *masks = words + WARPS * RADIX / 2 + warp_id() * RADIX;
    u32 below = (1u << lane_id()) - 1;
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++) {
        // The lanes with the same digit leave their bits in its mask; the lowest of them counts them all.
        u32 digit = key[i] >> shift & (RADIX - 1);
        atomicOr(&masks[digit], 1u << lane_id());
        __syncwarp();
        u32 peers = masks[digit];
        u32 before = own[digit];
        u32 lower = __popc(peers & below);
        __syncwarp();
        if (lower == 0) {
            own[digit] = (u16)(before + __popc(peers));
            masks[digit] = 0;
        }
        __syncwarp();
        rank[i] = before + lower;
    }
    __syncthreads();
    // Each word holds two digits: counts of warps become counts of earlier warps, with the sum over all in `sums`.
    u32 sums[WORDS];
    u64 here = 0; // in the tile below, in the table above
    u32 in_table[2 * WORDS];
#pragma unroll
    for (u32 w = 0; w < WORDS; w++) {
        u32 word = threadIdx.x * WORDS + w;
        u32 sum = 0;
        in_table[2 * w] = in_table[2 * w + 1] = 0;
        if (word < RADIX / 2) {
            if (totals != nullptr) {
                in_table[2 * w] = totals[2 * word];
                in_table[2 * w + 1] = totals[2 * word + 1];
            }
#pragma unroll
            for (u32 warp = 0; warp < WARPS; warp++) {
                u32 count = words[warp * (RADIX / 2) + word];
                words[warp * (RADIX / 2) + word] = sum;
                sum += count;
            }
        }
        sums[w] = sum;
        here += (u64)(in_table[2 * w] + in_table[2 * w + 1]) << 32 | ((sum & 0xffff) + (sum >> 16));
    }
    u64 upto = scan_warp64(here);
    if (lane_id() == 31) warp_sums[warp_id()] = upto;
    __syncthreads();
    u64 before = upto - here;
    for (u32 warp = 0; warp < warp_id(); warp++) before += warp_sums[warp];
#pragma unroll
    for (u32 w = 0; w < WORDS; w++) {
        u32 word = threadIdx.x * WORDS + w;
        if (word >= RADIX / 2) break;
        u32 low = sums[w] & 0xffff, high = sums[w] >> 16;
        for (u32 half = 0; half < 2; half++) {
            u32 digit = 2 * word + half;
            u32 start = (u32)before;
            starts[digit] = start;
            if (totals != nullptr) base[digit] = table_base + (u32)(before >> 32) + prefix[digit] - start;
            before += (u64)in_table[2 * w + half] << 32 | (half == 0 ? low : high);
        }
    }
    __syncthreads();
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++) {
        u32 digit = key[i] >> shift & (RADIX - 1);
        rank[i] += starts[digit] + own[digit];
    }
    __syncthreads();
}

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
