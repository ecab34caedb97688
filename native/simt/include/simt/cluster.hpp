// Blocks of a cluster, which run together on one worker thread of the plugin: a block's threads run until all of them wait, then the next block's. When
// no thread of the cluster can run, one copy of an engine arrives. So copies are as late as they can be, and a thread that does not wait for one misses it.
#ifndef HEDDLE_SIMT_CLUSTER_HPP
#define HEDDLE_SIMT_CLUSTER_HPP

#include "clocks.hpp"

namespace heddle::simt {

/// A barrier of phases in shared memory (mbarrier): a phase ends when no arrival and no byte is missing.
struct PhaseState {
  uint32_t address;
  uint32_t arrivals, missing;  // of a phase; in the present phase
  int64_t bytes;               // announced and not arrived
  uint32_t phase;              // number of the present phase
  uint32_t agent;
  Access made;             // the initialisation
  uint32_t made_clusters;  // cluster barriers that the thread had passed then
  bool is_published;
  Knowledge arrived, ended;  // of all arrivals; of those until the end of the last phase
};

/// A named barrier of a block (bar.sync, bar.arrive).
struct NamedState {
  uint32_t count;
  Knowledge gathered;
};

/// Registers that a block's warpgroups have set (setmaxnreg): those of a thread, and the threads that have called.
struct RegisterState {
  static constexpr uint32_t kMostWarpgroups = 8;
  uint32_t set[kMostWarpgroups], calls[kMostWarpgroups];
  Site last;
};

/// Accesses that an engine completes later. `to` and `counter` are offsets in the shared memory of each of `blocks`, a mask.
struct EngineCopy;
using Arrival = void (*)(Worker& block, const EngineCopy& copy);
struct EngineCopy {
  static constexpr uint32_t kMostBytes = 192;
  Arrival arrive;
  uint32_t blocks, to, counter, bytes;
  uint32_t phases[8];  // of the counters when the copy was started, by block
  Site site;
  alignas(16) char source[kMostBytes];  // as `arrive` understands it
};

struct Warpgroup;

struct Cluster {
  static constexpr uint32_t kMostBlocks = 8, kMostPhases = 48, kMostNamed = 8, kMostWarpgroups = 8;

  Worker* blocks[kMostBlocks] = {};
  uint32_t count = 0, threads = 0;  // blocks, and threads of each
  uint32_t agents = 0, agents_of_block = 0;
  SharedHistory history[kMostBlocks];
  PhaseState phases[kMostBlocks][kMostPhases];
  uint32_t phase_count[kMostBlocks];
  NamedState named[kMostBlocks][kMostNamed];
  Warpgroup* warpgroups[kMostBlocks][kMostWarpgroups] = {};
  RegisterState registers[kMostBlocks];

  // The cluster's barrier: arrivals of the present meeting, and by thread the meetings that it arrived at and passed.
  uint32_t cluster_arrived, cluster_meeting, ended_threads, ended_unarrived;
  uint32_t meetings_arrived[kMostBlocks * kMaxThreads], meetings_passed[kMostBlocks * kMaxThreads];

  Cluster() = default;
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;
  ~Cluster();

  /// Allocates for `count` blocks that are in `blocks`; false without memory.
  bool reserve() {
    agents_of_block = threads + 2 * kMostPhases + kMostWarpgroups;
    agents = count * agents_of_block;
    const size_t vectors = 2 * (size_t{count} * threads + count * (2 * kMostPhases + kMostNamed) + 1);
    times_ = static_cast<uint32_t*>(calloc(vectors * agents, sizeof(uint32_t)));
    if (times_ == nullptr) return false;
    for (uint32_t rank = 0; rank < count; rank++) {
      if (!history[rank].reserve((blocks[rank]->shared_bytes + 15) / 16)) return false;
      for (uint32_t i = 0; i < kMostNamed; i++) named[rank][i].gathered = vector_of(first_named() + rank * kMostNamed + i);
    }
    scratch = vector_of(first_named() + count * kMostNamed);
    return true;
  }

  void begin();

  Knowledge knowledge(const Worker& block, uint32_t thread) const { return vector_of(block.rank * threads + thread); }
  Knowledge mine() const { return knowledge(*current, current->running); }
  uint32_t agent(const Worker& block, uint32_t thread) const { return block.rank * agents_of_block + thread; }
  uint32_t own_agent() const { return agent(*current, current->running); }
  uint32_t phase_agent(uint32_t rank, uint32_t index) const { return rank * agents_of_block + threads + 2 * index; }
  uint32_t warpgroup_agent(uint32_t rank, uint32_t group) const { return rank * agents_of_block + threads + 2 * kMostPhases + group; }
  /// The first agent of a block that is no thread, and the end of them.
  uint32_t first_engine(uint32_t rank) const { return rank * agents_of_block + threads; }
  uint32_t end_engine(uint32_t rank) const { return (rank + 1) * agents_of_block; }

  /// An access of the running thread, now.
  Access access(Proxy proxy, Site site) const {
    const uint32_t agent = own_agent();
    return {mine().happened[agent], static_cast<uint16_t>(agent), proxy, Access::no_swizzle_known, site};
  }
  /// Begins the running thread's next time: what it does from now on is not known by what it has released.
  void tick() const { mine().happened[own_agent()]++; }

