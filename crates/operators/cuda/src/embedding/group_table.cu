// Lookups grouped by row, a block a table that fits one tile: all digits in shared memory.
//
// Comes after grouped.cuh, group_tiles.cuh, group_rank.cuh and group_read.cuh.

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
    u32 key[ITEMS], payload[ITEMS], place[ITEMS];
    read_lookups(in, tile, (u32 *)room, bag_of, report, key, payload);
    u32 rows = in.rows[table];
    u32 bits = 32 - __clz(rows); // of 0 ..= E
    for (u32 shift = 0; shift < bits; shift += BITS) {
#pragma unroll
        for (u32 i = 0; i < ITEMS; i++) place[i] = key[i] >> shift & (RADIX - 1);
        rank_tile<ITEMS, RADIX>(place, (u16 *)room, starts);
#pragma unroll
        for (u32 i = 0; i < ITEMS; i++) room[place[i]] = (u64)key[i] << 32 | payload[i];
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
        u32 at = warp_id() * WARP_ITEMS + i * 32 + lane_id();
        if (at < count) out[tile.plan.base + at] = (u64)key[i] << 32 | payload[i];
    }
}
