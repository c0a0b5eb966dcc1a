// Rungs 1 and 2 of C = A B^T: by the ordinary units, in 32-bit floats.
//
//   product_threads   a thread an element, nothing shared: every factor comes through the caches. 16 x 16 threads.
//   product_tiles     a block a tile of 128 x 128, through shared memory; a thread 8 x 8 sums, so that each factor read
//                     from shared memory is used 8 times. 256 threads.
//
// Comes after product.cuh.

extern "C" __global__ void __launch_bounds__(256) product_threads(
    const Element *a, const Element *b, Element *c, Sizes sizes) {
    u32 column = blockIdx.x * 16 + threadIdx.x % 16, row = blockIdx.y * 16 + threadIdx.x / 16;
    if (row >= sizes.m || column >= sizes.n) return;
    const Element *left = a + (u64)row * sizes.k, *right = b + (u64)column * sizes.k;
    float sum = 0.0f;
    for (u32 k = 0; k < sizes.k; k++) sum = __fmaf_rn(widen(left[k]), widen(right[k]), sum);
    c[(u64)row * sizes.pitch + column] = narrow(sum);
}

#define SIDE 128
#define DEEP 8

// Loads 4 columns of a row of a tile, zeros beyond the end.
__device__ __forceinline__ void load_four(const Element *from, u32 row, u32 rows, u32 column, u32 columns, float to[4]) {
#pragma unroll
    for (u32 i = 0; i < 4; i++) {
        bool there = row < rows && column + i < columns;
        to[i] = there ? widen(from[(u64)row * columns + column + i]) : 0.0f;
    }
}

extern "C" __global__ void __launch_bounds__(256) product_tiles(
    const Element *a, const Element *b, Element *c, Sizes sizes) {
    __shared__ float left[2][DEEP][SIDE + 4], right[2][DEEP][SIDE + 4];
    Place place = place_of<SIDE, SIDE, 8>(blockIdx.x, sizes);
    u32 row = threadIdx.x / 2, part = threadIdx.x % 2 * 4;
    u32 x = threadIdx.x % 16, y = threadIdx.x / 16;
    float sums[8][8] = {}, next[2][4];
    u32 steps = (sizes.k + DEEP - 1) / DEEP;
    for (u32 step = 0; step <= steps; step++) {
        if (step < steps) {
            load_four(a, place.row + row, sizes.m, step * DEEP + part, sizes.k, next[0]);
            load_four(b, place.column + row, sizes.n, step * DEEP + part, sizes.k, next[1]);
        }
        if (step > 0) {
            u32 now = step % 2 ^ 1;
#pragma unroll
            for (u32 k = 0; k < DEEP; k++) {
                float of_a[8], of_b[8];
#pragma unroll
                for (u32 i = 0; i < 8; i++) {
                    of_a[i] = left[now][k][i / 4 * 64 + y * 4 + i % 4];
                    of_b[i] = right[now][k][i / 4 * 64 + x * 4 + i % 4];
                }
#pragma unroll
                for (u32 i = 0; i < 8; i++) {
#pragma unroll
                    for (u32 j = 0; j < 8; j++) sums[i][j] = __fmaf_rn(of_a[i], of_b[j], sums[i][j]);
                }
            }
        }
        if (step < steps) {
#pragma unroll
            for (u32 i = 0; i < 4; i++) {
                left[step % 2][part + i][row] = next[0][i];
                right[step % 2][part + i][row] = next[1][i];
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (u32 i = 0; i < 8; i++) {
#pragma unroll
        for (u32 j = 0; j < 8; j += 2) {
            store_two(c, sizes, place.row + i / 4 * 64 + y * 4 + i % 4, place.column + j / 4 * 64 + x * 4 + j % 4,
                      sums[i][j], sums[i][j + 1]);
        }
    }
}
