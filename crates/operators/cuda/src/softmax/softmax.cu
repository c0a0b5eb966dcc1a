// The logarithm of the softmax of each row, and its gradient. ROWS rows of WIDTH floats.
//
// LANES threads take a row: a warp, or a whole block of THREADS threads, every LANES-th element a thread. Sums are kept
// in double precision. A row is read from memory once and from the caches afterwards. Lanes are idle only at the end of
// a row.
//
// Grid     x: blocks of THREADS / LANES rows.
//
// Macros: ROWS, WIDTH, THREADS, LANES.
//
// Comes after block_sums.cuh.

template <class Op, class T> __device__ __forceinline__ T join_row(T value) {
    if constexpr (LANES == 32) return join_warp<Op>(value);
    else return join_block<Op>(value);
}

// The row of this thread; ROWS and more where there is none.
__device__ __forceinline__ u64 row_of_thread() {
    return (u64)blockIdx.x * (THREADS / LANES) + threadIdx.x / LANES;
}

extern "C" __global__ void __launch_bounds__(THREADS) log_softmax(const float *__restrict__ from, float *__restrict__ to) {
    u64 row = row_of_thread();
    u32 lane = threadIdx.x % LANES;
    // All threads of a row leave together.
    if (row >= ROWS) return;
    from += row * WIDTH, to += row * WIDTH;
    float most = __int_as_float(0xff800000); // minus infinity
#pragma unroll 4
    for (u32 at = lane; at < WIDTH; at += LANES) most = fmaxf(most, from[at]);
    most = join_row<Most>(most);
    double sum = 0.0;
#pragma unroll 4
    for (u32 at = lane; at < WIDTH; at += LANES) sum += (double)expf(from[at] - most);
    sum = join_row<Sum>(sum);
    double all = (double)most + log(sum);
#pragma unroll 4
    for (u32 at = lane; at < WIDTH; at += LANES) to[at] = (float)((double)from[at] - all);
}

extern "C" __global__ void __launch_bounds__(THREADS) log_softmax_backward(
    const float *__restrict__ grad, const float *__restrict__ output, float *__restrict__ to) {
    u64 row = row_of_thread();
    u32 lane = threadIdx.x % LANES;
    if (row >= ROWS) return;
    grad += row * WIDTH, output += row * WIDTH, to += row * WIDTH;
    double sum = 0.0;
#pragma unroll 4
    for (u32 at = lane; at < WIDTH; at += LANES) sum += (double)grad[at];
    sum = join_row<Sum>(sum);
#pragma unroll 4
    for (u32 at = lane; at < WIDTH; at += LANES) {
        to[at] = (float)((double)grad[at] - (double)expf(output[at]) * sum);
    }
}
