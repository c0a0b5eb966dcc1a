// The places of a tile's lookups in the order of a digit.
//
// Comes after group_tiles.cuh.

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
        // The lanes with the same digit leave their bits in its mask; the lowest of them counts them all. Those with
        // the digit of the first lane vote instead: where most lanes have the same, they would write one mask in turn.
        u32 digit = key[i] >> shift & (RADIX - 1);
        bool voted = digit == __shfl_sync(0xffffffffu, digit, 0);
        u32 votes = __ballot_sync(0xffffffffu, voted);
        if (!voted) atomicOr(&masks[digit], 1u << lane_id());
        __syncwarp();
        u32 peers = voted ? votes : masks[digit];
        u32 before = own[digit];
        u32 lower = __popc(peers & below);
        __syncwarp();
        if (lower == 0) {
            own[digit] = (u16)(before + __popc(peers));
            if (!voted) masks[digit] = 0;
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

