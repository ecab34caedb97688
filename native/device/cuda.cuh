// The CUDA side of the vocabulary of generated files: tensor handles, shared arrays, launches. The CPU device has its own version of
// exactly these names.
#ifndef HEDDLE_CUDA_CUH
#define HEDDLE_CUDA_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <atomic>

#define HEDDLE_SHARED(type, name, count) __shared__ type name[count]
/// Declares a function that returns a block-shared array, the same one wherever a kernel calls it: an array declared in a template would be
/// another one per instance.
#define HEDDLE_SHARED_FUNCTION(type, name, count)    \
  __device__ __forceinline__ type* name() {          \
    __shared__ type array[count];                    \
    return array;                                    \
  }

namespace heddle {

/// N adjacent elements moved in one access of at most 16 bytes.
template <class T, int N>
struct alignas(N * sizeof(T)) Pack {
  static_assert(N > 0 && (N & (N - 1)) == 0 && N * sizeof(T) <= 16, "a pack is a power of two of elements and at most 16 bytes");
  T v[N];
};

/// The machine word of a pack: one load or store instruction moves it.
template <int Bytes>
struct PackWord;
template <>
struct PackWord<1> {
  using Type = unsigned char;
};
template <>
struct PackWord<2> {
  using Type = unsigned short;
};
template <>
struct PackWord<4> {
  using Type = unsigned int;
};
template <>
struct PackWord<8> {
  using Type = uint2;
};
template <>
struct PackWord<16> {
  using Type = uint4;
};

/// A tensor to read. Earlier launches may write it while this kernel waits for them, so its loads are ordinary ones: neither the compiler
/// nor a cache may treat its data as constant, and no load moves over wait_for_producers().
template <class T>
struct In {
  const T* data;

  __device__ __forceinline__ T get(int64_t i) const { return data[i]; }

  template <int N>
  __device__ __forceinline__ Pack<T, N> get_pack(int64_t i) const {
    using Word = typename PackWord<N * sizeof(T)>::Type;
    const Word word = *reinterpret_cast<const Word*>(data + i);
    Pack<T, N> pack;
    memcpy(&pack, &word, sizeof pack);
    return pack;
  }

  __host__ __device__ __forceinline__ bool aligned(int64_t i, int bytes) const {
    return reinterpret_cast<uintptr_t>(data + i) % static_cast<unsigned int>(bytes) == 0;
  }
};

/// A tensor to read that no launch writes while this one runs or waits (see heddle_launch.constants): a weight. Loads go through the
/// read-only path, and may be issued before wait_for_producers().
template <class T>
struct ConstantIn {
  const T* data;

  __device__ __forceinline__ T get(int64_t i) const { return __ldg(data + i); }

  template <int N>
  __device__ __forceinline__ Pack<T, N> get_pack(int64_t i) const {
    using Word = typename PackWord<N * sizeof(T)>::Type;
    const Word word = __ldg(reinterpret_cast<const Word*>(data + i));
    Pack<T, N> pack;
    memcpy(&pack, &word, sizeof pack);
    return pack;
  }

  __host__ __device__ __forceinline__ bool aligned(int64_t i, int bytes) const {
    return reinterpret_cast<uintptr_t>(data + i) % static_cast<unsigned int>(bytes) == 0;
  }
};

/// A tensor to write.
template <class T>
struct Out {
  T* data;

  __device__ __forceinline__ T get(int64_t i) const { return data[i]; }

  __device__ __forceinline__ void set(int64_t i, T value) const { data[i] = value; }

  /// Adds to an element that other threads may add to at the same time.
  __device__ __forceinline__ void add(int64_t i, T value) const { atomicAdd(data + i, value); }

  template <int N>
  __device__ __forceinline__ void set_pack(int64_t i, Pack<T, N> pack) const {
    using Word = typename PackWord<N * sizeof(T)>::Type;
    Word word;
    memcpy(&word, &pack, sizeof pack);
    *reinterpret_cast<Word*>(data + i) = word;
  }

