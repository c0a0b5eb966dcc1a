// What the kernels over grouped lookups share: types, and the layout of the sorted order.
//
// Sorted order. Each table's lookups fill places base .. base + count of one array of 64-bit pairs, the row (within
// the table) in the upper half and the payload (bag, or position within the table) in the lower; pairs rise by row,
// those of a row by position. Lookups of rows that are not there carry the row E and come last. A base is a multiple
// of WINDOW, so that a window of WINDOW places belongs to one table (`windows`, NOTHING where to none). WINDOW is given by the
// compilation.

typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define NOTHING 0xffffffffu

// Where a table's lookups are.
struct Plan {
    u64 begin;      // its first index among all
    u32 base;       // its first place in the sorted order
    u32 count;      // its lookups
    u32 first_tile; // its first tile of the sort
    u32 tiles;      // its tiles
};

// What is wrong with lookups; zeros: nothing. Places are stored as their complement, so that the first is the largest.
struct Report {
    u32 bad;        // lookups of rows that are not there
    u32 first_bad;  // the first of them, among all indices
    u32 first_fall; // the first offset that is smaller than the one before or larger than the number of indices
    u32 first_long; // the first table with more lookups than were promised
};

__device__ __forceinline__ void report_first(u32 *first, u32 place) { atomicMax(first, ~place); }

__device__ __forceinline__ u32 key_of(u64 pair) { return (u32)(pair >> 32); }
__device__ __forceinline__ u32 payload_of(u64 pair) { return (u32)pair; }
