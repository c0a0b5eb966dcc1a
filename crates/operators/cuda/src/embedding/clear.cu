// Zeros in several ranges of floats, in one launch.
//
// A block takes CHUNK floats of one range, THREADS of 4 neighbours at a time.
//
// Macros: COUNT (ranges of a launch), CHUNK, THREADS.

typedef unsigned int u32;
typedef unsigned long long u64;

struct Range {
    float *start; // at a multiple of 16 bytes
    u64 len;
    u32 end; // the blocks of the ranges up to this one
    u32 unused;
};

struct Ranges {
    Range range[COUNT];
};

extern "C" __global__ void __launch_bounds__(THREADS) clear_ranges(const Ranges all) {
    u32 at = 0;
    while (at + 1 < COUNT && blockIdx.x >= all.range[at].end) at++;
    u32 first = at == 0 ? 0 : all.range[at - 1].end;
    float *start = all.range[at].start;
    u64 len = all.range[at].len;
    u64 base = (u64)(blockIdx.x - first) * CHUNK;
#pragma unroll
    for (u32 step = 0; step < CHUNK; step += 4 * THREADS) {
        u64 place = base + step + 4 * threadIdx.x;
        if (place + 4 <= len) {
            *(float4 *)(start + place) = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        } else {
            for (u64 last = place; last < len; last++) start[last] = 0.0f;
        }
    }
}
