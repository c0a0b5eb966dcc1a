// What the kernels of C = A B^T share: A is [M, K], B [N, K], as a linear layer's input and weights lie; C is [M, N].
//
// Macros: TYPE (0 f32, whose products are of TF32 where the matrix units make them, 1 bf16).
//
// All kernels compute one tile of C a block at a time. The K columns of a tile are taken in steps of ROW bytes, so that
// the kernels that move bytes only are the same for both types.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#if TYPE == 0
typedef float Element;
__device__ __forceinline__ float widen(Element value) { return value; }
__device__ __forceinline__ Element narrow(float value) { return value; }
#else
typedef u16 Element;
__device__ __forceinline__ float widen(Element value) { return __uint_as_float((u32)value << 16); }
__device__ __forceinline__ u32 rounded(u32 bits) { return bits + 0x7fffu + (bits >> 16 & 1); }
__device__ __forceinline__ Element narrow(float value) {
    return value != value ? 0x7fff : (u16)(rounded(__float_as_uint(value)) >> 16);
}
#endif

struct Sizes {
    u32 m, n, k;
    u32 pitch; // elements from row to row of C
};

// Tile `number` of C in an order in which tiles at work together share rows of A and of B: bands of so many rows
// of tiles, each band column by column.
struct Place {
    u32 row, column;
};

template <u32 Height, u32 Width, u32 Band>
__device__ __forceinline__ Place place_of(u32 number, const Sizes &sizes) {
    u32 rows = (sizes.m + Height - 1) / Height, columns = (sizes.n + Width - 1) / Width;
    u32 first = number / (Band * columns) * Band;
    u32 height = rows - first < Band ? rows - first : Band;
    u32 within = number % (Band * columns);
    return Place{(first + within % height) * Height, within / height * Width};
}

__device__ __forceinline__ u32 shared_address(const void *at) { return (u32)__cvta_generic_to_shared(at); }

// Two neighbours of a row of C.
__device__ __forceinline__ void store_two(Element *c, const Sizes &sizes, u32 row, u32 column, float first, float second) {
    if (row >= sizes.m || column >= sizes.n) return;
    Element *at = c + (u64)row * sizes.pitch + column;
    at[0] = narrow(first);
    if (column + 1 < sizes.n) at[1] = narrow(second);
}
