// Slope of a ReLU and column sums in one pass: dz = y > 0 ? dy : 0, and parts of the sums over rows.
//
// A block has ROWS x LANES threads. A lane has VECTOR neighbouring columns; the rows of a block are dealt to its ROWS
// groups of lanes. Sums are added in one order: rows of a group, groups of a block, blocks. They are of numbers that are
// not rounded to the type of dz.
//
// Comes after float.cuh. GRADIENT: the type of dy. RESULT: that of y and dz. RELU: 1 with a slope. STORES: 1 where dz is
// stored. SUMS: 1 with sums.

typedef unsigned long long Size;

// dy, y, dz: [rows, COLUMNS] with rows dy_stride, y_stride, dz_stride apart. parts: [gridDim.y, COLUMNS].
extern "C" __global__ void __launch_bounds__(ROWS *LANES)
    slope(const GRADIENT *dy, Size dy_stride, const RESULT *y, Size y_stride, RESULT *dz, Size dz_stride, float *parts,
          Size rows, Size rows_of_block) {
    const int lane = threadIdx.x % LANES, group = threadIdx.x / LANES;
    const int column = (blockIdx.x * LANES + lane) * VECTOR;
    const bool inside = column < COLUMNS;
    const Size first = blockIdx.y * rows_of_block;
    const Size end = first + rows_of_block < rows ? first + rows_of_block : rows;
    float sum[VECTOR] = {};
    if (inside) {
#pragma unroll 4
        for (Size row = first + group; row < end; row += ROWS) {
            Floats<VECTOR> gradient = load_floats<VECTOR>(dy + row * dy_stride + column);
#if RELU
            const Floats<VECTOR> output = load_floats<VECTOR>(y + row * y_stride + column);
#pragma unroll
            for (int k = 0; k < VECTOR; k++) {
                gradient.at[k] = output.at[k] > 0.0f ? gradient.at[k] : 0.0f;
            }
#endif
#if STORES
            store_floats<VECTOR>(dz + row * dz_stride + column, gradient);
#endif
#pragma unroll
            for (int k = 0; k < VECTOR; k++) {
                sum[k] += gradient.at[k];
            }
        }
    }
#if SUMS
    __shared__ float all[ROWS][LANES * VECTOR];
#pragma unroll
    for (int k = 0; k < VECTOR; k++) {
        all[group][lane * VECTOR + k] = sum[k];
    }
    __syncthreads();
    for (int at = threadIdx.x; at < LANES * VECTOR; at += ROWS * LANES) {
        const int to = blockIdx.x * LANES * VECTOR + at;
        if (to < COLUMNS) {
            float total = 0.0f;
            for (int other = 0; other < ROWS; other++) {
                total += all[other][at];
            }
            parts[blockIdx.y * (Size)COLUMNS + to] = total;
        }
    }
#endif
}

// sums[column] = sum of parts[., column]. A block has 32 columns and 8 groups of parts.
extern "C" __global__ void __launch_bounds__(256) add_parts(const float *parts, int count, float *sums) {
    __shared__ double all[8][32];
    const int lane = threadIdx.x % 32, group = threadIdx.x / 32;
    const int column = blockIdx.x * 32 + lane;
    double sum = 0.0;
    if (column < COLUMNS) {
#pragma unroll 8
        for (int part = group; part < count; part += 8) {
            sum += parts[(Size)part * COLUMNS + column];
        }
    }
    all[group][lane] = sum;
    __syncthreads();
    if (group == 0 && column < COLUMNS) {
        for (int other = 1; other < 8; other++) {
            sum += all[other][lane];
        }
        sums[column] = (float)sum;
    }
}
