// A cache of the rows of tables in host memory: which rows a batch wants, which of them are held, which make room,
// where each lookup's row lies, and the rows' travel.
//
// Sets of 32 places; row r belongs to set r mod `sets`, so that neighbouring sets have neighbouring rows. A row's key is
// set * span + r / sets. A batch sets one bit for each wanted key, so that a set reads its wanted rows in order from
// one place, and nothing depends on the order in which threads run.
//
//   mark       grid (x lookups, y tables), 256 threads: a lane takes a lookup and sets its bit if it is not set yet, so
//              that hot rows cost reads only. Lanes part where a lookup is out of range.
//   plan       grid (x sets, y tables), 256 threads: a warp takes a set, a lane one of its places. Warps whose set is
//              not wanted end at once; the others take each missing row in turn, all lanes at work on its victim.
//   translate  grid (x lookups, y tables), 256 threads: 8 lanes find a lookup's row among 32 places with one 128-byte
//              line; 32 lookups a warp. Lanes of lookups out of range idle.
//   travel     grid (x sets, y tables), 256 threads: a group of lanes takes a row, 16 bytes a lane; few blocks, enough
//              for the link's latency, so that others have the multiprocessors. Groups without a row idle.
//   collect    256 threads, a lane takes a place: finds changed rows to be written back.
//
// Compiled for GPUs of capability 8.0 and later with LFU (0 or 1), and the types INDEX and OFFSET.

typedef unsigned int u32;
typedef unsigned long long u64;

constexpr u32 ALL = 0xffffffffu;
constexpr u32 NO_ROW = 0xffffffffu;
constexpr u32 DIRTY = 0x80000000u;
constexpr u32 WARPS = 8;

// One array whose rows travel: weights, or an optimizer's state. `unit` bytes a lane, `group` lanes a row.
struct Plane {
    u64 host, slots;
    u32 host_pitch, slot_pitch, vectors, unit_and_group;
};

struct Table {
    u32 rows, sets, span, first_set;
    u64 first_word;
    Plane planes[2];
};

enum Count { WANTED, HITS, EVICTED, WRITTEN, BAD, FIRST, OVERFLOWS, WORST };

__device__ __forceinline__ u32 key_of(const Table& table, u32 row) {
    return row % table.sets * table.span + row / table.sets;
}

__device__ __forceinline__ void range(const OFFSET* offsets, u32 bags, u64 total, u64& first, u64& end) {
    long long from = offsets[u64(blockIdx.y) * bags], to = offsets[u64(blockIdx.y + 1) * bags];
    first = from < 0 ? 0 : min(u64(from), total);
    end = to < 0 ? 0 : min(u64(to), total);
}

extern "C" __global__ __launch_bounds__(256) void mark(const Table* tables, const INDEX* indices,
    const OFFSET* offsets, u32 bags, u64 total, u32* wanted, u64* counts) {
    const Table table = tables[blockIdx.y];
    u32* words = wanted + table.first_word;
    u64 first, end;
    range(offsets, bags, total, first, end);
    for (u64 at = first + u64(blockIdx.x) * 256 + threadIdx.x; at < end; at += u64(gridDim.x) * 256) {
        long long index = indices[at];
        if (index < 0 || index >= table.rows) {
            atomicAdd(counts + BAD, 1ull);
            atomicMax(counts + FIRST, ~at);
            continue;
        }
        u32 key = key_of(table, u32(index)), bit = 1u << key % 32;
        if (!(words[key / 32] & bit)) atomicOr(words + key / 32, bit);
    }
}

// The bits of a word that belong to keys from `first` to before `end`.
__device__ __forceinline__ u32 own_bits(const u32* words, u32 word, u32 first, u32 end) {
    u32 bits = words[word];
    if (word == first / 32) bits &= ALL << first % 32;
    if (word == (end - 1) / 32) bits &= ALL >> 31 - (end - 1) % 32;
    return bits;
}

// The place whose row makes room. At least one is not locked.
__device__ __forceinline__ u32 victim(u32 row, u32 stamp, u32 uses, bool locked) {
#if LFU
    u32 order = locked ? ALL : row == NO_ROW ? 0 : (uses & ~DIRTY) + 1;
    u32 least = __reduce_min_sync(ALL, order);
    bool candidate = order == least;
    u32 last = candidate ? stamp : ALL, earliest = __reduce_min_sync(ALL, last);
    return __ffs(__ballot_sync(ALL, candidate && last == earliest)) - 1;
#else
    u32 order = locked ? ALL : row == NO_ROW ? 0 : stamp + 1;
    u32 least = __reduce_min_sync(ALL, order);
    return __ffs(__ballot_sync(ALL, order == least)) - 1;
#endif
}

