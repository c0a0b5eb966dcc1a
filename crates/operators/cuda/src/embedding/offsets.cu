// Offsets of bags from their sizes: the sums of all sizes before each bag, and of all. One block.
//
// The block takes THREADS x ITEMS sizes at a time, ITEMS neighbours a thread. Sums of whole numbers are exact in any
// order; negative sizes give offsets that decrease, and nothing overflows but modulo 2^64.
//
// Macros: THREADS, ITEMS.

typedef unsigned int u32;
typedef unsigned long long u64;

#define ALL 0xffffffffu

// The sum of the values of all threads up to this one, of its warp.
__device__ __forceinline__ u64 sum_up_to(u64 value) {
#pragma unroll
    for (u32 reach = 1; reach < 32; reach *= 2) {
        u64 before = __shfl_up_sync(ALL, value, reach);
        if (threadIdx.x % 32 >= reach) value += before;
    }
    return value;
}

extern "C" __global__ void __launch_bounds__(THREADS) sum_sizes(
    const long long *__restrict__ sizes, u64 bags, long long *offsets) {
    __shared__ u64 warps[THREADS / 32];
    u32 warp = threadIdx.x / 32;
    u64 before = 0; // the sum of all sizes of the turns before
    for (u64 start = 0; start < bags; start += THREADS * ITEMS) {
        u64 first = start + threadIdx.x * ITEMS;
        u64 size[ITEMS], own = 0;
#pragma unroll
        for (u32 i = 0; i < ITEMS; i++) {
            size[i] = first + i < bags ? (u64)sizes[first + i] : 0;
            own += size[i];
        }
        u64 up_to = sum_up_to(own);
        if (threadIdx.x % 32 == 31) warps[warp] = up_to;
        __syncthreads();
        u64 sum = before + up_to - own;
#pragma unroll
        for (u32 other = 0; other < THREADS / 32; other++) {
            u64 all = warps[other];
            if (other < warp) sum += all;
            before += all;
        }
#pragma unroll
        for (u32 i = 0; i < ITEMS; i++) {
            if (first + i < bags) offsets[first + i] = (long long)sum;
            sum += size[i];
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) offsets[bags] = (long long)before;
}
