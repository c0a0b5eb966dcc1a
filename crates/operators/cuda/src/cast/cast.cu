// Copies of matrices in another type, many matrices in one launch, each as it is or transposed.
//
// A block of 256 threads has a tile of 64 x 64 elements of one matrix, which it finds by the numbers of the first tiles. It
// reads rows of the tile, four elements a thread, and writes rows of the result, eight elements a thread, through shared
// memory: at once where the matrix is aligned for it, otherwise one by one.
//
// Comes after float.cuh. Macros: COUNT (of matrices), FROM and TO (types of elements).

#define SIDE 64

struct Matrix {
    const FROM *from;
    TO *to;
    u64 from_stride, to_stride; // elements from row to row
    u32 rows, columns;          // of the input
    u32 first;                  // the number of its first tile
    u32 flags;
};

enum Flag { TRANSPOSED = 1, READS_FOUR = 2, WRITES_EIGHT = 4 };

struct Matrices {
    Matrix at[COUNT];
};

extern "C" __global__ void __launch_bounds__(256) cast(const __grid_constant__ Matrices matrices) {
    __shared__ float tile[SIDE][SIDE + 1];
    u32 low = 0, high = COUNT;
    while (high - low > 1) {
        u32 middle = (low + high) / 2;
        if (matrices.at[middle].first <= blockIdx.x) low = middle;
        else high = middle;
    }
    const Matrix &matrix = matrices.at[low];
    const u32 across = (matrix.columns + SIDE - 1) / SIDE, number = blockIdx.x - matrix.first;
    const u32 top = number / across * SIDE, left = number % across * SIDE;
    const u32 rows = matrix.rows - top, columns = matrix.columns - left; // from here on
    // All loads are on their way before the first is stored.
    const u32 first = threadIdx.x / 16, place = threadIdx.x % 16 * 4;
    Floats<4> read[SIDE / 16] = {};
#pragma unroll
    for (u32 i = 0; i < SIDE / 16; i++) {
        const u32 row = 16 * i + first;
        const FROM *from = matrix.from + (top + row) * matrix.from_stride + left + place;
        if (row < rows && matrix.flags & READS_FOUR && place + 4 <= columns) {
            read[i] = load_floats<4>(from);
        } else if (row < rows) {
#pragma unroll
            for (u32 k = 0; k < 4; k++) {
                if (place + k < columns) read[i].at[k] = widen(from[k]);
            }
        }
    }
#pragma unroll
    for (u32 i = 0; i < SIDE / 16; i++) {
#pragma unroll
        for (u32 k = 0; k < 4; k++) tile[16 * i + first][place + k] = read[i].at[k];
    }
    __syncthreads();
    const bool transposed = matrix.flags & TRANSPOSED;
    const u32 to_rows = transposed ? columns : rows, to_columns = transposed ? rows : columns;
    TO *to = matrix.to + (transposed ? left * matrix.to_stride + top : top * matrix.to_stride + left);
#pragma unroll
    for (u32 i = 0; i < SIDE / 32; i++) {
        const u32 row = 32 * i + threadIdx.x / 8, column = threadIdx.x % 8 * 8;
        if (row >= to_rows) continue;
        Floats<8> eight;
#pragma unroll
        for (u32 k = 0; k < 8; k++) eight.at[k] = transposed ? tile[column + k][row] : tile[row][column + k];
        TO *at = to + row * matrix.to_stride + column;
        if (matrix.flags & WRITES_EIGHT && column + 8 <= to_columns) {
            store_floats<8>(at, eight);
        } else {
            for (u32 k = 0; k < 8; k++) {
                if (column + k < to_columns) store_floats<1>(at + k, {{eight.at[k]}});
            }
        }
    }
}
