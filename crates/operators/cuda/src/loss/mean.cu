// The mean of the losses of LEN elements. Each is computed in single precision, and all are summed in double.
//
//   sum_losses    PARTS blocks of THREADS threads: a thread takes every (PARTS x THREADS)-th element. Writes the sum of
//                 each block, or the mean where there is one block. Only threads beyond the last element are idle.
//   add_sums      one warp: adds the blocks' sums in their order, and writes the mean.
//
// Macros: LEN, PARTS, THREADS, LOGITS (0: squared differences; 1: binary cross-entropy of logits).
//
// Comes after block_sums.cuh.

__device__ __forceinline__ float loss_of(float x, float z) {
#if LOGITS
    float size = fabsf(x);
    float wrong = x < 0.0f ? z : 1.0f - z;
    return size * wrong + log1pf(expf(-size));
#else
    float away = x - z;
    return away * away;
#endif
}

extern "C" __global__ void __launch_bounds__(THREADS) sum_losses(
    const float *__restrict__ x, const float *__restrict__ target, double *sums, float *to) {
    double sum = 0.0;
#pragma unroll 4
    for (u64 at = blockIdx.x * THREADS + threadIdx.x; at < LEN; at += PARTS * THREADS) {
        sum += (double)loss_of(x[at], target[at]);
    }
    sum = join_block<Sum>(sum);
    if (threadIdx.x != 0) return;
    if (PARTS == 1) to[0] = (float)(sum / (double)LEN);
    else sums[blockIdx.x] = sum;
}

extern "C" __global__ void __launch_bounds__(32) add_sums(const double *sums, float *to) {
    double sum = 0.0;
    for (u32 part = threadIdx.x; part < PARTS; part += 32) sum += sums[part];
    sum = join_warp<Sum>(sum);
    if (threadIdx.x == 0) to[0] = (float)(sum / (double)LEN);
}
