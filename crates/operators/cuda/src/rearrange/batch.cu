// Copies of several matrices in one launch, in cells of as many bytes as lie together on both sides.
//
// Grid     x: tiles of THREADS x CELLS cells of one matrix, which a block finds by the numbers of the first tiles. A
//          thread's cells lie THREADS apart, so that lanes are neighbours.
//
// Macros: COUNT (of matrices), THREADS, CELLS.

typedef unsigned int u32;
typedef unsigned long long u64;

struct Matrix {
    const char *from;
    char *to;
    u64 from_stride, to_stride; // bytes from row to row
    u32 columns, count;         // cells of a row, and of all rows
    u32 first;                  // the number of its first tile
    u32 bytes;                  // of a cell: a power of two, at most 16
};

struct Matrices {
    Matrix at[COUNT];
};

template <class Cell> __device__ __forceinline__ void copy(const Matrix &matrix) {
    const u32 first = (blockIdx.x - matrix.first) * (THREADS * CELLS) + threadIdx.x;
    // All loads are under way before the first is waited for.
    Cell held[CELLS];
    u64 targets[CELLS];
#pragma unroll
    for (u32 k = 0; k < CELLS; k++) {
        const u32 at = first + k * THREADS;
        if (at < matrix.count) {
            const u32 row = at / matrix.columns, column = at - row * matrix.columns;
            held[k] = *(const Cell *)(matrix.from + row * matrix.from_stride + column * sizeof(Cell));
            targets[k] = row * matrix.to_stride + column * sizeof(Cell);
        }
    }
#pragma unroll
    for (u32 k = 0; k < CELLS; k++) {
        if (first + k * THREADS < matrix.count) *(Cell *)(matrix.to + targets[k]) = held[k];
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) copies(const __grid_constant__ Matrices matrices) {
    u32 low = 0, high = COUNT;
    while (high - low > 1) {
        const u32 middle = (low + high) / 2;
        if (matrices.at[middle].first <= blockIdx.x) low = middle;
        else high = middle;
    }
    const Matrix &matrix = matrices.at[low];
    switch (matrix.bytes) {
    case 16: return copy<uint4>(matrix);
    case 8: return copy<uint2>(matrix);
    case 4: return copy<u32>(matrix);
    case 2: return copy<unsigned short>(matrix);
    default: return copy<unsigned char>(matrix);
    }
}
