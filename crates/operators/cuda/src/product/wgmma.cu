// Rungs 4 and 5 of C = A B^T: `wgmma`, the matrix instruction of four warps, on tiles that the copy engine brings.
//
//   product   one block a multiprocessor, which takes tiles of 128 x WIDE in turn. 384 threads: one of the first four warps
//             asks the copy engine for tiles of A and B, STAGES steps of 128 bytes a row ahead; two groups of four warps
//             multiply, each 64 rows. Tiles arrive with their 16-byte places exchanged as the instruction wants them, and
//             say so on a barrier of their stage (`full`); both groups say on another (`empty`) when they have read one.
//             While a group stores its tile, the next one's steps are on their way.
//
// The accumulators of a group are the registers of its threads: WIDE / 2 each, so the copying warps give theirs away.
//
// Macros: WIDE (64, 128, 256), STAGES, BAND.
//
// Comes after product.cuh. Rows of A and B begin at multiples of 16 bytes.

#define TALL 128
#define ROW 128
#define STAGE ((TALL + WIDE) * ROW)
#define STEP (ROW / sizeof(Element))

// How the copy engine finds a matrix: written by the driver.
struct __align__(64) TensorMap {
    u64 words[16];
};

extern __shared__ u8 room[];

__device__ __forceinline__ void make_barrier(u32 barrier, u32 arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" : : "r"(barrier), "r"(arrivals) : "memory");
}

__device__ __forceinline__ void arrive(u32 barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" : : "r"(barrier) : "memory");
}

__device__ __forceinline__ void expect(u32 barrier, u32 bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" : : "r"(barrier), "r"(bytes) : "memory");
}

__device__ __forceinline__ void wait_for(u32 barrier, u32 parity) {
    u32 done;
    do {
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                     : "=r"(done) : "r"(barrier), "r"(parity) : "memory");
    } while (done == 0);
}

__device__ __forceinline__ void copy_tile(u32 to, const TensorMap &map, u32 column, u32 row, u32 barrier) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
        : : "r"(to), "l"(&map), "r"(column), "r"(row), "r"(barrier) : "memory");
}

// Where a tile of rows of 128 bytes lies: its places exchanged within groups of eight rows, which are 1024 bytes apart.
__device__ __forceinline__ u64 describe(u32 address) {
    return (u64)(address & 0x3ffff) >> 4 | 1ull << 16 | 64ull << 32 | 1ull << 62;
}

#define FOUR(i) "+f"(sum[i]), "+f"(sum[i + 1]), "+f"(sum[i + 2]), "+f"(sum[i + 3])
#define SIXTEEN(i) FOUR(i), FOUR(i + 4), FOUR(i + 8), FOUR(i + 12)
#if WIDE == 64
#define SUMS SIXTEEN(0), SIXTEEN(16)
#define NAMES \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define LEFT "%32"
#define RIGHT "%33"
#define KEEP "%34"
#define WIDTH "n64"
#elif WIDE == 128
#define SUMS SIXTEEN(0), SIXTEEN(16), SIXTEEN(32), SIXTEEN(48)
#define NAMES \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define LEFT "%64"
#define RIGHT "%65"
#define KEEP "%66"
#define WIDTH "n128"
#else
#define SUMS SIXTEEN(0), SIXTEEN(16), SIXTEEN(32), SIXTEEN(48), SIXTEEN(64), SIXTEEN(80), SIXTEEN(96), SIXTEEN(112)
#define NAMES \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, " \
    "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, " \
    "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, " \
    "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, " \
    "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define LEFT "%128"
#define RIGHT "%129"
#define KEEP "%130"
#define WIDTH "n256"
#endif
#if TYPE == 0
#define MULTIPLY "wgmma.mma_async.sync.aligned.m64" WIDTH "k8.f32.tf32.tf32"
#define AS_THEY_LIE "1, 1"
#else
#define MULTIPLY "wgmma.mma_async.sync.aligned.m64" WIDTH "k16.f32.bf16.bf16"
#define AS_THEY_LIE "1, 1, 0, 0"
#endif

// Adds the product of 64 rows of A and WIDE of B, 32 bytes of each; in place of the sums that were, where they are not
// kept.
__device__ __forceinline__ void multiply(float (&sum)[WIDE / 2], u64 left, u64 right, u32 keep) {
    asm volatile("{ .reg .pred p; setp.ne.b32 p, " KEEP ", 0; " MULTIPLY " {" NAMES "}, " LEFT ", " RIGHT ", p, " AS_THEY_LIE
                 "; }" : SUMS : "l"(left), "l"(right), "r"(keep));
}

