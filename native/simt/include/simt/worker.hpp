// A worker runs one block at a time. If threads meet, each is a fiber: it runs until it has to wait for others, and the last to arrive at a meeting
// releases the rest. If no fiber can run and some still wait, the block is divergent.
#ifndef HEDDLE_SIMT_WORKER_HPP
#define HEDDLE_SIMT_WORKER_HPP

#include "arena.hpp"
#include "async.hpp"
#include "fault.hpp"
#include "fiber.hpp"
#include "sectors.hpp"
#include "types.hpp"

namespace heddle {

/// Threads of a kernel that wait for one another: none, lanes of a warp, or a whole block.
enum class Sync { none, warp, block };

}  // namespace heddle

namespace heddle::simt {

#if defined(HEDDLE_SIMT_HOPPER)
/// Events of a thread in a cluster, which cluster headers define: its end, and meetings of a block or a warp, which order memory.
inline void end_thread(Worker& block);
inline void order_block(Worker& block);
inline void order_lanes(Worker& block, uint32_t warp, uint32_t mask);
#endif

constexpr uint32_t kMaxThreads = 1024;
constexpr uint32_t kLanes = 32;

/// The source line of a meeting.
struct Site {
  const char* file = nullptr;
  int line = 0;

  bool operator==(const Site& other) const { return line == other.line && file == other.file; }
  bool operator!=(const Site& other) const { return !(*this == other); }
  const char* name() const {
    const char* slash = strrchr(file, '/');
    return slash == nullptr ? file : slash + 1;
  }
};

enum class Meeting : uint8_t { none, barrier, warp_sync, shuffle, vote, maximum, collective, phase, named, cluster, products };

/// A warp's common operation: a lane's operands begin with it, and the last lane to arrive runs it for all 32.
using Collective = void (*)(void* const (&lanes)[kLanes]);

struct Fiber {
  Context context;
  uint3 index;
  bool done;
  Meeting meeting;  // what it waits for; none while it can run
  Site site;
  uint32_t mask;         // of the lanes that meet
  uint32_t source;       // shuffle: the lane to read
  uint64_t value;        // its value for the meeting, then its result
  uint32_t synced;       // stamp of its last __syncwarp
  uint32_t synced_mask;  // and the lanes that took part
  uint32_t meetings;     // with other threads so far
};

/// The order in which blocks and threads run, from HEDDLE_SIMT_ORDER. No result may depend on it.
enum class Order { forward, reverse, shuffle, unknown };

inline Order read_order() {
  const char* text = getenv("HEDDLE_SIMT_ORDER");
  if (text == nullptr || *text == '\0' || strcmp(text, "forward") == 0) return Order::forward;
  if (strcmp(text, "reverse") == 0) return Order::reverse;
  return strcmp(text, "shuffle") == 0 ? Order::shuffle : Order::unknown;
}

inline const Order order = read_order();

/// The i-th of n indices in the chosen order. Shuffling steps by a prime above every n, so that each index occurs once.
inline uint64_t ordered(uint64_t i, uint64_t n) {
  if (order == Order::forward) return i;
  return order == Order::reverse ? n - 1 - i : (i * (2654435761u % n) + n / 2) % n;
}

/// The coordinates of a linear number, x fastest.
inline uint3 coordinates(uint64_t linear, const dim3& extent) {
  if (extent.y == 1 && extent.z == 1) return {static_cast<unsigned int>(linear), 0, 0};
  const uint64_t rows = linear / extent.x;
  return {static_cast<unsigned int>(linear % extent.x), static_cast<unsigned int>(rows % extent.y),
          static_cast<unsigned int>(rows / extent.y)};
}

struct Cluster;

struct Worker {
  Place place;
  const char* kernel = "";
  Sync sync = Sync::none;
  uint32_t threads = 0;  // in the block
  uint32_t running = 0;  // number of the thread that runs now
  heddle_error error = {};
  bool faulted = false;
  SharedArena shared;
  uint32_t shared_bytes = 0;                    // dynamic shared memory of the launch
  const SharedArena::Array* dynamic = nullptr;  // the block's own, once it is declared
  AsyncCopies copies;
  BlockSectors sectors;  // used where launches count them

  // Order of shared accesses: the number of meetings, the last __syncthreads, each warp's last full __syncwarp.
  uint32_t stamp = 0;
  uint32_t barrier_stamp = 0;
  uint32_t warp_stamp[kMaxThreads / kLanes] = {};

  Fiber fibers[kMaxThreads];
  uint32_t waiting[kMaxThreads / kLanes] = {};  // lanes that wait, by warp
  Site barrier_site;
  uint32_t barrier_count = 0;

  Worker* next_idle = nullptr;

  // Cluster of the block, and its place there; null unless kernels are compiled with Hopper's instructions.
  Cluster* cluster = nullptr;
  uint32_t rank = 0;

  void begin_block(uint64_t block) {
    blockIdx = coordinates(block, gridDim);
    shared.begin_block();
    dynamic = nullptr;
    copies.begin_block();
    stamp = barrier_stamp = barrier_count = 0;
  }