  __host__ __device__ __forceinline__ bool aligned(int64_t i, int bytes) const {
    return reinterpret_cast<uintptr_t>(data + i) % static_cast<unsigned int>(bytes) == 0;
  }
};

/// Adds to an element of a block-shared array that other threads may add to at the same time; returns the previous value.
template <class T>
__device__ __forceinline__ T add_shared(T* array, int i, T value) {
  return atomicAdd(array + i, value);
}

/// Adds to a 64-bit sum in two halves: shared memory adds 32 bits natively, and 64 by a loop of compare-and-swap. The sum is complete after
/// a barrier of all adding threads.
__device__ __forceinline__ void sum_shared(unsigned long long* array, int i, unsigned long long value) {
  constexpr int half_bits = 32;
  unsigned int* const halves = reinterpret_cast<unsigned int*>(array + i);
  const unsigned int low = static_cast<unsigned int>(value);
  unsigned int high = static_cast<unsigned int>(value >> half_bits);
  if (low != 0) {
    const unsigned int before = atomicAdd(halves, low);
    high += before + low < low ? 1 : 0;
  }
  if (high != 0) atomicAdd(halves + 1, high);
}

/// Threads of a kernel that wait for one another; the CPU device runs a kernel without waits as a plain loop.
enum class Sync { none, warp, block };

struct LaunchConfig {
  const char* kernel;
  dim3 grid;
  dim3 block;
  uint32_t shared_bytes;
  Sync sync;
  bool starts_early = false;  // before its inputs are complete: the kernel calls wait_for_producers(); from sm_90
  uint32_t cluster = 1;       // adjacent blocks along x that share their shared memory; more than 1 from sm_90
};

/// Waits until the launches this one depends on are complete and their writes visible. A launch that may start early (see LaunchConfig)
/// calls it before it reads their outputs or writes their inputs; for others it is free.
__device__ __forceinline__ void wait_for_producers() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/// Lets the next launch start once every block has called this or ended. That launch waits for this one in wait_for_producers().
__device__ __forceinline__ void release_consumers() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/// Begins a kernel that may start early. It lets others start only after its own wait: blocks that wait for waiting blocks take room and
/// gain nothing.
__device__ __forceinline__ void begin_kernel() {
  wait_for_producers();
  release_consumers();
}

/// Fills `error` (which may be null) and returns `status`. The format is printf's.
inline int32_t fail(heddle_error* error, heddle_status status, const char* format, ...) {
  if (error != nullptr) {
    error->status = status;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->message, sizeof error->message, format, arguments);
    va_end(arguments);
  }
  return status;
}

/// The launch's buffer `index` as a tensor of T to read. Messages of the CPU device use the name.
template <class T>
In<T> in(const heddle_launch* launch, uint32_t index, const char*) {
  return {index < launch->buffer_count ? static_cast<const T*>(launch->buffers[index].data) : nullptr};
}

/// The same for a tensor that is constant while the launch runs; Arguments::constant_in() checks that.
template <class T>
ConstantIn<T> constant_in(const heddle_launch* launch, uint32_t index, const char*) {
  return {index < launch->buffer_count ? static_cast<const T*>(launch->buffers[index].data) : nullptr};
}

/// The same for a tensor to write.
template <class T>
Out<T> out(const heddle_launch* launch, uint32_t index, const char*) {
  return {index < launch->buffer_count ? static_cast<T*>(launch->buffers[index].data) : nullptr};
}

/// The current device's number, or -1.
inline int current_device() {
  int device = 0;
  return cudaGetDevice(&device) == cudaSuccess ? device : -1;
}

/// A property of the current device; 0 if the query fails. It never changes, so each is queried once: launches choose tiles by several of
/// them.
inline int device_attribute(cudaDeviceAttr attribute) {
  constexpr int most_devices = 16;
  static std::atomic<int> known[most_devices][cudaDevAttrMax];  // 1 + the value, or 0
  const int device = current_device();
  const bool is_kept = device >= 0 && device < most_devices && attribute >= 0 && attribute < cudaDevAttrMax;
  if (is_kept) {
    const int value = known[device][attribute].load(std::memory_order_relaxed);
    if (value > 0) return value - 1;
  }
  int value = 0;
  if (device < 0 || cudaDeviceGetAttribute(&value, attribute, device) != cudaSuccess) return 0;
  if (is_kept && value >= 0) known[device][attribute].store(value + 1, std::memory_order_relaxed);
  return value;
}