// One group's 64 rows of a tile: a thread has two neighbours of two rows of every 8 columns.
__device__ __forceinline__ void store_tile(
    Element *c, const Sizes &sizes, u32 row, u32 column, const float (&sum)[WIDE / 2]) {
    u32 lane = threadIdx.x % 32;
    row += threadIdx.x % 128 / 32 * 16 + lane / 4;
    bool whole = column + WIDE <= sizes.n && sizes.pitch % 4 == 0;
#if TYPE == 1
    if (whole) {
        // Neighbouring lanes exchange halves of two times 8 columns, so that each has four neighbours of one of them.
        u32 odd = lane % 2;
#pragma unroll
        for (u32 j = 0; j < WIDE / 2; j += 8) {
#pragma unroll
            for (u32 half = 0; half < 2; half++) {
                u32 first = narrow(sum[j + 2 * half]) | (u32)narrow(sum[j + 2 * half + 1]) << 16;
                u32 second = narrow(sum[j + 4 + 2 * half]) | (u32)narrow(sum[j + 4 + 2 * half + 1]) << 16;
                u32 other = __shfl_xor_sync(0xffffffffu, odd ? first : second, 1);
                u32 at = column + (j / 4 + odd) * 8 + lane % 4 / 2 * 4;
                uint2 four = odd ? make_uint2(other, second) : make_uint2(first, other);
                if (row + 8 * half < sizes.m) *(uint2 *)(c + (u64)(row + 8 * half) * sizes.pitch + at) = four;
            }
        }
        return;
    }
#else
    if (whole) {
#pragma unroll
        for (u32 j = 0; j < WIDE / 2; j += 4) {
#pragma unroll
            for (u32 half = 0; half < 2; half++) {
                float2 two = make_float2(sum[j + 2 * half], sum[j + 2 * half + 1]);
                Element *at = c + (u64)(row + 8 * half) * sizes.pitch + column + j * 2 + lane % 4 * 2;
                if (row + 8 * half < sizes.m) *(float2 *)at = two;
            }
        }
        return;
    }
#endif
#pragma unroll
    for (u32 j = 0; j < WIDE / 2; j += 4) {
        store_two(c, sizes, row, column + j * 2 + lane % 4 * 2, sum[j], sum[j + 1]);
        store_two(c, sizes, row + 8, column + j * 2 + lane % 4 * 2, sum[j + 2], sum[j + 3]);
    }
}

// A stage, and the parity of the phase that its barriers are in.
struct Turn {
    u32 stage, parity;
    __device__ __forceinline__ void next() {
        if (++stage == STAGES) stage = 0, parity ^= 1;
    }
};

extern "C" __global__ void __launch_bounds__(384, 1) product(
    const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, Element *c, Sizes sizes, u32 tiles) {
    u32 base = (shared_address(room) + 1023) & ~1023u;
    u32 full = base + STAGES * STAGE, empty = full + 8 * STAGES;
    if (threadIdx.x == 0) {
        for (u32 stage = 0; stage < STAGES; stage++) {
            make_barrier(full + 8 * stage, 1);
            make_barrier(empty + 8 * stage, 2);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" : : : "memory");
    }
    __syncthreads();
    u32 steps = (sizes.k + STEP - 1) / STEP;
    Turn turn = {0, 0};
    if (threadIdx.x < 128) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == 0) {
            for (u32 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
                Place place = place_of<TALL, WIDE, BAND>(tile, sizes);
                for (u32 step = 0; step < steps; step++, turn.next()) {
                    u32 to = base + turn.stage * STAGE, barrier = full + 8 * turn.stage;
                    wait_for(empty + 8 * turn.stage, turn.parity ^ 1);
                    expect(barrier, STAGE);
                    copy_tile(to, a, step * STEP, place.row, barrier);
                    copy_tile(to + TALL * ROW, b, step * STEP, place.column, barrier);
                }
            }
        }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        u32 group = threadIdx.x / 128 - 1;
        bool speaks = threadIdx.x % 128 == 0;
        float sum[WIDE / 2];
        for (u32 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
            Place place = place_of<TALL, WIDE, BAND>(tile, sizes);
            u32 before = turn.stage;
            for (u32 step = 0; step < steps; step++, turn.next()) {
                wait_for(full + 8 * turn.stage, turn.parity);
                u32 at = base + turn.stage * STAGE;
                u64 left = describe(at + group * 64 * ROW), right = describe(at + TALL * ROW);
                asm volatile("wgmma.fence.sync.aligned;" : : : "memory");
#pragma unroll
                for (u32 k = 0; k < 4; k++) multiply(sum, left + 2 * k, right + 2 * k, step + k);
                asm volatile("wgmma.commit_group.sync.aligned;" : : : "memory");
                asm volatile("wgmma.wait_group.sync.aligned 1;" : : : "memory");
                if (speaks && step > 0) arrive(empty + 8 * before);
                before = turn.stage;
            }
            asm volatile("wgmma.wait_group.sync.aligned 0;" : : : "memory");
            if (speaks) arrive(empty + 8 * before);
            store_tile(c, sizes, place.row + group * 64, place.column, sum);
        }
    }
}