  /// Runs threads [first, first + count) as fibers; false after a fault, whose text is in `error`.
  bool run_fibers(uint32_t first, uint32_t count, void (*invoke)(const void*), const void* body) {
    if (!start_fibers(first, count, invoke, body)) return false;
    resume();
    if (!faulted && live_ > 0) diagnose(first, count);
    return !faulted;
  }

  /// Makes threads [first, first + count) fibers that resume() runs; false without memory.
  bool start_fibers(uint32_t first, uint32_t count, void (*invoke)(const void*), const void* body) {
    if (!stacks_.reserve(count)) {
      fail(&error, HEDDLE_MEMORY, "kernel %s: no memory for the stacks of %u threads", kernel, count);
      return !(faulted = true);
    }
    invoke_ = invoke;
    body_ = body;
    first_ = first;
    live_ = count;
    ready_count_ = 0;
    for (uint32_t i = first / kLanes; i * kLanes < first + count; i++) waiting[i] = warp_stamp[i] = 0;
    for (uint32_t i = count; i-- > 0;) {
      const uint32_t thread = first + static_cast<uint32_t>(ordered(i, count));
      Fiber& fiber = fibers[thread];
      fiber.index = coordinates(thread, blockDim);
      fiber.done = false;
      fiber.meeting = Meeting::none;
      fiber.synced = fiber.synced_mask = fiber.meetings = 0;
      fiber.context.start(stacks_.low(thread - first), stacks_.high(thread - first), fiber_main);
      ready_[ready_count_++] = static_cast<uint16_t>(thread);
    }
    return true;
  }

  /// Runs fibers until none can go on, or the block has failed.
  void resume() { leave(main_); }
  bool has_ready() const { return ready_count_ > 0; }
  bool has_live() const { return live_ > 0; }
  bool is_last_live() const { return live_ == 1; }

  /// Suspends the running fiber until a meeting releases it.
  void wait() {
    check_stack();
    leave(fibers[running].context);
  }

  void release(uint32_t thread) {
    fibers[thread].meeting = Meeting::none;
    ready_[ready_count_++] = static_cast<uint16_t>(thread);
  }

  /// Counts an access of the running thread to global memory. @param site identifies the code of the access
  __attribute__((noinline, cold)) void count_sector(const void* address, bool is_store) {
    const uint32_t meetings = sync == Sync::none ? 0 : fibers[running].meetings;
    sectors.add(__builtin_return_address(0), address, is_store ? 1 : 0, running, meetings);
  }

  /// Ends the running thread with "kernel K: <text>, block (..), thread (..)".
  [[noreturn]] __attribute__((noinline, cold, format(printf, 2, 3))) void fault(const char* format, ...) {
    char text[640];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fail(&error, HEDDLE_FAULT, "kernel %s: %s, block (%u,%u,%u), thread (%u,%u,%u)", kernel, text, blockIdx.x, blockIdx.y,
         blockIdx.z, threadIdx.x, threadIdx.y, threadIdx.z);
    throw Fault{};
  }

  /// Fills `error` with the waiting threads once no fiber can run. Defined in diagnose.hpp.
  void diagnose(uint32_t first, uint32_t count);

 private:
  static void fiber_main() {
    Worker& worker = *current;
    try {
      worker.invoke_(worker.body_);
      worker.check_stack();
#if defined(HEDDLE_SIMT_HOPPER)
      if (worker.cluster != nullptr) end_thread(worker);
#endif
    } catch (const Fault&) {
      worker.faulted = true;
    } catch (...) {
      fail(&worker.error, HEDDLE_FAULT, "kernel %s: a C++ exception left the kernel", worker.kernel);
      worker.faulted = true;
    }
    Fiber& me = worker.fibers[worker.running];
    me.done = true;
    worker.live_--;
    worker.leave(me.context);
  }

  void check_stack() {
    const uint32_t stack = running - first_;
    if (__builtin_expect(stacks_.intact(stack), 1)) return;
    stacks_.mend(stack);
    fault("a thread needs more than %zu bytes of stack", Stacks::kBytes);
  }

  /// Continues with the fiber released last, or with run_fibers if there is none or the block has failed. Fibers left by a fault are dropped: device
  /// code owns nothing that a destructor would have to free.
  void leave(Context& from) {
    if (ready_count_ == 0 || faulted) {
      if (&from != &main_) switch_context(from, main_);
      return;
    }
    running = ready_[--ready_count_];
    threadIdx = fibers[running].index;
    switch_context(from, fibers[running].context);
  }

  Context main_;
  Stacks stacks_;
  // A stack of runnable threads: those just released run first, so a warp stays in the cache while it shuffles.
  uint16_t ready_[kMaxThreads];
  uint32_t ready_count_ = 0;
  uint32_t live_ = 0;
  uint32_t first_ = 0;
  void (*invoke_)(const void*) = nullptr;
  const void* body_ = nullptr;
};

__forceinline__ Place& place() { return current->place; }

/// Makes a worker that of this system thread. A thread's first access may allocate its data by calls that clobber registers, which compilers expect
/// of an ordinary call alone: this is one, and runs before any code of a kernel.
__attribute__((noinline)) inline void run_as(Worker* worker) { current = worker; }

}  // namespace heddle::simt

#include "diagnose.hpp"

#endif
