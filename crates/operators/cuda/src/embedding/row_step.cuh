// The optimizer's step of a row.
//
// Comes after row_elements.cuh and row_gradients.cuh.

// A mix of all bits of a number (the finalizer of SplitMix64).
__device__ __forceinline__ u64 mix(u64 number) {
    number = (number ^ number >> 30) * 0xbf58476d1ce4e5b9ull;
    number = (number ^ number >> 27) * 0x94d049bb133111ebull;
    return number ^ number >> 31;
}

// A row's weights and state, on their way from memory.
struct Row {
    Raw weights[VECTORS];
    Vec state[STATES > 0 ? STATES * VECTORS : 1];
    float row_state;
};

// Loads them; where they are not wanted, those of the first row, which nothing uses.
__device__ __forceinline__ void load_row(const Work &work, bool wanted, u32 row, Row &to) {
    if (!wanted) row = 0;
    const Element *weights = (const Element *)work.table.weights + (u64)row * work.table.pitch;
    const float *state = work.table.state + (u64)row * work.table.state_pitch;
#pragma unroll
    for (u32 v = 0; v < VECTORS; v++) {
        to.weights[v] = load_raw(weights + column(v));
#pragma unroll
        for (int s = 0; s < STATES; s++) {
            to.state[s * VECTORS + v] = load_once(state + s * DIM + column(v));
        }
    }
    if (ROW_STATE) to.row_state = state[STATES * DIM];
}

// The gradient that the rule sees: with its part of the weights.
__device__ __forceinline__ float with_decay(const Numbers &n, float gradient, float weight) {
    return __fadd_rn(gradient, __fmul_rn(n.decay, weight));
}

__device__ __forceinline__ void step_row(
    const Work &work, const Numbers &n, u32 row, const Row &from, const Vec sum[VECTORS]) {
    Element *weights = (Element *)work.table.weights + (u64)row * work.table.pitch;
    float *state = work.table.state + (u64)row * work.table.state_pitch;
    u64 dice = STOCHASTIC ? mix(mix(n.dice ^ work.table.place) ^ row) : 0;
    float row_rate = 0.0f;
    if (ROW_STATE) {
        float squares = 0.0f;
#pragma unroll
        for (u32 v = 0; v < VECTORS; v++) {
            if (has(v)) {
                Vec p = widen(from.weights[v]);
#pragma unroll
                for (u32 i = 0; i < VECTOR; i++) {
                    float g = with_decay(n, sum[v].at[i], p.at[i]);
                    squares = __fadd_rn(squares, __fmul_rn(g, g));
                }
            }
        }
#pragma unroll
        for (u32 reach = GROUP / 2; reach > 0; reach /= 2) {
            squares = __fadd_rn(squares, __shfl_xor_sync(group_mask(), squares, reach, GROUP));
        }
        float mean = __fdiv_rn(squares, (float)DIM);
        float now;
        if (RULE == 3) {
            now = __fadd_rn(from.row_state, mean);
            row_rate = __fdiv_rn(n.lr, __fadd_rn(__fsqrt_rn(now), n.eps));
        } else {
            now = __fadd_rn(__fmul_rn(n.beta2, from.row_state), __fmul_rn(__fsub_rn(1.0f, n.beta2), mean));
            row_rate = __fdiv_rn(n.rate, __fadd_rn(__fdiv_rn(__fsqrt_rn(now), n.root), n.eps));
        }
        if (group_lane() == 0) state[STATES * DIM] = now;
    }
#pragma unroll
    for (u32 v = 0; v < VECTORS; v++) {
        if (!has(v)) continue;
        Vec p = widen(from.weights[v]);
        Vec first = from.state[STATES > 0 ? v : 0], second = from.state[STATES > 1 ? VECTORS + v : 0];
#pragma unroll
        for (u32 i = 0; i < VECTOR; i++) {
            float g = with_decay(n, sum[v].at[i], p.at[i]);
            float kept = __fmul_rn(p.at[i], n.keep);
            float change;
            if (RULE == 0) {
                change = __fmul_rn(n.lr, g);
            } else if (RULE == 1) {
                first.at[i] = __fadd_rn(__fmul_rn(n.momentum, first.at[i]), g);
                change = __fmul_rn(n.lr, first.at[i]);
            } else if (RULE == 2) {
                first.at[i] = __fadd_rn(first.at[i], __fmul_rn(g, g));
                change = __fmul_rn(n.lr, __fdiv_rn(g, __fadd_rn(__fsqrt_rn(first.at[i]), n.eps)));
            } else if (RULE == 3) {
                change = __fmul_rn(row_rate, g);
            } else {
                float take = __fsub_rn(1.0f, n.beta1);
                first.at[i] = __fadd_rn(first.at[i], __fmul_rn(take, __fsub_rn(g, first.at[i])));
                if (RULE == 4) {
                    float square = __fmul_rn(__fsub_rn(1.0f, n.beta2), __fmul_rn(g, g));
                    second.at[i] = __fadd_rn(__fmul_rn(n.beta2, second.at[i]), square);
                    float root = __fadd_rn(__fdiv_rn(__fsqrt_rn(second.at[i]), n.root), n.eps);
                    change = __fmul_rn(n.rate, __fdiv_rn(first.at[i], root));
                } else {
                    change = __fmul_rn(row_rate, first.at[i]);
                }
            }
            p.at[i] = __fsub_rn(kept, change);
        }
        store_row(weights + column(v), p, dice, column(v));
        if (STATES > 0) store_once(state + column(v), first);
        if (STATES > 1) store_once(state + DIM + column(v), second);
    }
}

