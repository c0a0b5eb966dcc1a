// Floats in memory: of 32 bits, or of their upper 16 bits (bfloat16). Arithmetic is in 32 bits.

typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

struct Bf16 {
    u16 bits;
};

// 2 N bfloat16 numbers, the first of each pair in the lower half of a word.
template <u32 N> struct alignas(N < 4 ? 4 * N : 16) Words {
    u32 at[N];
};

// N floats.
template <u32 N> struct alignas(N < 4 ? 4 * N : 16) Floats {
    float at[N];
};

// Stores words to global memory by one instruction, which the compiler may split otherwise. The kernel does not read them
// again, so that loads may be moved ahead of it.
__device__ __forceinline__ void store_words(void *to, const Words<4> &from) {
    asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};"
                 : : "l"(to), "r"(from.at[0]), "r"(from.at[1]), "r"(from.at[2]), "r"(from.at[3]));
}

__device__ __forceinline__ void store_words(void *to, const Words<2> &from) {
    asm volatile("st.global.v2.u32 [%0], {%1, %2};" : : "l"(to), "r"(from.at[0]), "r"(from.at[1]));
}

__device__ __forceinline__ void store_words(void *to, const Words<1> &from) {
    asm volatile("st.global.u32 [%0], %1;" : : "l"(to), "r"(from.at[0]));
}

__device__ __forceinline__ float widen(float value) { return value; }

__device__ __forceinline__ float widen(Bf16 value) { return __uint_as_float((u32)value.bits << 16); }

__device__ __forceinline__ float low_of(u32 word) { return __uint_as_float(word << 16); }

__device__ __forceinline__ float high_of(u32 word) { return __uint_as_float(word & 0xffff0000u); }

// Rounds to nearest, ties to even.
__device__ __forceinline__ u32 pack(float low, float high) {
    u32 word;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
    return word;
}

// Loads N neighbours: 1 or an even number, aligned to their size or 16 bytes, whichever is less.
template <u32 N> __device__ __forceinline__ Floats<N> load_floats(const float *from) {
    return *reinterpret_cast<const Floats<N> *>(from);
}

template <u32 N> __device__ __forceinline__ Floats<N> load_floats(const Bf16 *from) {
    Floats<N> to;
    if constexpr (N == 1) {
        to.at[0] = widen(*from);
    } else {
        const Words<N / 2> words = *reinterpret_cast<const Words<N / 2> *>(from);
#pragma unroll
        for (u32 i = 0; i < N / 2; i++) to.at[2 * i] = low_of(words.at[i]), to.at[2 * i + 1] = high_of(words.at[i]);
    }
    return to;
}

// Stores N neighbours, aligned as above; more than one in global memory.
template <u32 N> __device__ __forceinline__ void store_floats(float *to, const Floats<N> &from) {
    *reinterpret_cast<Floats<N> *>(to) = from;
}

template <u32 N> __device__ __forceinline__ void store_floats(Bf16 *to, const Floats<N> &from) {
    if constexpr (N == 1) {
        to->bits = (u16)pack(from.at[0], 0.0f);
    } else {
        Words<N / 2> words;
#pragma unroll
        for (u32 i = 0; i < N / 2; i++) words.at[i] = pack(from.at[2 * i], from.at[2 * i + 1]);
        store_words(to, words);
    }
}
