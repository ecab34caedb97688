// A launch: checks its shape and buffers, then distributes the grid to the plugin's workers in chunks. Blocks are independent, so a chunk's worker
// runs its blocks one after the other and stops at the first fault.
#ifndef HEDDLE_SIMT_LAUNCH_HPP
#define HEDDLE_SIMT_LAUNCH_HPP

#include <new>

#include "buffer.hpp"

namespace heddle {

struct LaunchConfig {
  const char* kernel;
  dim3 grid;
  dim3 block;
  uint32_t shared_bytes;  // dynamic shared memory
  Sync sync;
  bool starts_early = false;  // every launch here starts when the one before is complete
  uint32_t cluster = 1;       // blocks that share their shared memory: none do here
};

/// Launches run one after the other here: nothing starts early, so there is nothing to wait for.
inline void wait_for_producers() {}
inline void release_consumers() {}
inline void begin_kernel() {}

namespace simt {

/// Workers between launches, cached for their stacks. A spin lock: it is held for two pointer moves.
class IdleWorkers {
 public:
  constexpr IdleWorkers() = default;
  ~IdleWorkers() {
    while (Worker* worker = pop()) delete worker;
  }

  Worker* take() {
    Worker* worker = pop();
    return worker != nullptr ? worker : new (std::nothrow) Worker;
  }

  void give(Worker* worker) {
    worker->shared.clear();
    worker->copies.clear();
    lock();
    worker->next_idle = first_;
    first_ = worker;
    unlock();
  }

 private:
  Worker* pop() {
    lock();
    Worker* worker = first_;
    if (worker != nullptr) first_ = worker->next_idle;
    unlock();
    return worker;
  }
  void lock() {
    while (__atomic_test_and_set(&locked_, __ATOMIC_ACQUIRE)) {
    }
  }
  void unlock() { __atomic_clear(&locked_, __ATOMIC_RELEASE); }

