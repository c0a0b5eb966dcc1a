// What the kernels that update rows are given, and the vectors of columns that their lanes hold.
//
// Comes after float.cuh and grouped.cuh, with the macros of backward.cu.

#define COLUMNS (VECTOR * GROUP)
#define VECTORS ((DIM + COLUMNS - 1) / COLUMNS)
#define WHOLE (DIM % COLUMNS == 0)
#define STATES (RULE == 1 || RULE == 2 || RULE == 5 ? 1 : RULE == 4 ? 2 : 0)
#define ROW_STATE (RULE == 3 || RULE == 5)

struct Table {
    void *weights;
    float *state;
    u32 pitch;       // elements from row to row
    u32 state_pitch; // floats from row to row
    u32 rows;        // E
    u32 column;      // where its gradient begins in a row of gradients
    u32 kind;        // the CLASS that takes it
    u32 place;       // among the tables
    const u32 *winners; // [B, D]: the only position of a bag that gets the gradient of a column
};

// What an optimizer's step uses: the names of the CPU's operators.
struct Numbers {
    float lr, decay, keep, rate, root, momentum, beta1, beta2, eps, unused;
    u64 dice; // seed and step, mixed
    u64 seed, step;
};

struct Sources {
    const u64 *pairs;
    const u32 *windows;
    const Plan *plans;
    const Table *tables;
    const GRADIENT *gradient;
    u32 stride;           // of the gradient
    u32 bags;             // B
    const float *weights; // a factor for each lookup
    const u32 *bag_of;    // the bag of each lookup
    const float *means;   // a factor for each bag of each table
    float *slots;         // sums of full chunks, one for each window
    u32 *runs;            // rows with more than SHORT lookups: how many, blocks done with them, first place of each
    u32 slot_pitch;
};

struct Vec {
    float at[VECTOR];
};

#define ALL 0xffffffffu

// The lanes of this thread's group.
__device__ __forceinline__ u32 group_mask() {
    return GROUP == 32 ? 0xffffffffu : ((1u << (GROUP % 32)) - 1) << ((threadIdx.x & 31) / GROUP * GROUP);
}

__device__ __forceinline__ u32 group_lane() { return threadIdx.x % GROUP; }

// Whether this lane's vector `v` lies in the row.
__device__ __forceinline__ bool has(u32 v) { return WHOLE || (v * GROUP + group_lane()) * VECTOR < DIM; }

// Its first column; a column of the row for lanes beyond its end, which load all the same: loads under a condition
// would wait for each other.
__device__ __forceinline__ u32 column(u32 v) { return has(v) ? (v * GROUP + group_lane()) * VECTOR : 0; }

// Reads and writes through the caches as neither read nor written again soon.
__device__ __forceinline__ Vec load_once(const float *from) {
    Vec to;
#if VECTOR == 4
    float4 v = __ldcs((const float4 *)from);
    to.at[0] = v.x, to.at[1] = v.y, to.at[2] = v.z, to.at[3] = v.w;
#elif VECTOR == 2
    float2 v = __ldcs((const float2 *)from);
    to.at[0] = v.x, to.at[1] = v.y;
#else
    to.at[0] = __ldcs(from);
#endif
    return to;
}

__device__ __forceinline__ void store_once(float *to, const Vec &v) {
#if VECTOR == 4
    __stcs((float4 *)to, make_float4(v.at[0], v.at[1], v.at[2], v.at[3]));
#elif VECTOR == 2
    __stcs((float2 *)to, make_float2(v.at[0], v.at[1]));
#else
    __stcs(to, v.at[0]);
#endif
}

// A vector by a load of this kind. `volatile` keeps loads where they are written, ahead of the sums that use them: the
// compiler moved each to its sum, which left one on its way.
#if VECTOR == 4
#define LOAD(KIND, to, from)                                                                    \
    asm volatile("ld.global." KIND ".v4.f32 {%0, %1, %2, %3}, [%4];"                            \
                 : "=f"(to.at[0]), "=f"(to.at[1]), "=f"(to.at[2]), "=f"(to.at[3]) : "l"(from))
#elif VECTOR == 2
#define LOAD(KIND, to, from)                                                                    \
    asm volatile("ld.global." KIND ".v2.f32 {%0, %1}, [%2];" : "=f"(to.at[0]), "=f"(to.at[1]) : "l"(from))
#else
#define LOAD(KIND, to, from) asm volatile("ld.global." KIND ".f32 %0, [%1];" : "=f"(to.at[0]) : "l"(from))
#endif

// A gradient is read once for each lookup of its bag.
__device__ __forceinline__ Vec load_gradient(const float *from) {
    Vec to;
    LOAD("nc", to, from);
    return to;
}

__device__ __forceinline__ Vec load_gradient(const Bf16 *from) {
    Vec to;
#if VECTOR == 4
    u32 low, high;
    asm volatile("ld.global.nc.v2.u32 {%0, %1}, [%2];" : "=r"(low), "=r"(high) : "l"(from));
    to.at[0] = low_of(low), to.at[1] = high_of(low), to.at[2] = low_of(high), to.at[3] = high_of(high);
#elif VECTOR == 2
    u32 both;
    asm volatile("ld.global.nc.u32 %0, [%1];" : "=r"(both) : "l"(from));
    to.at[0] = low_of(both), to.at[1] = high_of(both);
#else
    Bf16 one;
    asm volatile("ld.global.nc.u16 %0, [%1];" : "=h"(one.bits) : "l"(from));
    to.at[0] = widen(one);
#endif
    return to;
}

// The sum of a chunk, which another block of this launch may have written.
__device__ __forceinline__ Vec load_slot(const float *from) {
    Vec to;
    LOAD("cg", to, from);
    return to;
}
