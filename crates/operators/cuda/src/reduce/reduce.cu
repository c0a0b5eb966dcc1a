// Sums over dimensions, in double precision, in a fixed order.
//
// Grid     x: tiles of TILE_RESULTS results; y: parts of PART terms.
// Lanes    LANES threads add the terms of a result: each one every LANES-th term, then all by a tree in shared memory.
//          Where results are neighbours in memory (ACROSS), neighbouring threads have neighbouring results, otherwise
//          neighbouring terms of one result.
// Parts    with more than one, `partial` writes the sums of parts [PARTS, RESULTS], and `finish` adds them.
//
// Compiled with: TILE_RESULTS, LANES (powers of two), ACROSS (0 or 1), RESULTS, TERMS, PART, PARTS, FINISH_RESULTS,
// FINISH_LANES (as TILE_RESULTS and LANES, for `finish`), NORM (0 or 1), PLACE (a type that holds positions), FROM (offset),
// KEPT and SUMMED (lists of AXIS(size, stride), the last axis first).

typedef unsigned int u32;
typedef unsigned long long u64;

#define AXIS(size, stride) place += at % size * (PLACE)stride, at /= size;

__device__ __forceinline__ PLACE kept(PLACE at) {
    PLACE place = FROM;
    KEPT
    return place;
}

__device__ __forceinline__ PLACE summed(PLACE at) {
    PLACE place = 0;
    SUMMED
    return place;
}

__device__ __forceinline__ double before(float x) { return NORM ? double(x) * double(x) : double(x); }

__device__ __forceinline__ float after(double sum) { return float(NORM ? sqrt(sum) : sum); }

// The sum over `COUNT` lanes whose threads are STEP apart; complete in lane 0. All threads of the block call it.
template <u32 COUNT, u32 STEP> __device__ __forceinline__ double over_lanes(double sum, u32 lane) {
    __shared__ double sums[COUNT > 1 ? THREADS : 1];
    if (COUNT > 1) sums[threadIdx.x] = sum;
    #pragma unroll
    for (u32 half = COUNT / 2; half > 0; half /= 2) {
        __syncthreads();
        if (lane < half) sums[threadIdx.x] = sum = sum + sums[threadIdx.x + half * STEP];
    }
    return sum;
}

__device__ __forceinline__ double part_sum(const float* __restrict__ from, PLACE result, u32 lane) {
    const PLACE first = PLACE(blockIdx.y) * PART, end = first + PART < TERMS ? first + PART : TERMS;
    double sum = 0.0;
    if (result < RESULTS) {
        from += kept(result);
        #pragma unroll 8
        for (PLACE term = first + lane; term < end; term += LANES) sum += before(from[summed(term)]);
    }
    return over_lanes<LANES, ACROSS ? TILE_RESULTS : 1>(sum, lane);
}

__device__ __forceinline__ u32 lane_of_thread() { return ACROSS ? threadIdx.x / TILE_RESULTS : threadIdx.x % LANES; }

__device__ __forceinline__ PLACE result_of_thread() {
    return PLACE(blockIdx.x) * TILE_RESULTS + (ACROSS ? threadIdx.x % TILE_RESULTS : threadIdx.x / LANES);
}

extern "C" __global__ void __launch_bounds__(THREADS) whole(const float* __restrict__ from, float* __restrict__ to) {
    const PLACE result = result_of_thread();
    const u32 lane = lane_of_thread();
    const double sum = part_sum(from, result, lane);
    if (lane == 0 && result < RESULTS) to[result] = after(sum);
}

extern "C" __global__ void __launch_bounds__(THREADS) partial(const float* __restrict__ from, double* __restrict__ to) {
    const PLACE result = result_of_thread();
    const u32 lane = lane_of_thread();
    const double sum = part_sum(from, result, lane);
    if (lane == 0 && result < RESULTS) to[blockIdx.y * u64(RESULTS) + result] = sum;
}

extern "C" __global__ void __launch_bounds__(THREADS) finish(const double* __restrict__ from, float* __restrict__ to) {
    const u64 result = u64(blockIdx.x) * FINISH_RESULTS + threadIdx.x % FINISH_RESULTS;
    const u32 lane = threadIdx.x / FINISH_RESULTS;
    double sum = 0.0;
    if (result < RESULTS) {
        #pragma unroll 4
        for (u32 part = lane; part < PARTS; part += FINISH_LANES) sum += from[part * u64(RESULTS) + result];
    }
    sum = over_lanes<FINISH_LANES, FINISH_RESULTS>(sum, lane);
    if (lane == 0 && result < RESULTS) to[result] = after(sum);
}