  Worker* first_ = nullptr;
  bool locked_ = false;
};

inline IdleWorkers idle_workers;

/// State shared by all chunks of a launch. The kernel is called through a pointer, so that one copy of this code runs them all: as templates, the
/// functions below would be compiled once per signature.
struct Job {
  const LaunchConfig* config;
  void (*invoke)(const void* body);
  const void* body;
  uint64_t blocks, chunk;  // blocks in all, and per chunk
  LaunchSectors* sectors;  // counts of the launch, if it counts sectors
};

/// Threads that never meet: a plain loop.
inline void run_threads(Worker& worker, const Job& job) {
  try {
    for (uint32_t i = 0; i < worker.threads; i++) {
      worker.running = static_cast<uint32_t>(ordered(i, worker.threads));
      threadIdx = coordinates(worker.running, blockDim);
      job.invoke(job.body);
    }
  } catch (const Fault&) {
    worker.faulted = true;
  } catch (...) {
    fail(&worker.error, HEDDLE_FAULT, "kernel %s: a C++ exception left the kernel", worker.kernel);
    worker.faulted = true;
  }
}

/// A fault stops the block and is stored in the worker.
inline void run_block(Worker& worker, const Job& job) {
  if (worker.sync == Sync::none) return run_threads(worker, job);
  if (worker.sync == Sync::block) return void(worker.run_fibers(0, worker.threads, job.invoke, job.body));
  const uint32_t warps = (worker.threads + kLanes - 1) / kLanes;
  for (uint32_t i = 0; i < warps; i++) {
    const uint32_t first = static_cast<uint32_t>(ordered(i, warps)) * kLanes;
    const uint32_t rest = worker.threads - first;
    if (!worker.run_fibers(first, rest < kLanes ? rest : kLanes, job.invoke, job.body)) return;
  }
}

#if defined(HEDDLE_SIMT_HOPPER)
/// Runs the clusters of a chunk of the grid, in which threads of a block meet. Defined in launch_clusters.hpp.
inline void run_clusters(Worker& worker, const Job& job, uint64_t begin, uint64_t end);
#endif

inline int32_t run_chunk(void* data, int64_t index, heddle_error* error) {
  const Job& job = *static_cast<const Job*>(data);
  Worker* worker = idle_workers.take();
  if (worker == nullptr) return fail(error, HEDDLE_MEMORY, "kernel %s: no memory for a worker", job.config->kernel);
  run_as(worker);
  worker->kernel = job.config->kernel;
  worker->sync = job.config->sync;
  worker->threads = job.config->block.x * job.config->block.y * job.config->block.z;
  worker->shared_bytes = job.config->shared_bytes;
  worker->faulted = false;
  worker->sectors.launch = job.sectors;
  gridDim = job.config->grid;
  blockDim = job.config->block;
  const uint64_t begin = static_cast<uint64_t>(index) * job.chunk;
  const uint64_t end = begin + job.chunk < job.blocks ? begin + job.chunk : job.blocks;
#if defined(HEDDLE_SIMT_HOPPER)
  const bool in_clusters = worker->sync == Sync::block && job.sectors == nullptr;
  if (in_clusters) run_clusters(*worker, job, begin, end);
#else
  constexpr bool in_clusters = false;
#endif
  for (uint64_t block = begin; block < end && !in_clusters && !worker->faulted; block++) {
    worker->begin_block(ordered(block, job.blocks));
    if (job.sectors != nullptr) worker->sectors.begin_block();
    run_block(*worker, job);
    if (job.sectors != nullptr) worker->sectors.end_block();
  }
  int32_t status = HEDDLE_OK;
  if (worker->faulted) {
    status = worker->error.status;
    if (error != nullptr) *error = worker->error;
  }
  run_as(nullptr);
  idle_workers.give(worker);
  return status;
}

/// Runs `invoke(body)` for every thread of a grid whose shape and buffers are right.
__attribute__((noinline)) inline int32_t run_grid(const heddle_launch* launch, heddle_error* error, const LaunchConfig& config,
                                                  void (*invoke)(const void*), const void* body) {
  const uint64_t blocks = uint64_t{config.grid.x} * config.grid.y * config.grid.z;
  // Enough chunks to balance any machine, few enough that a chunk outweighs its hand-over.
  constexpr uint64_t kChunks = 128;
  LaunchSectors sectors;
  const uint64_t clusters = blocks / config.cluster;
  Job job{&config, invoke, body, blocks, (clusters + kChunks - 1) / kChunks * config.cluster, sectors_file == nullptr ? nullptr : &sectors};
  const int64_t chunks = static_cast<int64_t>((blocks + job.chunk - 1) / job.chunk);
  const auto* executor = static_cast<const heddle_simt_executor*>(launch->queue);
  int32_t status = HEDDLE_OK;
  if (executor != nullptr) {
    status = executor->parallel_for(executor->self, chunks, run_chunk, &job, error);
  } else {
    for (int64_t i = 0; i < chunks && status == HEDDLE_OK; i++) status = run_chunk(&job, i, error);
  }
  if (job.sectors != nullptr && status == HEDDLE_OK) sectors.write(config.kernel);
  return status;
}

/// Shared memory of a block on the largest devices in use (227 KiB); launchers choose less on others.
constexpr uint32_t kMaxSharedBytes = 232448;

/// The limits common to all CUDA devices, so that a launch that works here works there. Checks before a launch are functions and not inlined into
/// every launcher, to save compile time.
__attribute__((noinline)) inline int32_t check_config(const LaunchConfig& config, heddle_error* error) {
  const dim3 &grid = config.grid, &block = config.block;
  const uint64_t threads = uint64_t{block.x} * block.y * block.z;
  if (threads == 0 || threads > kMaxThreads || block.z > 64) {
    return fail(error, HEDDLE_INVALID, "kernel %s: block (%u,%u,%u) is not between 1 and 1024 threads with z at most 64",
                config.kernel, block.x, block.y, block.z);
  }
  if (grid.x > 0x7fffffffu || grid.y > 65535 || grid.z > 65535) {
    return fail(error, HEDDLE_INVALID, "kernel %s: grid (%u,%u,%u) is larger than (2147483647,65535,65535)", config.kernel,
                grid.x, grid.y, grid.z);
  }
  if (config.shared_bytes > kMaxSharedBytes) {
    return fail(error, HEDDLE_INVALID, "kernel %s: %u bytes of dynamic shared memory, expected at most %u", config.kernel,
                config.shared_bytes, kMaxSharedBytes);
  }
#if defined(HEDDLE_SIMT_HOPPER)
  if (config.cluster == 0 || config.cluster > Cluster::kMostBlocks || grid.x % config.cluster != 0) {
    return fail(error, HEDDLE_INVALID, "kernel %s: clusters of %u blocks do not divide %u, or are larger than 8", config.kernel, config.cluster, grid.x);
  }
#else
  if (config.cluster != 1) {
    return fail(error, HEDDLE_INVALID, "kernel %s: clusters of %u blocks, this device has none", config.kernel, config.cluster);
  }
#endif
  if (order == Order::unknown) {
    return fail(error, HEDDLE_INVALID, "HEDDLE_SIMT_ORDER is '%.64s': forward, reverse or shuffle", getenv("HEDDLE_SIMT_ORDER"));
  }
  return HEDDLE_OK;
}

__attribute__((noinline)) inline int32_t check_buffer(const LaunchConfig& config, const Buffer& buffer, size_t element_bytes,
                                                      heddle_error* error) {
  if (!buffer.given) {
    return fail(error, HEDDLE_INVALID, "kernel %s: %s is buffer %u and the launch has fewer", config.kernel, buffer.name,
                buffer.index);
  }
  if (!buffer.aligned(0, element_bytes, static_cast<int>(element_bytes))) {
    return fail(error, HEDDLE_INVALID, "kernel %s: buffer %s is not aligned to its %zu-byte elements", config.kernel, buffer.name,
                element_bytes);
  }
  if (buffer.data == nullptr && buffer.count > 0) {
    return fail(error, HEDDLE_INVALID, "kernel %s: buffer %s has %llu elements at a null address", config.kernel, buffer.name,
                static_cast<unsigned long long>(buffer.count));
  }
  return HEDDLE_OK;
}

/// Prepares one kernel argument: handles are checked and outputs watched, everything else is passed unchanged.
template <class T>
inline int32_t prepare(const LaunchConfig&, T&, heddle_error*) {
  return HEDDLE_OK;
}
template <class T>
inline int32_t prepare(const LaunchConfig& config, In<T>& handle, heddle_error* error) {
  return check_buffer(config, handle.buffer(), sizeof(T), error);
}
template <class T>
inline int32_t prepare(const LaunchConfig& config, ConstantIn<T>& handle, heddle_error* error) {
  return check_buffer(config, handle.buffer(), sizeof(T), error);
}

/// HEDDLE_SIMT_RACE, set to any value, makes every launch watch its outputs for elements that two threads write.
inline const bool watching_outputs = getenv("HEDDLE_SIMT_RACE") != nullptr;

/// Memory for the writer of each element; null, with the error filled, if there is none.
__attribute__((noinline, cold)) inline uint32_t* owners_of(const LaunchConfig& config, const Buffer& buffer, heddle_error* error) {
  uint32_t* owners = static_cast<uint32_t*>(calloc(buffer.count + 1, sizeof(uint32_t)));
  if (owners == nullptr) fail(error, HEDDLE_MEMORY, "kernel %s: no memory to watch %s", config.kernel, buffer.name);
  return owners;
}

template <class T>
inline int32_t prepare(const LaunchConfig& config, Out<T>& handle, heddle_error* error) {
  const int32_t status = check_buffer(config, handle.buffer(), sizeof(T), error);
  if (status != HEDDLE_OK || !watching_outputs) return status;
  uint32_t* owners = owners_of(config, handle.buffer(), error);
  if (owners == nullptr) return HEDDLE_MEMORY;
  handle.watch(owners);
  return HEDDLE_OK;
}

template <class T>
inline void finish(T&) {}
template <class T>
inline void finish(Out<T>& handle) {
  free(handle.owners());
}

}  // namespace simt

/// Runs `kernel(args...)` for every thread of the grid on the launch's executor, or on the calling thread without one. A grid without blocks succeeds
/// and does nothing. A fault ends the launch with HEDDLE_FAULT; results of other blocks stay.
template <class... Params, class... Args>
inline int32_t launch(const heddle_launch* launch, heddle_error* error, const LaunchConfig& config, void (*kernel)(Params...),
                      Args... args) {
  static_assert(sizeof...(Params) == sizeof...(Args), "a launch gives each of the kernel's parameters one argument");
  const uint64_t blocks = uint64_t{config.grid.x} * config.grid.y * config.grid.z;
  if (blocks == 0) return HEDDLE_OK;
  int32_t status = simt::check_config(config, error);
  ((status == HEDDLE_OK ? void(status = simt::prepare(config, args, error)) : void()), ...);
  if (status == HEDDLE_OK) {
    const auto body = [&] { kernel(args...); };
    const auto invoke = [](const void* erased) { (*static_cast<const decltype(body)*>(erased))(); };
    status = simt::run_grid(launch, error, config, invoke, &body);
  }
  (simt::finish(args), ...);
  return status;
}

}  // namespace heddle

#if defined(HEDDLE_SIMT_HOPPER)
#include "launch_clusters.hpp"
#endif

#endif
