// Sums and extremes of all threads of a warp or a block, in an order that only the number of threads decides, so that
// they have the same bits in each run.
//
// Macros: THREADS (of a block: a multiple of 32).

typedef unsigned int u32;
typedef unsigned long long u64;

#define ALL 0xffffffffu

struct Sum {
    static __device__ __forceinline__ double join(double a, double b) { return a + b; }
};

struct Most {
    static __device__ __forceinline__ float join(float a, float b) { return fmaxf(a, b); }
};

struct Least {
    static __device__ __forceinline__ u64 join(u64 a, u64 b) { return a < b ? a : b; }
};

// Joins the values of a warp's lanes. All lanes come here, and all get the result.
template <class Op, class T> __device__ __forceinline__ T join_warp(T value) {
#pragma unroll
    for (u32 reach = 16; reach > 0; reach /= 2) value = Op::join(value, __shfl_xor_sync(ALL, value, reach));
    return value;
}

// Joins the values of a block's threads. All threads come here, and all get the result.
template <class Op, class T> __device__ __forceinline__ T join_block(T value) {
    __shared__ T parts[THREADS / 32];
    value = join_warp<Op>(value);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
    __syncthreads();
    T all = parts[0];
#pragma unroll
    for (u32 i = 1; i < THREADS / 32; i++) all = Op::join(all, parts[i]);
    // The next call writes the parts again.
    __syncthreads();
    return all;
}
