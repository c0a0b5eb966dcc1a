// Rows of a table as every kernel here reads them: vectors of bytes, elements to floats, cache hints.
//
// Compiled with CACHE_ROWS: 0 where rows pass by the first-level cache. Needs no header of CUDA.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

enum Element { F32, F16, BF16, INT8_F16, INT8_F32, INT4_F16, INT4_F32 };

constexpr u32 ALL = 0xffffffffu;
constexpr u32 NO_ROW = 0xffffffffu;
// ---- memory

template <int SIZE> struct Vector;
template <> struct Vector<16> { u32 word[4]; };
template <> struct Vector<8> { u32 word[2]; };
template <> struct Vector<4> { u32 word[1]; };
template <> struct Vector<2> { u32 word[1]; };
template <> struct Vector<1> { u32 word[1]; };

#if CACHE_ROWS
#define ROW_LOAD "ld.global.nc"
#else
#define ROW_LOAD "ld.global.nc.L1::no_allocate"
#endif

__device__ __forceinline__ void load(Vector<16>& to, u64 from) {
    asm volatile(ROW_LOAD ".v4.u32 {%0, %1, %2, %3}, [%4];"
        : "=r"(to.word[0]), "=r"(to.word[1]), "=r"(to.word[2]), "=r"(to.word[3]) : "l"(from));
}
__device__ __forceinline__ void load(Vector<8>& to, u64 from) {
    asm volatile(ROW_LOAD ".v2.u32 {%0, %1}, [%2];" : "=r"(to.word[0]), "=r"(to.word[1]) : "l"(from));
}
__device__ __forceinline__ void load(Vector<4>& to, u64 from) {
    asm volatile(ROW_LOAD ".u32 %0, [%1];" : "=r"(to.word[0]) : "l"(from));
}
__device__ __forceinline__ void load(Vector<2>& to, u64 from) {
    asm volatile(ROW_LOAD ".u16 %0, [%1];" : "=r"(to.word[0]) : "l"(from));
}
__device__ __forceinline__ void load(Vector<1>& to, u64 from) {
    asm volatile(ROW_LOAD ".u8 %0, [%1];" : "=r"(to.word[0]) : "l"(from));
}

// What is read once: it shall not drive rows out of the caches.
__device__ __forceinline__ int once(const int* from) {
    int value;
    asm volatile("ld.global.nc.L1::evict_first.s32 %0, [%1];" : "=r"(value) : "l"(from));
    return value;
}
__device__ __forceinline__ long long once(const long long* from) {
    long long value;
    asm volatile("ld.global.nc.L1::evict_first.s64 %0, [%1];" : "=l"(value) : "l"(from));
    return value;
}
__device__ __forceinline__ float once(const float* from) {
    float value;
    asm volatile("ld.global.nc.L1::evict_first.f32 %0, [%1];" : "=f"(value) : "l"(from));
    return value;
}

__device__ __forceinline__ void stream(float* to, float a) {
    asm volatile("st.global.cs.f32 [%0], %1;" ::"l"(to), "f"(a) : "memory");
}
__device__ __forceinline__ void stream(float* to, float a, float b) {
    asm volatile("st.global.cs.v2.f32 [%0], {%1, %2};" ::"l"(to), "f"(a), "f"(b) : "memory");
}
__device__ __forceinline__ void stream(float* to, float a, float b, float c, float d) {
    asm volatile("st.global.cs.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(a), "f"(b), "f"(c), "f"(d) : "memory");
}

// ---- elements

__device__ __forceinline__ float half_bits(u32 bits) {
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(u16(bits)));
    return value;
}
template <int KIND> struct Codec {
    static constexpr int BITS = KIND == F32 ? 32 : KIND <= BF16 ? 16 : KIND <= INT8_F32 ? 8 : 4;
    static constexpr int HEADER = KIND == INT8_F16 || KIND == INT4_F16 ? 4
        : KIND == INT8_F32 || KIND == INT4_F32 ? 8 : 0;
    static constexpr bool INT8 = KIND == INT8_F16 || KIND == INT8_F32;
    static constexpr bool INT4 = KIND == INT4_F16 || KIND == INT4_F32;

    // Scale and bias at the start of a row, which begins at a multiple of ALIGN.
    template <int ALIGN> __device__ __forceinline__ static void header(u64 row, float& scale, float& bias) {
        u32 first = word<ALIGN>(row);
        if constexpr (HEADER == 4) {
            header(first, scale, bias);
        } else {
            scale = __uint_as_float(first);
            bias = __uint_as_float(word<ALIGN>(row + 4));
        }
    }

    template <int ALIGN> __device__ __forceinline__ static u32 word(u64 from) {
        if constexpr (ALIGN >= 4) {
            Vector<4> whole;
            load(whole, from);
            return whole.word[0];
        } else {
            Vector<1> byte[4];
            #pragma unroll
            for (int at = 0; at < 4; at++) load(byte[at], from + at);
            return byte[0].word[0] | byte[1].word[0] << 8 | byte[2].word[0] << 16 | byte[3].word[0] << 24;
        }
    }

    // The value of a vector's element, before scale and bias.
    template <class V> __device__ __forceinline__ static float value(const V& vector, int at) {
        if constexpr (BITS == 32) return __uint_as_float(vector.word[at]);
        u32 word = vector.word[at * BITS / 32];
        int place = at * BITS % 32;
        if constexpr (KIND == F16) return half_bits(word >> place & 0xffff);
        if constexpr (KIND == BF16) return __uint_as_float(word >> place << 16);
        // A whole number as the low bits of a power of two, which is then taken off.
        if constexpr (INT8) return __uint_as_float(__byte_perm(word, 0x4b000000u, 0x7440 + place / 8)) - 8388608.0f;
        // The power is such that the bits count ones where they are; those beyond a float's 23 bits are moved.
        if (place >= 20) word >>= 20, place -= 20;
        u32 power = (150u - place) << 23;
        return __uint_as_float((word & 0xfu << place) | power) - __uint_as_float(power);
    }

    // Scale and bias of one word of header.
    __device__ __forceinline__ static void header(u32 word, float& scale, float& bias) {
        scale = half_bits(word & 0xffff);
        bias = half_bits(word >> 16);
    }
};
