// A bucket of a table's lookups, and the ways to sort it: by slots, by digits in shared memory, by digits through memory.
//
// Comes after group_rank.cuh and group_read.cuh, with the macros of group_buckets.cu.

#define BUCKET_ITEMS 8
#define FITS (SORTERS * BUCKET_ITEMS)
#define BUCKET_BITS 7
#define BUCKET_RADIX (1u << BUCKET_BITS)
#define SLOT_BITS 12
#define SLOTS (1u << SLOT_BITS)
// Of lookups with others of their slot, beyond which digits are faster.
#define MOST_COMPARISONS (6 * FITS)

// A lookup's row and the upper bits of its payload, by which tables are cut.
__device__ __forceinline__ u32 value_of(u32 key, u32 payload) {
    return KEPT_BITS == 0 ? key : key << KEPT_BITS | payload >> CUT_BITS;
}

// The sum over this thread of SORTERS and those before it.
__device__ __forceinline__ u32 scan_block32(u32 value) {
    __shared__ u32 sums[SORTERS / 32];
    u32 upto = scan_warp(value);
    if (lane_id() == 31) sums[warp_id()] = upto;
    __syncthreads();
    if (warp_id() == 0) {
        u32 all = lane_id() < SORTERS / 32 ? sums[lane_id()] : 0;
        all = scan_warp(all) - all;
        if (lane_id() < SORTERS / 32) sums[lane_id()] = all;
    }
    __syncthreads();
    return upto + sums[warp_id()];
}

// A bucket: which places of the sorted order are its own, and where its lookups lie before.
struct Bucket {
    u32 count;
    u32 least, most; // of its values
    u32 low;         // its least row
    u32 bits;        // that tell its rows apart
    u64 *sorted;
    u64 *tiles;
    const u32 *ends;  // of each tile's run, among the bucket's lookups
    const u32 *moved; // what to add to a lookup's number for its place among `tiles`
};

__device__ __forceinline__ u32 digit_of(const Bucket &bucket, u32 key, u32 shift, u32 bits) {
    return (key - bucket.low) >> shift & ((1u << bits) - 1);
}

// Bits of each of so many digits.
__device__ __forceinline__ u32 digit_bits(const Bucket &bucket, u32 digits) { return (bucket.bits + digits - 1) / digits; }

// Brings a bucket that fits to shared memory, in the order of tiles.
__device__ __forceinline__ void gather_bucket(const Bucket &bucket, u32 tiles) {
    u32 lane = threadIdx.x % RUN_LANES;
    for (u32 tile = threadIdx.x / RUN_LANES; tile < tiles; tile += SORTERS / RUN_LANES) {
        u32 begin = tile == 0 ? 0 : bucket.ends[tile - 1], end = bucket.ends[tile], moved = bucket.moved[tile];
        const u32 ahead = 4;
        for (u32 at = begin + lane; at < end; at += ahead * RUN_LANES) {
            u64 pair[ahead];
#pragma unroll
            for (u32 i = 0; i < ahead; i++) {
                u32 one = at + i * RUN_LANES;
                pair[i] = __ldcg(bucket.tiles + ((one < end ? one : at) + moved));
            }
#pragma unroll
            for (u32 i = 0; i < ahead; i++) {
                if (at + i * RUN_LANES < end) room[at + i * RUN_LANES] = pair[i];
            }
        }
    }
    __syncthreads();
}

// Writes a bucket in shared memory in order, by slots of equal parts of its values; returns false where that would take too
// many comparisons, and nothing is done. Lookups come to a slot in any order, and each finds its place there by
// comparing itself with all: that is the same order whatever the first was, since a lookup of a row with a larger payload
// comes later, and equal ones are the same.
__device__ __forceinline__ bool sort_slots(const Bucket &bucket, u32 *slots, u16 *order) {
    __shared__ u32 comparisons;
    const u32 own = SLOTS / SORTERS / 4;
    u32 bits = 32 - __clz(bucket.most - bucket.least), shift = bits > SLOT_BITS ? bits - SLOT_BITS : 0;
    auto slot_of = [&](u64 pair) {
        return (value_of(key_of(pair), payload_of(pair)) - bucket.least) >> shift & (SLOTS - 1);
    };
    uint4 *four = (uint4 *)slots + threadIdx.x * own;
#pragma unroll
    for (u32 i = 0; i < own; i++) four[i] = make_uint4(0, 0, 0, 0);
    if (threadIdx.x == 0) comparisons = 0;
    __syncthreads();
    u32 place[BUCKET_ITEMS]; // slot, and number among the slot's
#pragma unroll
    for (u32 i = 0; i < BUCKET_ITEMS; i++) {
        u32 at = i * SORTERS + threadIdx.x;
        if (at < bucket.count) {
            u32 slot = slot_of(room[at]);
            place[i] = slot << 16 | atomicAdd(&slots[slot], 1u);
        }
    }
    __syncthreads();
    uint4 counts[own];
    u32 sum = 0, squares = 0;
#pragma unroll
    for (u32 i = 0; i < own; i++) {
        uint4 c = counts[i] = four[i];
        sum += c.x + c.y + c.z + c.w;
        squares += c.x * c.x + c.y * c.y + c.z * c.z + c.w * c.w;
    }
    squares = __reduce_add_sync(0xffffffffu, squares);
    if (lane_id() == 0) atomicAdd(&comparisons, squares);
    u32 before = scan_block32(sum) - sum;
    if (comparisons > MOST_COMPARISONS) return false;
#pragma unroll
    for (u32 i = 0; i < own; i++) {
        uint4 start = {before, before + counts[i].x, before + counts[i].x + counts[i].y, 0};
        start.w = start.z + counts[i].z;
        before = start.w + counts[i].w;
        four[i] = start;
    }
    if (threadIdx.x == SORTERS - 1) slots[SLOTS] = before;
    __syncthreads();
#pragma unroll
    for (u32 i = 0; i < BUCKET_ITEMS; i++) {
        u32 at = i * SORTERS + threadIdx.x;
        if (at < bucket.count) order[slots[place[i] >> 16] + (place[i] & 0xffff)] = (u16)at;
    }
    __syncthreads();
    for (u32 at = threadIdx.x; at < bucket.count; at += SORTERS) {
        u64 mine = room[order[at]];
        u32 slot = slot_of(mine);
        u32 first = slots[slot], end = slots[slot + 1], rank = 0;
        if (end - first > 1) {
            for (u32 other = first; other < end; other++) {
                u64 one = room[order[other]];
                rank += one < mine || (one == mine && other < at);
            }
        }
        bucket.sorted[first + rank] = mine;
    }
    return true;
}

