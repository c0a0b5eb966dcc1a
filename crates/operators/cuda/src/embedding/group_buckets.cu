// Lookups of all tables grouped by row: cut into buckets of about as many lookups, which are then sorted one by one.
//
//   partition     one block a tile of TILE lookups of one table; THREADS threads, ITEMS lookups a thread; grid
//                 N / TILE + T. The tile's lookups leave it in the order of their buckets.
//   sort_buckets  one block a bucket of a table, SORTERS threads; grid (BUCKETS, T). The runs of the bucket, one of each
//                 tile, are sorted in shared memory. A bucket of more than FITS lookups goes through memory.
//
// Where to cut is told by the batch before: `splitters` [T, BUCKETS] holds the least value of each bucket. The cuts say only
// how much work each block has, not how lookups are sorted: the same bits come out whatever they are. A value is a lookup's
// row and as many upper bits of its payload as fit 32 bits, so that a row of many lookups is cut too. Every lane has a
// lookup but in the last tile of a table and beyond the end of a bucket.
//
// Macros, beside those of group_read.cuh: SORTERS (threads, and most tiles of a table), BUCKETS (of a table), KEY_BITS (of a
// row), KEPT_BITS (of a payload in a value), CUT_BITS (of a payload that are not), RUN_LANES (that copy a run).
//
// Comes after grouped.cuh, group_tiles.cuh, group_rank.cuh, group_read.cuh and group_bucket.cuh.

extern "C" __global__ void __launch_bounds__(THREADS, (ITEMS > 8 ? 1024 : 1536) / THREADS) partition(
    Lookups in, const u32 *splitters, u32 *used, u64 *out, u16 *starts_of, u32 *bag_of, Plan *plans, u32 *windows,
    u32 all_windows, Report *report) {
    __shared__ u32 starts[RADIX];
    __shared__ u32 cuts[RADIX];
    check_offsets(in, gridDim.x, report);
    const Tile &tile = find_tile(in, blockIdx.x);
    if (tile.table == NOTHING) return;
    if (tile.plan.tiles > SORTERS && threadIdx.x == 0) report_first(&report->first_long, tile.table);
    write_plan(in, tile, plans, windows, all_windows);
    for (u32 bucket = threadIdx.x; bucket < RADIX; bucket += THREADS) {
        u32 at = tile.table * BUCKETS + bucket;
        if (tile.first == 0 && bucket < BUCKETS) used[at] = splitters[at];
        cuts[bucket] = bucket + 1 < BUCKETS ? splitters[at + 1] : 0xffffffffu;
    }
    u32 key[ITEMS], payload[ITEMS], place[ITEMS];
    read_lookups(in, tile, (u32 *)room, bag_of, report, key, payload);
    u32 first = warp_id() * WARP_ITEMS + lane_id();
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++) {
        u32 value = value_of(key[i], payload[i]), bucket = 0;
#pragma unroll
        for (u32 step = RADIX / 2; step > 0; step /= 2) bucket += cuts[bucket + step - 1] <= value ? step : 0;
        if (bucket >= BUCKETS) bucket = BUCKETS - 1;
        place[i] = first + i * 32 < tile.count ? bucket : RADIX - 1;
    }
    rank_tile<ITEMS, RADIX>(place, (u16 *)room, starts);
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++) room[place[i]] = (u64)key[i] << 32 | payload[i];
    __syncthreads();
    u64 *to = out + tile.plan.base + tile.first;
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++) {
        u32 at = i * THREADS + threadIdx.x;
        if (at < tile.count) to[at] = room[at];
    }
    u16 *own = starts_of + (u64)blockIdx.x * (BUCKETS + 1);
    for (u32 bucket = threadIdx.x; bucket <= BUCKETS; bucket += THREADS) own[bucket] = (u16)starts[bucket];
}

extern "C" __global__ void __launch_bounds__(SORTERS, 3) sort_buckets(
    const Plan *plans, const u32 *rows, const u32 *used, u32 *splitters, u64 *tiles, const u16 *starts_of, u64 *out,
    const Report *report) {
    __shared__ u32 ends[SORTERS];
    __shared__ u32 moved[SORTERS];
    __shared__ __align__(16) u32 slots[SLOTS + 4]; // or the counters of digits
    __shared__ u32 starts[BUCKET_RADIX];
    __shared__ u16 order[FITS]; // of the lookups in `room`
    __shared__ u64 all;         // where the bucket begins in the sorted table, and how many lookups it has
    // Where offsets fall, payloads do too, and so would the next cuts; no table changes then.
    if (report->first_fall != 0 || report->first_long != 0) return;
    Plan plan = plans[blockIdx.y];
    if (plan.count == 0) return;
    if (threadIdx.x < (plan.tiles + 31) / 32 * 32 || plan.tiles > 32) {
        u32 begin = 0, count = 0;
        if (threadIdx.x < plan.tiles) {
            const u16 *own = starts_of + (u64)(plan.first_tile + threadIdx.x) * (BUCKETS + 1) + blockIdx.x;
            begin = own[0];
            count = own[1] - begin;
        }
        u64 one = (u64)begin << 32 | count;
        u64 upto = plan.tiles > 32 ? scan_block<SORTERS>(one) : scan_warp64(one);
        ends[threadIdx.x] = (u32)upto;
        moved[threadIdx.x] = plan.base + threadIdx.x * TILE + begin - ((u32)upto - count);
        if (threadIdx.x + 1 == plan.tiles) all = upto;
    }
    __syncthreads();
    u32 first = (u32)(all >> 32), count = (u32)all;
    if (count == 0) return;
    u32 at = blockIdx.y * BUCKETS + blockIdx.x;
    bool last = blockIdx.x + 1 == BUCKETS;
    u32 least = used[at], most = last ? value_of(rows[blockIdx.y] + 1, 0) - 1 : used[at + 1] - 1;
    u32 low = least >> KEPT_BITS, high = last ? rows[blockIdx.y] : used[at + 1] >> KEPT_BITS;
    u32 bits = high > low ? 32 - __clz(high - low) : 0;
    Bucket bucket = {count, least, most, low, bits, out + (plan.base + first), tiles, ends, moved};
    Bucket copy = bucket; // for functions that are called, so that the bucket itself stays in registers
    if (count > FITS) {
        sort_long(copy, plan.tiles, (u16 *)slots, starts);
    } else {
        gather_bucket(bucket, plan.tiles);
        if (bits == 0 || !sort_slots(bucket, slots, order)) sort_digits(copy, (u16 *)slots, starts, order);
    }
    __syncthreads();
    // The cuts of the next batch: this one's lookups, evenly apart.
    for (u32 next = threadIdx.x; next < BUCKETS; next += SORTERS) {
        u32 place = (u32)((u64)next * plan.count / BUCKETS);
        if (next == 0 || place < first || place - first >= count) continue;
        u64 pair = __ldcg(bucket.sorted + (place - first));
        splitters[blockIdx.y * BUCKETS + next] = value_of(key_of(pair), payload_of(pair));
    }
}
