// The logarithm of the softmax of each row at the class of its sample, and the gradient of the mean of all, in one pass over
// the scores each. ROWS rows of WIDTH scores, which are first divided by DIVISOR.
//
//   scan_rows       writes the logarithm of the sum of e^x of each row, and the logarithm of the probability of its class,
//                   0 where there is no such class.
//   set_gradients   writes (e^(x - logarithm of the sum) - 1 at the class) / (ROWS x DIVISOR), times the gradient of the
//                   loss.
//
// LANES threads take a row: a warp, or a whole block of THREADS threads, by vectors of VECTOR neighbours, every LANES-th a
// thread. Rows of at most TURNS vectors a thread, where TURNS is not 0, are read once and held in registers; longer ones
// are read from the caches the second time. Sums are kept in double precision.
//
// With bfloat16 all numbers are rounded to it that separate ops would store: quotients, and the gradient before its
// division.
//
// Grid     x: blocks of THREADS / LANES rows.
//
// Macros: ELEMENT (type), ROWS, WIDTH, VECTOR, LANES, THREADS, TURNS, DIVISOR, RECIPROCAL (1 / DIVISOR, rounded to nearest),
// DIVIDES (0 where DIVISOR is 1).
//
// Comes after block_sums.cuh and float.cuh.

#define VECTORS (WIDTH / VECTOR)

template <class Op, class T> __device__ __forceinline__ T join_row(T value) {
    if constexpr (LANES == 32) return join_warp<Op>(value);
    else return join_block<Op>(value);
}

__device__ __forceinline__ float rounded(float x, const float *) { return x; }

__device__ __forceinline__ float rounded(float x, const Bf16 *) { return low_of(pack(x, 0.0f)); }

// The quotient by the divisor, rounded to nearest: the remainder of the product with the reciprocal corrects it.
__device__ __forceinline__ float divided(float x) {
    if (!DIVIDES) return x;
    const float near = __fmul_rn(x, RECIPROCAL);
    const float rest = fmaf(-near, DIVISOR, x);
    // Infinities have no remainder.
    const float quotient = fabsf(near) <= 3.402823466e38f ? fmaf(rest, RECIPROCAL, near) : near;
    return rounded(quotient, (const ELEMENT *)nullptr);
}

// A number in two floats, of which the second is what the first lacks.
struct Pair {
    float high, low;
};

// x minus a pair, rounded once but for an error of the order of its low part's.
__device__ __forceinline__ float minus(float x, Pair all) {
    const float difference = __fsub_rn(x, all.high);
    const float taken = __fsub_rn(difference, x);
    const float lost = __fsub_rn(__fsub_rn(x, __fsub_rn(difference, taken)), __fadd_rn(all.high, taken));
    return __fadd_rn(difference, __fsub_rn(lost, all.low));
}

struct Scores {
    float at[VECTOR];
};

// The quotients of a vector of a row.
__device__ __forceinline__ Scores scores(const ELEMENT *row, u32 at) {
    const Floats<VECTOR> given = load_floats<VECTOR>(row + (u64)at * VECTOR);
    Scores scores;
#pragma unroll
    for (u32 k = 0; k < VECTOR; k++) scores.at[k] = divided(given.at[k]);
    return scores;
}

// Calls `work` with the number and the scores of each vector of the row, in the same order each time.
struct Row {
    const ELEMENT *from;
    u32 lane;
    Scores held[TURNS > 0 ? TURNS : 1];

    __device__ __forceinline__ Row(const ELEMENT *from, u32 lane) : from(from), lane(lane) {
#pragma unroll
        for (u32 turn = 0; turn < TURNS; turn++) {
            const u32 at = lane + turn * LANES;
            if (at < VECTORS) held[turn] = scores(from, at);
        }
    }

    template <class Work> __device__ __forceinline__ void each(Work work) const {
        if (TURNS > 0) {
#pragma unroll
            for (u32 turn = 0; turn < TURNS; turn++) {
                const u32 at = lane + turn * LANES;
                if (at < VECTORS) work(at, held[turn]);
            }
        } else {
#pragma unroll 2
            for (u32 at = lane; at < VECTORS; at += LANES) work(at, scores(from, at));
        }
    }
};

// The row of this thread; ROWS and more where there is none.
__device__ __forceinline__ u64 row_of_thread() {
    return (u64)blockIdx.x * (THREADS / LANES) + threadIdx.x / LANES;
}

extern "C" __global__ void __launch_bounds__(THREADS) scan_rows(
    const ELEMENT *__restrict__ from, const long long *__restrict__ classes, double *__restrict__ sums,
    float *__restrict__ picked) {
    const u64 at = row_of_thread();
    // All threads of a row leave together.
    if (at >= ROWS) return;
    from += at * WIDTH;
    const Row row(from, threadIdx.x % LANES);
    float most = __int_as_float(0xff800000); // minus infinity
    row.each([&](u32, const Scores &scores) {
#pragma unroll
        for (u32 k = 0; k < VECTOR; k++) most = fmaxf(most, scores.at[k]);
    });
    most = join_row<Most>(most);
    double sum = 0.0;
    row.each([&](u32, const Scores &scores) {
#pragma unroll
        for (u32 k = 0; k < VECTOR; k++) sum += (double)expf(scores.at[k] - most);
    });
    sum = join_row<Sum>(sum);
    if (threadIdx.x % LANES != 0) return;
    const double all = (double)most + log(sum);
    const long long found = classes[at];
    const bool exists = (u64)found < WIDTH;
    sums[at] = all;
    picked[at] = exists ? (float)((double)divided(widen(from[found])) - all) : 0.0f;
}

extern "C" __global__ void __launch_bounds__(THREADS) set_gradients(
    const ELEMENT *__restrict__ from, const float *__restrict__ grad, const long long *__restrict__ classes,
    const float *__restrict__ total, const double *__restrict__ sums, ELEMENT *__restrict__ to) {
    const u64 at = row_of_thread();
    if (at >= ROWS) return;
    from += at * WIDTH, to += at * WIDTH;
    const Row row(from, threadIdx.x % LANES);
    const double all = sums[at];
    const Pair pair = {(float)all, (float)(all - (double)(float)all)};
    const long long found = classes[at];
    const bool exists = (u64)found < WIDTH;
    const float factor = exists ? __fdiv_rn(-grad[0], total[0]) : 0.0f;
    const u32 own = exists ? (u32)((u64)found / VECTOR) : 0xffffffffu, place = (u32)((u64)found % VECTOR);
    row.each([&](u32 number, const Scores &scores) {
        Floats<VECTOR> gradients;
#pragma unroll
        for (u32 k = 0; k < VECTOR; k++) {
            const float probability = expf(minus(scores.at[k], pair));
            float gradient = __fsub_rn(0.0f, __fmul_rn(probability, factor));
            if (number == own && k == place) gradient = (float)((double)factor - (double)probability * (double)factor);
            gradients.at[k] = divided(rounded(gradient, from));
        }
        store_floats<VECTOR>(to + (u64)number * VECTOR, gradients);
    });
}
