// One step of an optimizer for many parameters at once. A block has CHUNK elements of one parameter.
//
// RULE: 0 gradient descent, 1 Adagrad, 2 Adam and AdamW. Numbers: see `Rule` in mod.rs.

struct Parameter {
    float *weights;
    const float *gradient;
    float *first;
    float *second;
    unsigned int len;
    // Number of blocks of this parameter and those before.
    unsigned int end;
};

struct Parameters {
    Parameter at[COUNT];
};

__device__ __forceinline__ void step(float &p, float g, float &m, float &v, const float *numbers) {
#if RULE == 0
    p = p - numbers[0] * g;
#elif RULE == 1
    m = m + g * g;
    p = p - numbers[0] * (g / (sqrtf(m) + numbers[1 * PITCH]));
#else
    const float take1 = numbers[0], keep2 = numbers[1 * PITCH], take2 = numbers[2 * PITCH];
    const float rate = numbers[3 * PITCH], root = numbers[4 * PITCH], eps = numbers[5 * PITCH];
    m = m + take1 * (g - m);
    v = keep2 * v + take2 * (g * g);
    p = p * numbers[6 * PITCH] - rate * (m / (sqrtf(v) / root + eps));
#endif
}

extern "C" __global__ void __launch_bounds__(THREADS) dense_step(const Parameters all, const float *numbers) {
    int which = 0;
    while (which + 1 < COUNT && blockIdx.x >= all.at[which].end) {
        which++;
    }
    const Parameter own = all.at[which];
    const unsigned int before = which == 0 ? 0 : all.at[which - 1].end;
    const unsigned long long start = (unsigned long long)(blockIdx.x - before) * CHUNK;
    for (unsigned int at = threadIdx.x * 4; at < CHUNK; at += THREADS * 4) {
        const unsigned long long first = start + at;
        if (first + 4 <= own.len) {
            float4 p = *reinterpret_cast<float4 *>(own.weights + first);
            const float4 g = *reinterpret_cast<const float4 *>(own.gradient + first);
            float4 m = make_float4(0, 0, 0, 0), v = m;
#if RULE >= 1
            m = *reinterpret_cast<float4 *>(own.first + first);
#endif
#if RULE == 2
            v = *reinterpret_cast<float4 *>(own.second + first);
#endif
            step(p.x, g.x, m.x, v.x, numbers);
            step(p.y, g.y, m.y, v.y, numbers);
            step(p.z, g.z, m.z, v.z, numbers);
            step(p.w, g.w, m.w, v.w, numbers);
            *reinterpret_cast<float4 *>(own.weights + first) = p;
#if RULE >= 1
            *reinterpret_cast<float4 *>(own.first + first) = m;
#endif
#if RULE == 2
            *reinterpret_cast<float4 *>(own.second + first) = v;
#endif
        } else {
            for (unsigned long long one = first; one < own.len; one++) {
                float m = 0.0f, v = 0.0f;
#if RULE >= 1
                m = own.first[one];
#endif
#if RULE == 2
                v = own.second[one];
#endif
                step(own.weights[one], own.gradient[one], m, v, numbers);
#if RULE >= 1
                own.first[one] = m;
#endif
#if RULE == 2
                own.second[one] = v;
#endif
            }
        }
    }
}