// Writes a bucket in shared memory in order, digit by digit.
__device__ __noinline__ void sort_digits(const Bucket &bucket, u16 *counters, u32 *starts, u16 *order) {
    u32 digits = (bucket.bits + BUCKET_BITS - 1) / BUCKET_BITS;
    u32 bits = digits == 0 ? 0 : digit_bits(bucket, digits), first = warp_id() * 32 * BUCKET_ITEMS + lane_id();
    for (u32 digit = 0; digit < digits; digit++) {
        u32 lookup[BUCKET_ITEMS], place[BUCKET_ITEMS];
#pragma unroll
        for (u32 i = 0; i < BUCKET_ITEMS; i++) {
            u32 at = first + i * 32;
            lookup[i] = digit == 0 ? at : order[at];
            u32 value = digit_of(bucket, key_of(room[lookup[i]]), digit * bits, bits);
            place[i] = at < bucket.count ? value : BUCKET_RADIX - 1;
        }
        rank_tile<BUCKET_ITEMS, BUCKET_RADIX, SORTERS>(place, counters, starts);
#pragma unroll
        for (u32 i = 0; i < BUCKET_ITEMS; i++) order[place[i]] = (u16)lookup[i];
        __syncthreads();
    }
    for (u32 at = threadIdx.x; at < bucket.count; at += SORTERS) bucket.sorted[at] = room[digits == 0 ? at : order[at]];
}

// Where lookup `at` of a bucket lies among the tiles.
__device__ __forceinline__ u64 *in_tiles(const Bucket &bucket, u32 tiles, u32 at) {
    u32 low = 0, high = tiles - 1;
    while (low < high) {
        u32 middle = (low + high) / 2;
        if (bucket.ends[middle] > at) high = middle;
        else low = middle + 1;
    }
    return bucket.tiles + (at + bucket.moved[low]);
}

// Sorts a bucket of any size by an odd number of digits, from the tiles to where it shall be and back.
__device__ __noinline__ void sort_long(const Bucket &bucket, u32 tiles, u16 *counters, u32 *starts) {
    __shared__ u32 base[BUCKET_RADIX];
    u32 digits = (bucket.bits + BUCKET_BITS - 1) / BUCKET_BITS | 1, bits = digit_bits(bucket, digits);
    for (u32 digit = 0; digit < digits; digit++) {
        u32 shift = digit * bits;
        auto from = [&](u32 at) { return digit % 2 == 0 ? in_tiles(bucket, tiles, at) : bucket.sorted + at; };
        auto to = [&](u32 at) { return digit % 2 == 0 ? bucket.sorted + at : in_tiles(bucket, tiles, at); };
        if (threadIdx.x < BUCKET_RADIX) base[threadIdx.x] = 0;
        __syncthreads();
        for (u32 at = threadIdx.x; at < bucket.count; at += SORTERS) {
            atomicAdd(&base[digit_of(bucket, key_of(__ldcg(from(at))), shift, bits)], 1u);
        }
        __syncthreads();
        u32 count = threadIdx.x < BUCKET_RADIX ? base[threadIdx.x] : 0;
        u32 before = (u32)scan_block<SORTERS>(count) - count;
        if (threadIdx.x < BUCKET_RADIX) base[threadIdx.x] = before;
        __syncthreads();
        for (u32 begin = 0; begin < bucket.count; begin += FITS) {
            u32 here = bucket.count - begin < FITS ? bucket.count - begin : FITS;
            u64 pair[BUCKET_ITEMS];
            u32 place[BUCKET_ITEMS];
#pragma unroll
            for (u32 i = 0; i < BUCKET_ITEMS; i++) {
                u32 at = warp_id() * 32 * BUCKET_ITEMS + i * 32 + lane_id();
                pair[i] = at < here ? __ldcg(from(begin + at)) : 0;
                place[i] = at < here ? digit_of(bucket, key_of(pair[i]), shift, bits) : BUCKET_RADIX - 1;
            }
            rank_tile<BUCKET_ITEMS, BUCKET_RADIX, SORTERS>(place, counters, starts);
#pragma unroll
            for (u32 i = 0; i < BUCKET_ITEMS; i++) room[place[i]] = pair[i];
            __syncthreads();
            for (u32 at = threadIdx.x; at < here; at += SORTERS) {
                u64 one = room[at];
                u32 value = digit_of(bucket, key_of(one), shift, bits);
                __stcg(to(base[value] + at - starts[value]), one);
            }
            __syncthreads();
            if (threadIdx.x < BUCKET_RADIX) {
                u32 end = threadIdx.x + 1 < BUCKET_RADIX ? starts[threadIdx.x + 1] : here;
                base[threadIdx.x] += (end < here ? end : here) - starts[threadIdx.x];
            }
            __syncthreads();
        }
    }
}
