// A copy between two layouts, in cells of as many bytes as lie together on both sides, in the order of the output.
//
// Grid     x: THREADS x CELLS cells; a thread's cells lie THREADS apart, so that lanes are neighbours.
//
// Compiled with: CELL (type), CELLS of a thread, THREADS, COUNT (of all cells), PLACE (a type that holds it), FROM and TO
// (offsets), AXES (a list of AXIS(size, read, write), the last axis first; strides in cells).

typedef unsigned int u32;
typedef unsigned long long u64;

struct Places {
    u64 from;
    u64 to;
};

__device__ __forceinline__ Places places(PLACE at) {
    Places places = {FROM, TO};
#define AXIS(size, read, write) places.from += at % size * u64(read), places.to += at % size * u64(write), at /= size;
    AXES
    return places;
}

extern "C" __global__ void __launch_bounds__(THREADS) rows(const CELL* __restrict__ from, CELL* __restrict__ to) {
    const PLACE first = PLACE(blockIdx.x) * (THREADS * CELLS) + threadIdx.x;
    // All loads are under way before the first is waited for.
    CELL held[CELLS];
    u64 targets[CELLS];
    #pragma unroll
    for (u32 k = 0; k < CELLS; k++) {
        PLACE at = first + k * THREADS;
        if (at < COUNT) {
            Places found = places(at);
            held[k] = from[found.from];
            targets[k] = found.to;
        }
    }
    #pragma unroll
    for (u32 k = 0; k < CELLS; k++)
        if (first + k * THREADS < COUNT) to[targets[k]] = held[k];
}
