// The sum over all ranks of a part of their buffers, in the memory of every rank.
//
//   sum_ranks   256 threads; a thread adds four elements of each buffer in the order of the ranks, and writes the sums to all buffers. Each part has
//               one rank that adds it, so no element is read by one rank after another has written it.
//   sum_rest    one thread for each of the last elements, fewer than four.
//
// Macros: RANKS.

typedef unsigned long long u64;

struct Buffers {
    float *of[RANKS];
};

extern "C" __global__ void __launch_bounds__(256) sum_ranks(Buffers all, u64 first, u64 last) {
    for (u64 i = first + (u64)blockIdx.x * 256 + threadIdx.x; i < last; i += (u64)gridDim.x * 256) {
        float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
        for (int rank = 0; rank < RANKS; rank++) {
            float4 own = __ldcv((const float4 *)all.of[rank] + i);
            sum.x += own.x;
            sum.y += own.y;
            sum.z += own.z;
            sum.w += own.w;
        }
#pragma unroll
        for (int rank = 0; rank < RANKS; rank++) ((float4 *)all.of[rank])[i] = sum;
    }
}

extern "C" __global__ void sum_rest(Buffers all, u64 first, u64 last) {
    u64 i = first + threadIdx.x;
    if (i >= last) return;
    float sum = 0.0f;
#pragma unroll
    for (int rank = 0; rank < RANKS; rank++) sum += __ldcv(all.of[rank] + i);
#pragma unroll
    for (int rank = 0; rank < RANKS; rank++) all.of[rank][i] = sum;
}
