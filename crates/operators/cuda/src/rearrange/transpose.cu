// A transpose: what lies together in the input (columns) lies WRITE apart in the output, and what lies together in the
// output (rows) lies READ apart in the input.
//
// Grid     x: tiles of TILE_COLUMNS x TILE_ROWS, those along rows first, so that blocks at work together complete the
//          lines of the output that their tiles share; then columns, then the other axes, the last first.
// Lanes    a lane reads VECTOR rows of VECTOR elements each, transposes them in registers, and puts VECTOR vectors into the
//          tile in shared memory, where the rows of the output lie. Then lanes write one vector after the other.
// Banks    the place of a vector within its line is exchanged (XOR) by its micro tile's column, so that neither the lanes
//          that store nor those that load meet in a bank.
// Bounds   vectors are whole: shapes, strides and offsets are multiples of VECTOR.
//
// Compiled with: ELEMENT (type), VECTOR, TILE_COLUMNS, TILE_ROWS (powers of two), THREADS, COLUMNS, ROWS, READ, WRITE,
// FROM and TO (offsets), AXES (a list of AXIS(size, read, write), the last axis first).

typedef unsigned int u32;
typedef unsigned long long u64;

struct alignas(VECTOR * sizeof(ELEMENT)) Vector {
    ELEMENT at[VECTOR];
};

constexpr u32 ACROSS = TILE_COLUMNS / VECTOR, DOWN = TILE_ROWS / VECTOR;
constexpr u32 LOADS = ACROSS * DOWN / THREADS;
constexpr u32 BANKS = 128 / sizeof(Vector);
constexpr u32 EXCHANGE = (DOWN < BANKS ? DOWN : BANKS) - 1;
constexpr u32 COLUMN_TILES = (COLUMNS + TILE_COLUMNS - 1) / TILE_COLUMNS, ROW_TILES = (ROWS + TILE_ROWS - 1) / TILE_ROWS;

// Whether there is such a column or row: known beforehand where tiles are whole.
__device__ __forceinline__ bool is_column(u32 x) { return COLUMNS % TILE_COLUMNS == 0 || x < COLUMNS; }
__device__ __forceinline__ bool is_row(u32 y) { return ROWS % TILE_ROWS == 0 || y < ROWS; }

extern "C" __global__ void __launch_bounds__(THREADS) transpose(const ELEMENT* __restrict__ from, ELEMENT* __restrict__ to) {
    __shared__ Vector tile[TILE_COLUMNS * DOWN];
    u32 at = blockIdx.x;
    u32 y = at % ROW_TILES * TILE_ROWS;
    at /= ROW_TILES;
    u32 x = at % COLUMN_TILES * TILE_COLUMNS;
    at /= COLUMN_TILES;
    from += FROM;
    to += TO;
#define AXIS(size, read, write) from += at % size * u64(read), to += at % size * u64(write), at /= size;
    AXES

    // All loads are under way before the first is waited for.
    Vector held[LOADS][VECTOR];
    #pragma unroll
    for (u32 k = 0; k < LOADS; k++) {
        u32 micro = k * THREADS + threadIdx.x, column = x + micro % ACROSS * VECTOR, row = y + micro / ACROSS * VECTOR;
        #pragma unroll
        for (u32 i = 0; i < VECTOR; i++)
            if (is_column(column) && is_row(row + i)) held[k][i] = *(const Vector*)(from + column + (row + i) * u64(READ));
    }
    #pragma unroll
    for (u32 k = 0; k < LOADS; k++) {
        u32 micro = k * THREADS + threadIdx.x, across = micro % ACROSS, down = micro / ACROSS;
        #pragma unroll
        for (u32 j = 0; j < VECTOR; j++) {
            Vector column;
            #pragma unroll
            for (u32 i = 0; i < VECTOR; i++) column.at[i] = held[k][i].at[j];
            tile[(across * VECTOR + j) * DOWN + (down ^ (across & EXCHANGE))] = column;
        }
    }
    __syncthreads();
    #pragma unroll
    for (u32 k = 0; k < LOADS * VECTOR; k++) {
        u32 place = k * THREADS + threadIdx.x, down = place % DOWN, line = place / DOWN;
        if (is_column(x + line) && is_row(y + down * VECTOR))
            *(Vector*)(to + (y + down * VECTOR) + (x + line) * u64(WRITE))
                = tile[line * DOWN + (down ^ (line / VECTOR & EXCHANGE))];
    }
}
