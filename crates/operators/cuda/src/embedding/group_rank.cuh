// The places of lookups in the order of a digit, within a block.
//
// Ranks come from counters that each warp has for itself and steps through in order, so that nothing depends on the
// order in which threads run. Shared-memory atomics only count and set bits.
//
// Comes after group_tiles.cuh.

// The sum over this thread of a block of T and those before it.
template <u32 T>
__device__ __forceinline__ u64 scan_block(u64 value) {
    __shared__ u64 sums[T / 32];
    u64 upto = scan_warp64(value);
    __syncthreads();
    if (lane_id() == 31) sums[warp_id()] = upto;
    __syncthreads();
    for (u32 warp = 0; warp < warp_id(); warp++) upto += sums[warp];
    return upto;
}

// Ranks the lookups of a block of T threads, N a thread, by a digit of R values. `place[i]` is the digit of lookup i, and on return its place
// in the order of digits. `counters` is room, for each warp, for R counts of 16 bits and as many masks of 32. `starts[d]` becomes the
// first place of digit d. With `totals` and `prefix` (of this tile), `base[d]` is what to add to a place of digit d for its
// place in the sorted table.
template <u32 N, u32 R, u32 T = THREADS>
__device__ __forceinline__ void rank_tile(
    u32 place[N], u16 *counters, u32 *starts, const u32 *totals = nullptr, const u32 *prefix = nullptr,
    u32 *base = nullptr, u32 table_base = 0) {
    const u32 pairs = R / 2 > T ? R / 2 / T : 1; // of neighbouring digits that a thread scans
    u32 *words = (u32 *)counters;
    for (u32 at = threadIdx.x; at < T / 32 * R * 3 / 2; at += T) words[at] = 0;
    __syncthreads();
    u16 *own = counters + warp_id() * R;
    u32 *masks = words + T / 32 * R / 2 + warp_id() * R;
    u32 below = (1u << lane_id()) - 1;
#pragma unroll
    for (u32 i = 0; i < N; i++) {
        // The lanes with the same digit leave their bits in its mask; the lowest of them counts them all. Those with
        // the digit of the first lane vote instead: where most lanes have the same, they would write one mask in turn.
        u32 digit = place[i];
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
        place[i] = digit | (before + lower) << 16;
        asm volatile("" : "+r"(place[i])); // the digit is not kept beside
    }
    __syncthreads();
    // Each word holds two digits: counts of warps become counts of earlier warps, with the sum over all in `sums`.
    u32 sums[pairs];
    u64 here = 0; // in the tile below, in the table above
    u32 in_table[2 * pairs];
#pragma unroll
    for (u32 w = 0; w < pairs; w++) {
        u32 word = threadIdx.x * pairs + w;
        u32 sum = 0;
        in_table[2 * w] = in_table[2 * w + 1] = 0;
        if (word < R / 2) {
            if (totals != nullptr) {
                in_table[2 * w] = totals[2 * word];
                in_table[2 * w + 1] = totals[2 * word + 1];
            }
#pragma unroll
            for (u32 warp = 0; warp < T / 32; warp++) {
                u32 count = words[warp * (R / 2) + word];
                words[warp * (R / 2) + word] = sum;
                sum += count;
            }
        }
        sums[w] = sum;
        here += (u64)(in_table[2 * w] + in_table[2 * w + 1]) << 32 | ((sum & 0xffff) + (sum >> 16));
    }
    u64 before = scan_block<T>(here) - here;
#pragma unroll
    for (u32 w = 0; w < pairs; w++) {
        u32 word = threadIdx.x * pairs + w;
        if (word >= R / 2) break;
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
    for (u32 i = 0; i < N; i++) {
        u32 digit = place[i] & 0xffff;
        place[i] = (place[i] >> 16) + starts[digit] + own[digit];
    }
    __syncthreads();
}