extern "C" __global__ __launch_bounds__(256) void plan(const Table* tables, const u32* wanted, u32* rows, u32* stamps,
    u32* uses_of, u32* moved, u32* leaving, u32 batch, u32 protect, u32 dirty, u64* counts) {
    __shared__ u32 sums[8];
    if (threadIdx.x < 8) sums[threadIdx.x] = 0;
    __syncthreads();
    const Table table = tables[blockIdx.y];
    const u32* words = wanted + table.first_word;
    u32 lane = threadIdx.x % 32;
    u32 all = 0, hits = 0, evicted = 0, written = 0, overflows = 0, worst = 0;
    for (u32 set = blockIdx.x * WARPS + threadIdx.x / 32; set < table.sets; set += gridDim.x * WARPS) {
        u32 first = set * table.span;
        u32 end = first + table.span, first_word = first / 32, last_word = (end - 1) / 32;
        u32 count = 0;
        for (u32 word = first_word + lane; word <= last_word; word += 32)
            count += __popc(own_bits(words, word, first, end));
        count = __reduce_add_sync(ALL, count);
        u32 place = table.first_set + set, arrived = 0;
        if (count) {
            u64 slot = u64(place) * 32 + lane;
            u32 row = rows[slot], stamp = stamps[slot], uses = uses_of[slot], left = NO_ROW;
            u32 key = row == NO_ROW ? 0 : key_of(table, row);
            bool here = row != NO_ROW && words[key / 32] >> key % 32 & 1;
            bool locked = row != NO_ROW && (here || stamp >= protect);
            u32 hit = __ballot_sync(ALL, here);
            u32 missing = count - __popc(hit), kept = __popc(__ballot_sync(ALL, locked));
            all += count;
            hits += __popc(hit);
            if (missing + kept > 32) {
                overflows++;
                worst = max(worst, missing + kept);
            } else {
                if (here) {
                    stamp = batch;
                    uses = min((uses & ~DIRTY) + 1, ~DIRTY) | uses & DIRTY | dirty;
                }
                for (u32 base = first_word; missing && base <= last_word; base += 32) {
                    u32 word = base + lane;
                    u32 bits = word <= last_word ? own_bits(words, word, first, end) : 0;
                    for (u32 rest = hit; rest; rest &= rest - 1) {
                        u32 held = __shfl_sync(ALL, key, __ffs(rest) - 1);
                        if (held / 32 == word) bits &= ~(1u << held % 32);
                    }
                    for (u32 lanes = __ballot_sync(ALL, bits != 0); lanes; lanes &= lanes - 1) {
                        u32 from = __ffs(lanes) - 1;
                        for (u32 some = __shfl_sync(ALL, bits, from); some; some &= some - 1) {
                            u32 next = (base + from) * 32 + __ffs(some) - 1;
                            u32 way = victim(row, stamp, uses, locked);
                            arrived |= 1u << way;
                            if (lane == way) {
                                if (row != NO_ROW && uses & DIRTY) left = row;
                                evicted += row != NO_ROW;
                                written += left != NO_ROW;
                                row = set + (next - first) * table.sets;
                                stamp = batch;
                                uses = 1 | dirty;
                                locked = true;
                            }
                        }
                    }
                }
                if (here || arrived >> lane & 1) {
                    rows[slot] = row;
                    stamps[slot] = stamp;
                    uses_of[slot] = uses;
                }
                if (arrived >> lane & 1) leaving[slot] = left;
            }
        }
        if (lane == 0) moved[place] = arrived;
    }
    // Those of a lane, and those that all lanes of a warp have.
    atomicAdd(sums + EVICTED, evicted);
    atomicAdd(sums + WRITTEN, written);
    if (lane == 0) {
        atomicAdd(sums + WANTED, all);
        atomicAdd(sums + HITS, hits);
        atomicAdd(sums + OVERFLOWS, overflows);
        atomicMax(sums + WORST, worst);
    }
    __syncthreads();
    u32 sum = threadIdx.x < 8 ? sums[threadIdx.x] : 0;
    if (sum && threadIdx.x == WORST) atomicMax(counts + WORST, u64(sum));
    else if (sum) atomicAdd(counts + threadIdx.x, u64(sum));
}

