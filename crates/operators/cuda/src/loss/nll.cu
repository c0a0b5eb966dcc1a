// The mean negative logarithm of the probabilities of ROWS samples' classes, out of CLASSES, and its gradient.
//
//   sum_classes   PARTS blocks of THREADS threads: a thread takes every (PARTS x THREADS)-th sample. Writes the sum of
//                 each block and its first sample of no class, or the results where there is one block.
//   add_classes   one warp: adds the blocks' sums in their order, and writes the results.
//   set_classes   a thread a sample: the gradient of its class; the others are zero before.
//
// Macros: ROWS, CLASSES, PARTS, THREADS, PICKED (1 where `log` has the logarithm at the class of each sample alone).
//
// Comes after block_sums.cuh.

#define NOTHING 0xffffffffffffffffull

// The sum of a block, and its first sample of no class.
struct Part {
    double sum;
    u64 first;
};

// The first sample of no class since it was read last, and its class; NOTHING: none.
struct Fault {
    u64 sample;
    long long found;
};

// Whether a class exists; negative ones are larger than all.
__device__ __forceinline__ bool exists(long long found) { return (u64)found < CLASSES; }

// The mean and the number of samples, and the first sample of no class unless there was one before.
__device__ __forceinline__ void finish(
    const Part &all, const long long *classes, float *loss, float *total, Fault *fault) {
    loss[0] = (float)(all.sum / (double)ROWS);
    total[0] = (float)(double)ROWS;
    if (all.first != NOTHING && fault->sample == NOTHING) {
        fault->sample = all.first;
        fault->found = classes[all.first];
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) sum_classes(
    const float *__restrict__ log, const long long *__restrict__ classes, Part *parts, float *loss, float *total,
    Fault *fault) {
    Part part = {0.0, NOTHING};
#pragma unroll 4
    for (u64 at = blockIdx.x * THREADS + threadIdx.x; at < ROWS; at += PARTS * THREADS) {
        long long found = classes[at];
        if (exists(found)) part.sum -= (double)log[PICKED ? at : at * CLASSES + (u64)found];
        else part.first = Least::join(part.first, at);
    }
    part.sum = join_block<Sum>(part.sum);
    part.first = join_block<Least>(part.first);
    if (threadIdx.x != 0) return;
    if (PARTS == 1) finish(part, classes, loss, total, fault);
    else parts[blockIdx.x] = part;
}

extern "C" __global__ void __launch_bounds__(32) add_classes(
    const Part *parts, const long long *classes, float *loss, float *total, Fault *fault) {
    Part all = {0.0, NOTHING};
    for (u32 at = threadIdx.x; at < PARTS; at += 32) {
        all.sum += parts[at].sum;
        all.first = Least::join(all.first, parts[at].first);
    }
    all.sum = join_warp<Sum>(all.sum);
    all.first = join_warp<Least>(all.first);
    if (threadIdx.x == 0) finish(all, classes, loss, total, fault);
}

extern "C" __global__ void __launch_bounds__(256) set_classes(
    const float *grad, const long long *__restrict__ classes, const float *total, float *to) {
    u64 at = (u64)blockIdx.x * 256 + threadIdx.x;
    if (at >= ROWS) return;
    long long found = classes[at];
    if (exists(found)) to[at * CLASSES + (u64)found] = __fdiv_rn(-grad[0], total[0]);
}
