// The bag of each lookup, and the number of lookups of each bag, from the offsets of one table's bags.
//
//   fill_bags   256 threads, a lookup each, ITEMS times: lookups are cut into tiles of 256 x ITEMS. Two threads find the
//               bags of a tile's first and last lookup among all offsets, and each thread those of its lookups between
//               these. Bags of any length cost the same.
//   fill_sizes  256 threads, a bag each.
//
// Whatever offsets hold, only what is there is read and written.
//
// Macros: ITEMS.

typedef unsigned int u32;
typedef unsigned long long u64;

// The last bag from `low` on, before `high`, that begins at or before a lookup; `low` where there is none.
__device__ __forceinline__ u64 bag_of(const long long *offsets, u64 lookup, u64 low, u64 high) {
    while (high - low > 1) {
        u64 middle = low + (high - low) / 2;
        if (offsets[middle] <= (long long)lookup) low = middle;
        else high = middle;
    }
    return low;
}

extern "C" __global__ void __launch_bounds__(256) fill_bags(
    const long long *__restrict__ offsets, u64 bags, u64 lookups, long long *bag) {
    __shared__ u64 ends[2];
    u64 first = (u64)blockIdx.x * (256 * ITEMS);
    u64 last = first + 256 * ITEMS < lookups ? first + 256 * ITEMS - 1 : lookups - 1;
    if (threadIdx.x < 2) ends[threadIdx.x] = bag_of(offsets, threadIdx.x == 0 ? first : last, 0, bags);
    __syncthreads();
    u64 low = ends[0], high = ends[1] + 1;
    // Offsets that decrease.
    if (high <= low) high = low + 1;
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++) {
        u64 at = first + i * 256 + threadIdx.x;
        if (at < lookups) bag[at] = (long long)bag_of(offsets, at, low, high);
    }
}

extern "C" __global__ void __launch_bounds__(256) fill_sizes(
    const long long *__restrict__ offsets, u64 bags, u64 lookups, long long *sizes) {
    u64 at = (u64)blockIdx.x * 256 + threadIdx.x;
    if (at >= bags) return;
    u64 end = at + 1 < bags ? (u64)offsets[at + 1] : lookups;
    sizes[at] = (long long)(end - (u64)offsets[at]);
}