extern "C" __global__ __launch_bounds__(256) void translate(const Table* tables, const INDEX* indices,
    const OFFSET* offsets, u32 bags, u64 total, const u32* rows, int* slots) {
    const Table table = tables[blockIdx.y];
    u64 first, end;
    range(offsets, bags, total, first, end);
    u32 lane = threadIdx.x % 32;
    u64 begin = first + (u64(blockIdx.x) * WARPS + threadIdx.x / 32) * 32;
    for (u64 base = begin; base < end; base += u64(gridDim.x) * 256) {
        u32 row = NO_ROW, set = 0;
        if (base + lane < end) {
            long long index = indices[base + lane];
            if (index >= 0 && index < table.rows) {
                row = u32(index);
                set = row % table.sets;
            }
        }
        #pragma unroll
        for (u32 round = 0; round < 8; round++) {
            u32 from = round * 4 + lane / 8;
            u32 sought = __shfl_sync(ALL, row, from), in = __shfl_sync(ALL, set, from);
            if (sought == NO_ROW) continue;
            const u32* four = rows + (u64(table.first_set) + in) * 32 + lane % 8 * 4;
            u32 a, b, c, d;
            asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "l"(four));
            if (a == sought || b == sought || c == sought || d == sought) {
                u32 way = lane % 8 * 4 + (a == sought ? 0 : b == sought ? 1 : c == sought ? 2 : 3);
                slots[base + from] = int(in * 32 + way);
            }
        }
    }
}

template <int SIZE> struct Unit;
template <> struct __align__(16) Unit<16> { u32 word[4]; };
template <> struct Unit<4> { u32 word; };
template <> struct Unit<1> { unsigned char byte; };

// Rows to their places of a set, and those that were there to the host before. All lanes of a warp.
template <int SIZE> __device__ __forceinline__ void rows_of_set(const Plane& plane, u32 arrived, u32 row, u32 left,
    u64 first_slot, u32 fetch) {
    u32 lane = threadIdx.x % 32, group = plane.unit_and_group >> 8, side = 32 / group;
    u32 count = __popc(arrived);
    for (u32 turn = 0; turn < count; turn += side) {
        // This group's row is the one so many places up; groups beyond the last idle.
        u32 rest = arrived;
        for (u32 skip = turn + lane / group; skip && rest; skip--) rest &= rest - 1;
        u32 way = rest ? __ffs(rest) - 1 : 0;
        __syncwarp();
        u32 come = __shfl_sync(ALL, row, way), go = __shfl_sync(ALL, left, way);
        if (!rest) continue;
        Unit<SIZE>* here = (Unit<SIZE>*)(plane.slots + (first_slot + way) * plane.slot_pitch);
        const Unit<SIZE>* from = (const Unit<SIZE>*)(plane.host + u64(come) * plane.host_pitch);
        Unit<SIZE>* to = (Unit<SIZE>*)(plane.host + u64(go) * plane.host_pitch);
        for (u32 at = lane % group; at < plane.vectors; at += group) {
            Unit<SIZE> fresh = {}, old = {};
            if (fetch) fresh = from[at];
            if (go != NO_ROW) old = here[at];
            if (go != NO_ROW) to[at] = old;
            if (fetch) here[at] = fresh;
        }
    }
    __syncwarp();
}

extern "C" __global__ __launch_bounds__(256) void travel(const Table* tables, const u32* rows, const u32* moved,
    const u32* leaving, u32 fetch, u32 each) {
    const Table& table = tables[blockIdx.y];
    u32 lane = threadIdx.x % 32, sets = table.sets;
    u64 step = u64(gridDim.x) * WARPS * each;
    for (u64 base = (u64(blockIdx.x) * WARPS + threadIdx.x / 32) * each; base < sets; base += step) {
        u32 mine = lane < each && base + lane < sets ? moved[table.first_set + base + lane] : 0;
        for (u32 lanes = __ballot_sync(ALL, mine != 0); lanes; lanes &= lanes - 1) {
            u32 from = __ffs(lanes) - 1, arrived = __shfl_sync(ALL, mine, from);
            u64 first_slot = (base + from) * 32, slot = u64(table.first_set) * 32 + first_slot + lane;
            u32 row = rows[slot], left = leaving[slot];
            for (int at = 0; at < 2; at++) {
                const Plane plane = table.planes[at];
                u32 unit = plane.unit_and_group & 255;
                if (unit == 16) rows_of_set<16>(plane, arrived, row, left, first_slot, fetch);
                if (unit == 4) rows_of_set<4>(plane, arrived, row, left, first_slot, fetch);
                if (unit == 1) rows_of_set<1>(plane, arrived, row, left, first_slot, fetch);
            }
        }
    }
}

extern "C" __global__ __launch_bounds__(256) void collect(const u32* rows, const u32* stamps, u32* uses_of, u32* moved,
    u32* leaving, u64 slots, u32 protect) {
    u64 slot = u64(blockIdx.x) * 256 + threadIdx.x;
    // Slots come in whole warps.
    if (slot >= slots) return;
    u32 row = rows[slot], uses = uses_of[slot];
    bool dirty = row != NO_ROW && uses & DIRTY;
    u32 some = __ballot_sync(ALL, dirty);
    if (dirty) leaving[slot] = row;
    if (dirty && stamps[slot] < protect) uses_of[slot] = uses & ~DIRTY;
    if (threadIdx.x % 32 == 0) moved[slot / 32] = some;
}
