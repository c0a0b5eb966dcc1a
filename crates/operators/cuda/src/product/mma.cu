// Rung 3 of C = A B^T: `mma`, the matrix instruction of one warp.
//
//   product   256 threads a tile of 128 x 128: 2 x 4 warps of 64 x 32. K goes in steps of 128 bytes a row, three of them
//             on their way or in use (cp.async). `ldmatrix` reads 16 bytes of a row a lane; the eight 16-byte places of a
//             row are exchanged by XOR with the row, so that eight rows of one column lie in different banks.
//
// A row's 16 bytes are 8 numbers of bf16 or 4 of f32, and the fragments of both instructions are the same bytes.
//
// Comes after product.cuh. Rows of A and B begin at multiples of 16 bytes.

#define SIDE 128
#define ROW 128
#define STAGES 3
#define STAGE (2 * SIDE * ROW)
#define PIECE (16 / sizeof(Element))
#define STEP (ROW / sizeof(Element))

extern __shared__ __align__(128) u8 room[];

// 16 bytes to shared memory, zeros where they are not there.
__device__ __forceinline__ void copy_piece(u32 to, const Element *from, bool there) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" : : "r"(to), "l"(from), "r"(there ? 16 : 0) : "memory");
}

__device__ __forceinline__ u32 piece_at(u32 row, u32 piece) { return row * ROW + ((piece ^ (row & 7)) << 4); }

__device__ __forceinline__ void load_rows(u32 to, const Element *from, u32 first, u32 rows, u32 column, u32 columns) {
#pragma unroll
    for (u32 i = 0; i < SIDE * 8 / 256; i++) {
        u32 row = i * 32 + threadIdx.x / 8, piece = threadIdx.x % 8;
        u32 at = column + piece * PIECE;
        bool there = first + row < rows && at < columns;
        copy_piece(to + piece_at(row, piece), there ? from + (u64)(first + row) * columns + at : from, there);
    }
}

__device__ __forceinline__ void load_matrices(u32 to[4], u32 from) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(from) : "memory");
}

__device__ __forceinline__ void multiply(float sum[4], const u32 a[4], u32 low, u32 high) {
#if TYPE == 0
#define SHAPE "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"
#else
#define SHAPE "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"
#endif
    asm volatile(SHAPE " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(low), "r"(high));
}

extern "C" __global__ void __launch_bounds__(256, 2) product(
    const Element *a, const Element *b, Element *c, Sizes sizes) {
    Place place = place_of<SIDE, SIDE, 16>(blockIdx.x, sizes);
    u32 base = shared_address(room);
    u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    u32 top = warp / 4 * 64, side = warp % 4 * 32;
    u32 steps = (sizes.k + STEP - 1) / STEP;
    auto load = [&](u32 step) {
        if (step < steps) {
            u32 to = base + step % STAGES * STAGE;
            load_rows(to, a, place.row, sizes.m, step * STEP, sizes.k);
            load_rows(to + SIDE * ROW, b, place.column, sizes.n, step * STEP, sizes.k);
        }
        asm volatile("cp.async.commit_group;" : : : "memory");
    };
#pragma unroll
    for (u32 step = 0; step < STAGES - 1; step++) load(step);
    float sums[4][4][4] = {};
    for (u32 step = 0; step < steps; step++) {
        asm volatile("cp.async.wait_group %0;" : : "n"(STAGES - 2) : "memory");
        __syncthreads();
        load(step + STAGES - 1);
        u32 left = base + step % STAGES * STAGE, right = left + SIDE * ROW;
#pragma unroll
        for (u32 k = 0; k < 4; k++) {
            u32 of_a[4][4], of_b[2][4];
#pragma unroll
            for (u32 i = 0; i < 4; i++) load_matrices(of_a[i], left + piece_at(top + i * 16 + lane % 16, 2 * k + lane / 16));
#pragma unroll
            for (u32 j = 0; j < 2; j++) {
                u32 row = side + j * 16 + lane / 16 * 8 + lane % 8;
                load_matrices(of_b[j], right + piece_at(row, 2 * k + lane / 8 % 2));
            }
#pragma unroll
            for (u32 i = 0; i < 4; i++) {
#pragma unroll
                for (u32 j = 0; j < 4; j++) {
                    multiply(sums[i][j], of_a[i], of_b[j / 2][j % 2 * 2], of_b[j / 2][j % 2 * 2 + 1]);
                }
            }
        }
    }
#pragma unroll
    for (u32 i = 0; i < 4; i++) {
#pragma unroll
        for (u32 j = 0; j < 4; j++) {
            u32 row = place.row + top + i * 16 + lane / 4, column = place.column + side + j * 8 + lane % 4 * 2;
            store_two(c, sizes, row, column, sums[i][j][0], sums[i][j][1]);
            store_two(c, sizes, row + 8, column, sums[i][j][2], sums[i][j][3]);
        }
    }
}
