// Meetings of threads: __syncthreads, __syncwarp, shuffles, votes and reductions, and the atomics. Every call records its source line: lanes that
// wait at different lines do not meet, as the CUDA model requires of code that runs on every GPU.
#ifndef HEDDLE_SIMT_WARP_HPP
#define HEDDLE_SIMT_WARP_HPP

#include "worker.hpp"

namespace heddle::simt {

/// Called when all named lanes are in `warp` and have arrived: gives each its result.
inline void settle(Worker& worker, uint32_t warp, Meeting meeting, uint32_t mask) {
  Fiber* lanes = worker.fibers + warp * kLanes;
  if (meeting == Meeting::shuffle) {
    uint64_t brought[kLanes];
    for (uint32_t rest = mask; rest != 0; rest &= rest - 1) brought[__builtin_ctz(rest)] = lanes[__builtin_ctz(rest)].value;
    for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
      Fiber& lane = lanes[__builtin_ctz(rest)];
      if (lane.source >= kLanes || (mask >> lane.source & 1u) == 0) {
        worker.fault("lane %d shuffles from lane %u, which the mask 0x%08x at %s:%d leaves out", __builtin_ctz(rest), lane.source,
                     mask, lane.site.name(), lane.site.line);
      }
      lane.value = brought[lane.source];
    }
  } else if (meeting == Meeting::vote) {
    uint64_t votes = 0;
    for (uint32_t rest = mask; rest != 0; rest &= rest - 1) votes |= lanes[__builtin_ctz(rest)].value << __builtin_ctz(rest);
    for (uint32_t rest = mask; rest != 0; rest &= rest - 1) lanes[__builtin_ctz(rest)].value = votes;
  } else if (meeting == Meeting::maximum) {
    uint64_t largest = 0;
    for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
      const uint64_t own = lanes[__builtin_ctz(rest)].value;
      if (own > largest) largest = own;
    }
    for (uint32_t rest = mask; rest != 0; rest &= rest - 1) lanes[__builtin_ctz(rest)].value = largest;
  } else if (meeting == Meeting::collective) {
    void* operands[kLanes] = {};
    for (uint32_t lane = 0; lane < kLanes; lane++) operands[lane] = reinterpret_cast<void*>(lanes[lane].value);
    (*static_cast<const Collective*>(operands[0]))(operands);
  } else {
    // Only __syncwarp orders memory; CUDA guarantees no order for shuffles, votes and reductions.
    worker.stamp++;
    for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
      lanes[__builtin_ctz(rest)].synced = worker.stamp;
      lanes[__builtin_ctz(rest)].synced_mask = mask;
    }
    if (mask == ~0u) worker.warp_stamp[warp] = worker.stamp;
#if defined(HEDDLE_SIMT_HOPPER)
    if (worker.cluster != nullptr) order_lanes(worker, warp, mask);
#endif
  }
}

/// Meets the lanes of `mask` with `value`; returns this lane's result of the meeting.
inline uint64_t meet(Meeting meeting, uint32_t mask, uint64_t value, uint32_t source, Site site) {
  Worker& worker = *current;
  if (__builtin_expect(worker.sync == Sync::none, 0)) {
    worker.fault("threads meet at %s:%d but the launch says that they never do", site.name(), site.line);
  }
  const uint32_t thread = worker.running, warp = thread / kLanes, lane = thread % kLanes;
  if (__builtin_expect((mask >> lane & 1u) == 0, 0)) {
    worker.fault("lane %u calls with mask 0x%08x, which leaves it out, at %s:%d", lane, mask, site.name(), site.line);
  }
  Fiber& me = worker.fibers[thread];
  me.meeting = meeting;
  me.site = site;
  me.mask = mask;
  me.value = value;
  me.source = source;
  me.meetings++;
  worker.waiting[warp] |= 1u << lane;
  bool complete = (worker.waiting[warp] & mask) == mask;
  for (uint32_t rest = mask; complete && rest != 0; rest &= rest - 1) {
    const Fiber& other = worker.fibers[warp * kLanes + __builtin_ctz(rest)];
    complete = other.meeting == meeting && other.mask == mask && other.site == site;
  }
  if (!complete) {
    worker.wait();
    return me.value;
  }
  settle(worker, warp, meeting, mask);
  worker.waiting[warp] &= ~mask;
  me.meeting = Meeting::none;
  for (uint32_t rest = mask & ~(1u << lane); rest != 0;) {
    // The lane released last runs first: forward order releases from the top.
    const uint32_t next = order == Order::forward ? 31 - __builtin_clz(rest) : __builtin_ctz(rest);
    rest &= ~(1u << next);
    worker.release(warp * kLanes + next);
  }
  return me.value;
}

template <class T>
inline T shuffle(unsigned int mask, T value, uint32_t source, Site site) {
  static_assert(sizeof(T) <= sizeof(uint64_t), "a shuffle moves at most 8 bytes");
  uint64_t word = 0;
  memcpy(&word, &value, sizeof(T));
  word = meet(Meeting::shuffle, mask, word, source, site);
  memcpy(&value, &word, sizeof(T));
  return value;
}

inline uint32_t vote(unsigned int mask, bool predicate, Site site) {
  return static_cast<uint32_t>(meet(Meeting::vote, mask, predicate ? 1 : 0, 0, site));
}

/// This lane's number and the first lane of its group of `width` lanes (a power of two).
struct Segment {
  int lane, base;
  explicit Segment(int width) : lane(static_cast<int>(current->running % kLanes)), base(lane & ~(width - 1)) {}
};

}  // namespace heddle::simt

