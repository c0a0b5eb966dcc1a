// Dot interaction of 32-bit vectors, forward and backward: one block of WARPS warps a sample; grid B.
//
// A block copies its sample's F vectors of D floats to shared memory once. Forward, a lane takes 4 x 4 pairs at a time: of
// vectors a, a + T, a + 2 T, a + 3 T and b, b + T, ..., with T = F / 4 rounded up, so that the lanes' vectors are
// neighbours and their reads hit different banks. F = 27 gives 28 such tiles: 28 of 32 lanes have one, of which a
// seventh is computed twice. Each warp takes a share of the columns, and their sums are added in order. Backward, a lane
// takes 4 columns of 8 vectors, and each warp other vectors. Nothing parts the lanes.
//
// Comes after float.cuh and vectors.cuh. Macros: WARPS, ALIGNED (vectors may be read and written 16 bytes at a time).
// The last argument of both kernels is the number of samples, which the grid has too.

#define T ((F + 3) / 4)
#define TILES (T * (T + 1) / 2)
#define QUADS ((D + 3) / 4)
// Quads from vector to vector in shared memory: odd, so that neighbours lie in different banks.
#define PITCH (QUADS | 1)
#define SIDE ((F + 7) / 8 * 8)
#define ROW_LEN(i) ((i) + (SELF ? 1 : 0))

// Copies a sample's vectors, each filled up with zeros to whole quads, and waits for them.
__device__ __forceinline__ void load_vectors(const Vectors &of, u64 sample, float4 *to) {
    u32 lane = threadIdx.x & 31;
    for (u32 i = threadIdx.x / 32; i < F; i += WARPS) {
        const float *from = vector_of(of, sample, i);
        for (u32 c = lane; c < QUADS; c += 32) {
#if ALIGNED
            u32 at = (u32)__cvta_generic_to_shared(to + i * PITCH + c);
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(from + 4 * c) : "memory");
#else
            float v[4];
            for (u32 k = 0; k < 4; k++) v[k] = 4 * c + k < D ? from[4 * c + k] : 0.0f;
            to[i * PITCH + c] = make_float4(v[0], v[1], v[2], v[3]);
#endif
        }
    }
#if ALIGNED
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
    __syncthreads();
}

extern __shared__ float4 room[];

extern "C" __global__ void __launch_bounds__(32 * WARPS) interaction_forward(
    Vectors of, float *out, u64 out_stride, u32) {
    u32 lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    u32 sample = blockIdx.x;
    float4 *x = room;
    float *sums = (float *)(x + F * PITCH); // [WARPS, PAIRS]
    float *pairs = sums + warp * PAIRS;
    const u32 share = (QUADS + WARPS - 1) / WARPS;
    u32 begin = warp * share < QUADS ? warp * share : QUADS;
    u32 end = begin + share < QUADS ? begin + share : QUADS;
    load_vectors(of, sample, x);
    for (u32 tile = lane; tile < TILES; tile += 32) {
        u32 a = 0, b = tile;
        while (b > a) b -= ++a;
        const float4 *left[4], *right[4];
        float sum[4][4];
#pragma unroll
        for (u32 r = 0; r < 4; r++) {
            left[r] = x + (a + T * r < F ? a + T * r : F - 1) * PITCH;
            right[r] = x + (b + T * r < F ? b + T * r : F - 1) * PITCH;
#pragma unroll
            for (u32 s = 0; s < 4; s++) sum[r][s] = 0.0f;
        }
#pragma unroll 2
        for (u32 c = begin; c < end; c++) {
            float4 p[4], q[4];
#pragma unroll
            for (u32 r = 0; r < 4; r++) {
                p[r] = left[r][c];
                q[r] = right[r][c];
            }
#pragma unroll
            for (u32 r = 0; r < 4; r++) {
#pragma unroll
                for (u32 s = 0; s < 4; s++) {
                    sum[r][s] = fmaf(p[r].x, q[s].x, sum[r][s]);
                    sum[r][s] = fmaf(p[r].y, q[s].y, sum[r][s]);
                    sum[r][s] = fmaf(p[r].z, q[s].z, sum[r][s]);
                    sum[r][s] = fmaf(p[r].w, q[s].w, sum[r][s]);
                }
            }
        }
#pragma unroll
        for (u32 r = 0; r < 4; r++) {
#pragma unroll
            for (u32 s = 0; s < 4; s++) {
                u32 i = a + T * r, j = b + T * s;
                u32 high = i > j ? i : j, low = i > j ? j : i;
                // A tile of a vector's neighbours with themselves has each pair twice.
                bool once = (a != b || i >= j) && (SELF || i != j);
                if (high < F && once) pairs[ROW_START(high) + low] = sum[r][s];
            }
        }
    }
    __syncthreads();
    float *row = out + sample * out_stride;
    const float *dense = (const float *)x;
    for (u32 c = threadIdx.x; c < D; c += 32 * WARPS) row[c] = dense[c];
    for (u32 c = threadIdx.x; c < PAIRS; c += 32 * WARPS) {
        float sum = sums[c];
        for (u32 w = 1; w < WARPS; w++) sum += sums[w * PAIRS + c];
        row[D + c] = sum;
    }
}

