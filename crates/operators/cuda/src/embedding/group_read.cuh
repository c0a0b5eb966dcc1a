// What the ways to group lookups share: the check of offsets, the lookups of a tile, the means of bags.
//
// Macros: THREADS, ITEMS, BITS (of a digit), INDEX and OFFSET (the types of both), POSITIONS (1: the payload is the
// position, and bag_of is filled where given; 0: the payload is the bag).
//
// Comes after grouped.cuh and group_tiles.cuh.

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
            key[i] = read_row(in, at, rows);
        }
    }
    if (report != nullptr) {
#pragma unroll
        for (u32 i = 0; i < ITEMS; i++) {
            u32 place = start + i * 32 + lane_id();
            if (place < tile.count) report_row(key[i], rows, tile.plan.begin + tile.first + place, report);
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