  Knowledge vector_of(size_t index) const {
    uint32_t* const first = times_ + 2 * index * agents;
    return {first, first + agents};
  }
  size_t first_phase_vector(uint32_t rank, uint32_t index) const { return size_t{count} * threads + 2 * (size_t{rank} * kMostPhases + index); }
  void zero(const Knowledge& vector) const { memset(vector.happened, 0, 2 * sizeof(uint32_t) * agents); }

  /// All of `lanes`, a mask of threads from `first` on, know what each knows.
  void meet(const Worker& block, uint32_t first, uint32_t end, uint32_t lanes) const {
    zero(scratch);
    for (uint32_t i = first; i < end; i++) {
      if ((end - first <= kLanes && (lanes >> (i - first) & 1u) == 0) || block.fibers[i].done) continue;
      scratch.join(knowledge(block, i), 0, agents);
    }
    for (uint32_t i = first; i < end; i++) {
      if ((end - first <= kLanes && (lanes >> (i - first) & 1u) == 0) || block.fibers[i].done) continue;
      const Knowledge own = knowledge(block, i);
      memcpy(own.happened, scratch.happened, 2 * sizeof(uint32_t) * agents);
      own.happened[agent(block, i)]++;
    }
  }

  /// Makes room for a copy; its fields are zero.
  EngineCopy& start_copy() {
    if (end_ == capacity_) {
      const uint32_t capacity = capacity_ == 0 ? 256 : 2 * capacity_;
      auto* const more = static_cast<EngineCopy*>(realloc(static_cast<void*>(copies_), capacity * sizeof(EngineCopy)));
      if (more == nullptr) current->fault("no memory for copies in flight");
      copies_ = more;
      capacity_ = capacity;
    }
    memset(static_cast<void*>(copies_ + end_), 0, sizeof(EngineCopy));
    return copies_[end_++];
  }

  /// Runs all threads of the blocks; false after a fault of one of them, which is left in `faulty`.
  bool run();

  Worker* faulty = nullptr;
  Knowledge scratch;

 private:
  size_t first_named() const { return size_t{count} * threads + size_t{2} * count * kMostPhases; }
  bool deliver();
  void diagnose();

  uint32_t* times_ = nullptr;
  EngineCopy* copies_ = nullptr;
  uint32_t begin_ = 0, end_ = 0, capacity_ = 0;
};

/// Fails the block outside of its threads: for faults of engines.
template <class... Values>
__attribute__((noinline, cold)) void fail_block(Worker& block, const char* format, Values... values) {
  char text[640];
  snprintf(text, sizeof text, format, values...);
  const uint3 at = block.place.block;
  fail(&block.error, HEDDLE_FAULT, "kernel %s: %s, block (%u,%u,%u)", block.kernel, text, at.x, at.y, at.z);
  block.faulted = true;
}

inline void Cluster::begin() {
  memset(times_, 0, 2 * sizeof(uint32_t) * agents * size_t{count} * threads);
  for (uint32_t rank = 0; rank < count; rank++) {
    history[rank].begin_block();
    phase_count[rank] = 0;
    for (NamedState& state : named[rank]) {
      state.count = 0;
      zero(state.gathered);
    }
    for (uint32_t i = 0; i < threads; i++) knowledge(*blocks[rank], i).happened[agent(*blocks[rank], i)] = 1;
    registers[rank] = {};
  }
  memset(meetings_arrived, 0, sizeof meetings_arrived);
  memset(meetings_passed, 0, sizeof meetings_passed);
  cluster_arrived = cluster_meeting = ended_threads = ended_unarrived = 0;
  begin_ = end_ = 0;
  faulty = nullptr;
}

/// Completes one copy in flight: the oldest, the newest or another one, as threads run. False if there is none, or after a fault.
inline bool Cluster::deliver() {
  if (begin_ == end_) return false;
  const uint32_t in_flight = end_ - begin_;
  const uint32_t chosen = begin_ + static_cast<uint32_t>(order == Order::forward ? 0 : order == Order::reverse ? in_flight - 1 : in_flight / 2);
  const EngineCopy copy = copies_[chosen];
  if (order == Order::forward) {
    begin_++;
  } else {
    copies_[chosen] = copies_[--end_];
  }
  if (begin_ == end_) begin_ = end_ = 0;
  for (uint32_t rank = 0; rank < count; rank++) {
    if ((copy.blocks >> rank & 1u) == 0) continue;
    Worker& block = *blocks[rank];
    if (!block.has_live()) {
      fail_block(block, "the copy started at %s:%d arrives when the block has ended", copy.site.name(), copy.site.line);
    } else {
      run_as(&block);
      copy.arrive(block, copy);
    }
    if (block.faulted) faulty = &block;
    if (block.faulted) return false;
  }
  return true;
}

inline bool Cluster::run() {
  for (;;) {
    bool any_ran = false, any_live = false;
    for (uint32_t i = 0; i < count; i++) {
      Worker& block = *blocks[ordered(i, count)];
      if (block.has_ready()) {
        any_ran = true;
        run_as(&block);
        block.resume();
        if (block.faulted) return faulty = &block, false;
      }
      any_live = any_live || block.has_live();
    }
    if (any_ran) continue;
    if (deliver()) continue;
    if (faulty != nullptr) return false;
    if (!any_live) return true;
    return diagnose(), false;
  }
}

}  // namespace heddle::simt

#endif
