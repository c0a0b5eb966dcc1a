// Tiles of lookups: which table and places a block has, which windows are whose, which row and bag a lookup has.
//
// Comes after grouped.cuh, with the macros of group_read.cuh.

#define RADIX (1u << BITS)
#define WARPS (THREADS / 32)
#define TILE (THREADS * ITEMS)
#define WARP_ITEMS (32 * ITEMS)

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
__device__ __forceinline__ const Tile &find_tile(const Lookups &in, u32 tile) {
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

// The row that a lookup names, E where it is not there.
__device__ __forceinline__ u32 read_row(const Lookups &in, u64 at, u32 rows) {
    u64 row = (u64)(long long)in.indices[at];
    return row < rows ? (u32)row : rows;
}

// Counts the lookup at a place where it is of a row that is not there. Loads do not wait for this: it comes after all.
__device__ __forceinline__ void report_row(u32 row, u32 rows, u64 at, Report *report) {
    if (row != rows) return;
    atomicAdd(&report->bad, 1u);
    report_first(&report->first_bad, (u32)at);
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