// The gradient of the vectors: (G + G^T) X with the triangle G of the pairs' gradients, and the dense vector's own.
extern "C" __global__ void __launch_bounds__(32 * WARPS) interaction_backward(
    Vectors of, const float *gradient, u64 gradient_stride, Vectors to, u32) {
    u32 lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    u32 sample = blockIdx.x;
    float4 *x = room;
    float *square = (float *)(x + F * PITCH);
    const float *row = gradient + sample * gradient_stride;
    for (u32 i = warp; i < F; i += WARPS) {
        for (u32 j = lane; j < SIDE; j += 32) {
            // Lanes beyond the vectors fill up with zeros.
            u32 high = i > j ? i : j, low = i > j ? j : i;
            bool pair = j < F && (i != j || SELF);
            float g = pair ? row[D + ROW_START(high) + low] : 0.0f;
            square[i * SIDE + j] = i == j ? 2.0f * g : g;
        }
    }
    load_vectors(of, sample, x);
    for (u32 c = lane; c < QUADS; c += 32) {
        for (u32 first = 8 * warp; first < F; first += 8 * WARPS) {
            float sum[8][4];
#pragma unroll
            for (u32 i = 0; i < 8; i++) {
#pragma unroll
                for (u32 k = 0; k < 4; k++) sum[i][k] = 0.0f;
            }
            if (first == 0) {
#pragma unroll
                for (u32 k = 0; k < 4; k++) sum[0][k] = 4 * c + k < D ? row[4 * c + k] : 0.0f;
            }
#pragma unroll 3
            for (u32 j = 0; j < F; j++) {
                float4 v = x[j * PITCH + c];
                float4 low = *(const float4 *)(square + j * SIDE + first);
                float4 high = *(const float4 *)(square + j * SIDE + first + 4);
                float weight[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
                for (u32 i = 0; i < 8; i++) {
                    sum[i][0] = fmaf(weight[i], v.x, sum[i][0]);
                    sum[i][1] = fmaf(weight[i], v.y, sum[i][1]);
                    sum[i][2] = fmaf(weight[i], v.z, sum[i][2]);
                    sum[i][3] = fmaf(weight[i], v.w, sum[i][3]);
                }
            }
#pragma unroll
            for (u32 i = 0; i < 8; i++) {
                if (first + i >= F) break;
                float *at = vector_of(to, sample, first + i) + 4 * c;
#if ALIGNED
                *(float4 *)at = make_float4(sum[i][0], sum[i][1], sum[i][2], sum[i][3]);
#else
                for (u32 k = 0; k < 4; k++) {
                    if (4 * c + k < D) at[k] = sum[i][k];
                }
#endif
            }
        }
    }
}
