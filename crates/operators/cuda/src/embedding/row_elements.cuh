// Weights of each type: loads, stores and roundings. The conversions are those of the CPU's operators, bit by bit.
//
// Comes after row_lanes.cuh.

#if ELEMENT == 0
typedef float Element;
typedef Vec Raw;
__device__ __forceinline__ Raw load_raw(const Element *from) { return load_once(from); }
__device__ __forceinline__ float widen_one(float value) { return value; }
__device__ __forceinline__ Vec widen(const Raw &raw) { return raw; }
__device__ __forceinline__ void store_row(Element *to, const Vec &v, u64, u32) { store_once(to, v); }
#else
typedef u16 Element;
struct Raw {
    u16 at[VECTOR];
};

__device__ __forceinline__ Raw load_raw(const Element *from) {
    Raw to;
#if VECTOR == 4
    uint2 v = __ldcs((const uint2 *)from);
    to.at[0] = (u16)v.x, to.at[1] = (u16)(v.x >> 16), to.at[2] = (u16)v.y, to.at[3] = (u16)(v.y >> 16);
#elif VECTOR == 2
    u32 v = __ldcs((const u32 *)from);
    to.at[0] = (u16)v, to.at[1] = (u16)(v >> 16);
#else
    to.at[0] = *from;
#endif
    return to;
}

__device__ __forceinline__ float widen_one(u32 bits) {
#if ELEMENT == 2
    return __uint_as_float(bits << 16);
#else
    u32 sign = (bits & 0x8000) << 16, rest = (bits & 0x7fff) << 13;
    // As if the exponent were single precision's, then scaled by 2^112: right for normal and subnormal numbers.
    u32 finite = __float_as_uint(__fmul_rn(__uint_as_float(rest), __uint_as_float((127u + 112u) << 23)));
    u32 special = rest | 0x7f800000u;
    return __uint_as_float(sign | ((bits & 0x7c00) == 0x7c00 ? special : finite));
#endif
}

#if ELEMENT == 1
// A magnitude rounded in both ways: right where it is at least 2^-14, and right where it is below.
__device__ __forceinline__ u32 join_half(u32 bits, u32 normal, u32 small) {
    u32 magnitude = bits & 0x7fffffffu;
    u32 finite = magnitude < (127u - 14u) << 23 ? small : normal < 0x7c00u ? normal : 0x7c00u;
    u32 nan = 0x7e00u | (magnitude >> 13 & 0x3ffu);
    return (bits >> 16 & 0x8000u) | (magnitude > 0x7f800000u ? nan : finite);
}

__device__ __forceinline__ u32 above(u32 value, u32 floor) { return value > floor ? value - floor : 0; }
#endif

__device__ __forceinline__ u32 nearest(float wide) {
    u32 bits = __float_as_uint(wide);
#if ELEMENT == 2
    u32 rounded = (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
    return wide != wide ? bits >> 16 | 0x40u : rounded;
#else
    u32 magnitude = bits & 0x7fffffffu;
    u32 rounded = magnitude + 0xfffu + (magnitude >> 13 & 1);
    // Adding 0.5 leaves single precision as many bits as a subnormal half has.
    u32 small = __float_as_uint(__fadd_rn(__uint_as_float(magnitude), 0.5f)) - 0x3f000000u;
    return join_half(bits, above(rounded >> 13, 112u << 10), small);
#endif
}

__device__ __forceinline__ u32 stochastic(float wide, u32 random) {
    u32 bits = __float_as_uint(wide);
#if ELEMENT == 2
    bool finite = (bits & 0x7f800000u) != 0x7f800000u;
    return finite ? (bits + (random & 0xffffu)) >> 16 : bits >> 16 | (wide != wide ? 0x40u : 0);
#else
    u32 magnitude = bits & 0x7fffffffu;
    u32 normal = above((magnitude + (random & 0x1fffu)) >> 13, 112u << 10);
    // In units of the smallest half, plus a random share of one.
    float share = __fmul_rn((float)(random & 0x1fffu), 1.0f / 8192.0f);
    float least = fminf(__uint_as_float(magnitude), 1.0f);
    u32 small = (u32)__fadd_rn(__fmul_rn(least, __uint_as_float((127u + 24u) << 23)), share);
    return join_half(bits, magnitude == 0x7f800000u ? 0x7c00u : normal, small);
#endif
}

__device__ __forceinline__ Vec widen(const Raw &raw) {
    Vec v;
#pragma unroll
    for (u32 i = 0; i < VECTOR; i++) v.at[i] = widen_one(raw.at[i]);
    return v;
}

// The random bits of a column: the finalizer of MurmurHash3 over a counter that starts at random.
__device__ __forceinline__ u32 roll(u64 dice, u32 column) {
    u32 bits = (u32)dice + column * 0x9e3779b9u;
    bits = (bits ^ bits >> 16) * 0x85ebca6bu;
    bits = (bits ^ bits >> 13) * 0xc2b2ae35u;
    return (bits ^ bits >> 16) ^ (u32)(dice >> 32);
}

__device__ __forceinline__ void store_row(Element *to, const Vec &v, u64 dice, u32 column) {
    u32 bits[VECTOR];
#pragma unroll
    for (u32 i = 0; i < VECTOR; i++) {
        bits[i] = (STOCHASTIC ? stochastic(v.at[i], roll(dice, column + i)) : nearest(v.at[i])) & 0xffffu;
    }
#if VECTOR == 4
    __stcs((uint2 *)to, make_uint2(bits[0] | bits[1] << 16, bits[2] | bits[3] << 16));
#elif VECTOR == 2
    __stcs((u32 *)to, bits[0] | bits[1] << 16);
#else
    *to = (u16)bits[0];
#endif
}
#endif

