// The vectors of samples, and the order of their pairs.
//
// Comes after float.cuh. Macros: F, D, SELF (whether vectors meet themselves), VALUE (the type of an element).

#define PAIRS (SELF ? F * (F + 1) / 2 : F * (F - 1) / 2)
#define ROW_START(i) ((i) * ((i) + 1) / 2 - (SELF ? 0 : (i)))

// Where the vectors of each sample are: the dense one, and F - 1 others.
struct Vectors {
    VALUE *dense;
    VALUE *others;
    u64 dense_stride;  // from sample to sample
    u64 others_stride; // from sample to sample
    u64 stride;        // from vector to vector of the others
};

__device__ __forceinline__ VALUE *vector_of(const Vectors &of, u64 sample, u32 i) {
    return i == 0 ? of.dense + sample * of.dense_stride : of.others + sample * of.others_stride + (i - 1) * of.stride;
}