/// Limits of dynamic shared memory per kernel and device. A query costs the host more than the rest of a launch, so it is made only if more
/// is needed than before. A limit is never lowered, whichever thread launches. Entries never change.
class SharedGrants {
 public:
  constexpr SharedGrants() = default;
  SharedGrants(const SharedGrants&) = delete;
  SharedGrants& operator=(const SharedGrants&) = delete;
  ~SharedGrants() {
    const Entry* entry = first_.load();
    while (entry != nullptr) {
      const Entry* const next = entry->next;
      delete entry;
      entry = next;
    }
  }

  /// Ensures that launches of `kernel` on the current device may use `bytes`.
  cudaError_t grant(const void* kernel, uint32_t bytes) {
    const int device = current_device();
    if (has(kernel, device, bytes)) return cudaSuccess;
    while (locked_.test_and_set(std::memory_order_acquire)) {
    }
    cudaError_t status = cudaSuccess;
    if (!has(kernel, device, bytes)) {
      status = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
      if (status == cudaSuccess) {
        first_.store(new Entry{kernel, device, bytes, first_.load(std::memory_order_relaxed)}, std::memory_order_release);
      }
    }
    locked_.clear(std::memory_order_release);
    return status;
  }

 private:
  struct Entry {
    const void* kernel;
    int device;
    uint32_t bytes;
    const Entry* next;
  };

  bool has(const void* kernel, int device, uint32_t bytes) const {
    for (const Entry* entry = first_.load(std::memory_order_acquire); entry != nullptr; entry = entry->next) {
      if (entry->kernel == kernel && entry->device == device && entry->bytes >= bytes) return true;
    }
    return false;
  }

  std::atomic<const Entry*> first_{nullptr};
  std::atomic_flag locked_ = ATOMIC_FLAG_INIT;
};

/// Enqueues `kernel(args...)` over the grid. A grid with no blocks succeeds and does nothing.
template <class... Params, class... Args>
int32_t launch(const heddle_launch* launch, heddle_error* error, const LaunchConfig& config, void (*kernel)(Params...),
               Args... args) {
  static_assert(sizeof...(Params) == sizeof...(Args), "a launch gives each of the kernel's parameters one argument");
  if (config.grid.x == 0 || config.grid.y == 0 || config.grid.z == 0) return HEDDLE_OK;
  // Larger dynamic shared memory must be requested per kernel.
  constexpr uint32_t always_granted = 48 * 1024;
  if (config.shared_bytes > always_granted) {
    static SharedGrants grants;  // of the kernels with these parameters, which are few
    const cudaError_t granted = grants.grant(reinterpret_cast<const void*>(kernel), config.shared_bytes);
    if (granted != cudaSuccess) {
      return fail(error, HEDDLE_DEVICE, "kernel %s requests %u bytes of shared memory: %s", config.kernel, config.shared_bytes,
                  cudaGetErrorString(granted));
    }
  }
  cudaLaunchAttribute attributes[2] = {};
  cudaLaunchConfig_t request = {config.grid, config.block, config.shared_bytes, static_cast<cudaStream_t>(launch->queue),
                                attributes, 0};
  if (config.starts_early && device_attribute(cudaDevAttrComputeCapabilityMajor) >= 9) {
    attributes[request.numAttrs].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[request.numAttrs++].val.programmaticStreamSerializationAllowed = 1;
  }
  if (config.cluster > 1) {
    attributes[request.numAttrs].id = cudaLaunchAttributeClusterDimension;
    attributes[request.numAttrs++].val.clusterDim = {config.cluster, 1, 1};
  }
  const cudaError_t status = cudaLaunchKernelEx(&request, kernel, static_cast<Params>(args)...);
  if (status == cudaSuccess) return HEDDLE_OK;
  cudaGetLastError();  // so that a later caller does not see this error
  return fail(error, HEDDLE_DEVICE, "kernel %s could not be launched: %s", config.kernel, cudaGetErrorString(status));
}

}  // namespace heddle

#endif
