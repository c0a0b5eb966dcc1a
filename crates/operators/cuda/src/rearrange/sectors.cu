// A transpose whose lines of the output (rows lie together there, columns WRITE apart) begin anywhere within sectors.
//
// Grid     x: tiles of TILE_COLUMNS x TILE_ROWS, those along rows first; then columns, then the other axes, the last first.
// Sectors  each line of a tile begins and ends where a sector of the output does, so no two blocks write parts of one. How far a
//          line is moved for that depends on its column: before(column) elements towards the first row. A tile so takes some
//          elements of up to SECTOR - 1 rows more, of its neighbour's rows.
// Lanes    neighbours along columns read, neighbours along rows write. Tiles of any sides: all is counted beforehand.
// Banks    lines of the tile in shared memory have an odd number of elements.
//
// Compiled with: ELEMENT (type), SECTOR (elements, a power of two; one: lines are not moved), TILE_COLUMNS, TILE_ROWS, THREADS,
// COLUMNS, ROWS, READ, WRITE, FROM and TO (offsets), AXES (a list of AXIS(size, read, write), the last axis first).

typedef unsigned int u32;
typedef unsigned long long u64;

constexpr u32 MOVED = SECTOR - 1, TALL = TILE_ROWS + MOVED, PITCH = TALL | 1;
constexpr u32 LOADS = (TILE_COLUMNS * TALL + THREADS - 1) / THREADS;
constexpr u32 STORES = (TILE_COLUMNS * TILE_ROWS + THREADS - 1) / THREADS;
constexpr u32 COLUMN_TILES = (COLUMNS + TILE_COLUMNS - 1) / TILE_COLUMNS, ROW_TILES = (ROWS + MOVED + TILE_ROWS - 1) / TILE_ROWS;

extern "C" __global__ void __launch_bounds__(THREADS) transpose(const ELEMENT* __restrict__ from, ELEMENT* __restrict__ to) {
    __shared__ ELEMENT tile[TILE_COLUMNS * PITCH];
    u32 at = blockIdx.x;
    // Rows are counted from the first sector on: those before the first wrap and are beyond ROWS.
    u32 y = at % ROW_TILES * TILE_ROWS;
    at /= ROW_TILES;
    u32 x = at % COLUMN_TILES * TILE_COLUMNS;
    at /= COLUMN_TILES;
    from += FROM;
    to += TO;
#define AXIS(size, read, write) from += at % size * u64(read), to += at % size * u64(write), at /= size;
    AXES
    // Elements between the beginning of a sector and that of a column's line.
    const u32 first = u32(u64(to) / sizeof(ELEMENT));
    auto before = [&](u32 column) { return (first + column * u32(WRITE)) % SECTOR; };

    // All loads are under way before the first is waited for.
    ELEMENT held[LOADS];
    #pragma unroll
    for (u32 k = 0; k < LOADS; k++) {
        u32 place = k * THREADS + threadIdx.x, column = x + place % TILE_COLUMNS, down = place / TILE_COLUMNS;
        u32 row = y + down - MOVED, inside = down + before(column) - MOVED;
        if (column < COLUMNS && row < ROWS && inside < TILE_ROWS) held[k] = from[column + row * u64(READ)];
    }
    #pragma unroll
    for (u32 k = 0; k < LOADS; k++) {
        u32 place = k * THREADS + threadIdx.x;
        if (place < TILE_COLUMNS * TALL) tile[place % TILE_COLUMNS * PITCH + place / TILE_COLUMNS] = held[k];
    }
    __syncthreads();
    #pragma unroll
    for (u32 k = 0; k < STORES; k++) {
        u32 place = k * THREADS + threadIdx.x, line = place / TILE_ROWS, column = x + line;
        u32 down = place % TILE_ROWS - before(column), row = y + down;
        if (line < TILE_COLUMNS && column < COLUMNS && row < ROWS)
            to[row + column * u64(WRITE)] = tile[line * PITCH + down + MOVED];
    }
}