// The defaulted arguments are the caller's source line.
#define HEDDLE_SIMT_HERE const char *file = __builtin_FILE(), int line = __builtin_LINE()

inline void __syncthreads(HEDDLE_SIMT_HERE) {
  using namespace heddle::simt;
  Worker& worker = *current;
  const Site site{file, line};
  if (__builtin_expect(worker.sync != heddle::Sync::block, 0)) {
    worker.fault("the block meets at %s:%d but the launch says that it never does", site.name(), line);
  }
  if (worker.barrier_count == 0) worker.barrier_site = site;
  Fiber& me = worker.fibers[worker.running];
  me.meeting = Meeting::barrier;
  me.site = site;
  me.meetings++;
  if (site == worker.barrier_site) worker.barrier_count++;
  if (worker.barrier_count < worker.threads || site != worker.barrier_site) return worker.wait();
  worker.barrier_count = 0;
  worker.barrier_stamp = ++worker.stamp;
#if defined(HEDDLE_SIMT_HOPPER)
  if (worker.cluster != nullptr) order_block(worker);
#endif
  me.meeting = Meeting::none;
  const uint32_t last = worker.running;
  for (uint32_t i = worker.threads; i-- > 0;) {
    const uint32_t thread = static_cast<uint32_t>(ordered(i, worker.threads));
    if (thread != last) worker.release(thread);
  }
}

inline void __syncwarp(unsigned int mask = ~0u, HEDDLE_SIMT_HERE) {
  heddle::simt::meet(heddle::simt::Meeting::warp_sync, mask, 0, 0, {file, line});
}

template <class T>
inline T __shfl_sync(unsigned int mask, T value, int source, int width = warpSize, HEDDLE_SIMT_HERE) {
  const heddle::simt::Segment segment(width);
  return heddle::simt::shuffle(mask, value, static_cast<uint32_t>(segment.base + (source & (width - 1))), {file, line});
}

template <class T>
inline T __shfl_xor_sync(unsigned int mask, T value, int lane_mask, int width = warpSize, HEDDLE_SIMT_HERE) {
  const heddle::simt::Segment segment(width);
  const int source = segment.lane ^ lane_mask;
  return heddle::simt::shuffle(mask, value, static_cast<uint32_t>(source < segment.base + width ? source : segment.lane),
                               {file, line});
}

template <class T>
inline T __shfl_down_sync(unsigned int mask, T value, unsigned int delta, int width = warpSize, HEDDLE_SIMT_HERE) {
  const heddle::simt::Segment segment(width);
  const int source = segment.lane + static_cast<int>(delta);
  return heddle::simt::shuffle(mask, value, static_cast<uint32_t>(source < segment.base + width ? source : segment.lane),
                               {file, line});
}

template <class T>
inline T __shfl_up_sync(unsigned int mask, T value, unsigned int delta, int width = warpSize, HEDDLE_SIMT_HERE) {
  const heddle::simt::Segment segment(width);
  const int source = segment.lane - static_cast<int>(delta);
  return heddle::simt::shuffle(mask, value, static_cast<uint32_t>(source >= segment.base ? source : segment.lane), {file, line});
}

inline unsigned int __ballot_sync(unsigned int mask, int predicate, HEDDLE_SIMT_HERE) {
  return heddle::simt::vote(mask, predicate != 0, {file, line});
}

inline int __any_sync(unsigned int mask, int predicate, HEDDLE_SIMT_HERE) {
  return heddle::simt::vote(mask, predicate != 0, {file, line}) != 0;
}

inline int __all_sync(unsigned int mask, int predicate, HEDDLE_SIMT_HERE) {
  return heddle::simt::vote(mask, predicate != 0, {file, line}) == mask;
}

inline unsigned int __reduce_max_sync(unsigned int mask, unsigned int value, HEDDLE_SIMT_HERE) {
  return static_cast<unsigned int>(heddle::simt::meet(heddle::simt::Meeting::maximum, mask, value, 0, {file, line}));
}

#undef HEDDLE_SIMT_HERE

namespace heddle::simt {

/// Replaces *address by update(*address) atomically, also across blocks on other workers; returns the value before.
template <class T, class Update>
inline T atomic_update(T* address, Update update) {
  using Word = uint32_t __attribute__((may_alias));
  static_assert(sizeof(T) == sizeof(Word), "atomics are 4 bytes wide");
  Word* word = reinterpret_cast<Word*>(address);
  uint32_t before = __atomic_load_n(word, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(word, &before, bit_cast<uint32_t>(update(bit_cast<T>(before))), true, __ATOMIC_RELAXED,
                                      __ATOMIC_RELAXED)) {
  }
  return bit_cast<T>(before);
}

}  // namespace heddle::simt

/// Orders earlier writes of a thread before its later ones, and reads likewise, also for blocks on other workers.
inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

inline int atomicAdd(int* address, int value) { return __atomic_fetch_add(address, value, __ATOMIC_RELAXED); }
inline float atomicAdd(float* address, float value) {
  return heddle::simt::atomic_update(address, [=](float before) { return before + value; });
}
inline int atomicMax(int* address, int value) {
  return heddle::simt::atomic_update(address, [=](int before) { return before < value ? value : before; });
}
inline float atomicMax(float* address, float value) {
  return heddle::simt::atomic_update(address, [=](float before) { return fmaxf(before, value); });
}

#endif
