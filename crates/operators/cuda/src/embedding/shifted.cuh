// Rows of 4 bytes of scale and bias, then values in vectors of 8 bytes, which begin at any multiple of 4.
//
// Values begin at a multiple of 8, or 4 bytes behind one. Lanes load whole vectors from that multiple of 8 on, and one
// word more. Where values begin late, the first vector holds the header and the word is the row's last; else the word is
// the header.
//
// Whether values begin late is asked of one bit: asked as a remainder of 8, the compiler put shuffles of the first rows
// among loads of the last, which left fewer rows in flight and took 30 % longer.
//
// Comes after rows.cuh.

// Whether the values of a row begin 4 bytes behind a multiple of 8.
__device__ __forceinline__ bool is_late(u64 row) { return (row & 4) == 0; }

// A lane's vectors of a row, not shifted yet, and the word.
template <int LANES, int PASSES, int VECTORS>
__device__ __forceinline__ void load_shifted(Vector<8> (&vectors)[PASSES], Vector<4>& word, u64 row, int part) {
    u64 first = ((row + 4) & ~7ull) + part * 8;
    #pragma unroll
    for (int p = 0; p < PASSES; p++)
        if (VECTORS % LANES == 0 || p * LANES + part < VECTORS) load(vectors[p], first + p * LANES * 8);
    load(word, row + (is_late(row) ? VECTORS * 8 : 0));
}

// Shifts them to where the values begin; returns the header. All lanes of the warp come here.
template <int LANES, int PASSES, int VECTORS>
__device__ __forceinline__ u32 shift(Vector<8> (&vectors)[PASSES], u32 word, bool late, int leader, int part) {
    u32 header = __shfl_sync(ALL, vectors[0].word[0], leader & 31);
    // What follows a lane's vector is the first word of the next lane's; after the last lane, of the next pass.
    u32 next[PASSES + 1];
    #pragma unroll
    for (int p = 0; p < PASSES; p++)
        next[p] = __shfl_sync(ALL, vectors[p].word[0], (leader + (part + 1 < LANES ? part + 1 : 0)) & 31);
    next[PASSES] = word;
    #pragma unroll
    for (int p = 0; p < PASSES; p++) {
        u32 after = part == LANES - 1 ? next[p + 1] : next[p];
        if (p * LANES + part == VECTORS - 1) after = word;
        u32 first = vectors[p].word[0], second = vectors[p].word[1];
        vectors[p].word[0] = late ? second : first;
        vectors[p].word[1] = late ? after : second;
    }
    return late ? header : word;
}
