// Device memory for values that the blocks of one launch pass to the next launch of the same launcher: sums of a row that is divided over
// blocks. It belongs to the queue, whose launches run in order, so no content outlives the launcher that uses it.
#ifndef HEDDLE_SCRATCH_CUH
#define HEDDLE_SCRATCH_CUH

#include "launcher.cuh"

#if defined(HEDDLE_SIMT)
#include <cstdlib>
#else
#include <mutex>
#include <vector>
#endif

#if defined(HEDDLE_SIMT)
#pragma GCC visibility push(hidden)
#endif

namespace heddle {

/// User of scratch memory: one launcher, or the launches of an op together, each of which may take scratch of its own. Counters of blocks
/// are 0 between launches: each launch leaves them so.
enum class ScratchOf { launcher, op, counters };

#if defined(HEDDLE_SIMT)

/// Memory of `floats` floats. Launches are complete when they return here, so it belongs to the launcher; it holds NaN at first, counters 0.
class Scratch {
 public:
  Scratch(const heddle_launch*, heddle_error* error, const char* name, int64_t floats, ScratchOf of = ScratchOf::launcher) {
    const size_t bytes = static_cast<size_t>(floats) * sizeof(float);
    if (bytes == 0) return;
    data_ = static_cast<float*>(aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment));
    if (data_ == nullptr) {
      status = fail(error, HEDDLE_MEMORY, "kernel %s: no memory for %zu bytes of sums", name, bytes);
      return;
    }
    memset(static_cast<void*>(data_), of == ScratchOf::counters ? 0 : 0xff, bytes);
    buffer_.data = reinterpret_cast<char*>(data_);
    buffer_.count = static_cast<uint64_t>(floats);
  }
  ~Scratch() { ::free(data_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  int32_t status = HEDDLE_OK;
  void* data() const { return data_; }
  In<float> in() const { return in_as<float>(); }
  Out<float> out() const { return out_as<float>(); }
  /// The same memory as elements of another type.
  template <class T>
  In<T> in_as() const {
    return In<T>(named(sizeof(T)));
  }
  template <class T>
  Out<T> out_as() const {
    return Out<T>(named(sizeof(T)));
  }

 private:
  static constexpr size_t alignment = 256;
  simt::Buffer named(size_t element_bytes) const {
    simt::Buffer buffer = buffer_;
    buffer.count = buffer_.count * sizeof(float) / element_bytes;
    buffer.name = "sums";
    buffer.given = true;
    return buffer;
  }

  float* data_ = nullptr;
  simt::Buffer buffer_;
};

#else

/// Memory of each queue of each device. It grows by doubling and lives as long as the process: captured graphs refer to it, and later
/// queues at the same address find it.
class QueueMemory {
 public:
  /// Sets `data` to at least `bytes`, aligned to 256. A run outside of a capture must come first, as for loading kernels: allocation cannot
  /// be captured.
  cudaError_t get(int device, void* queue, ScratchOf of, uint64_t bytes, void** data) {
    const std::lock_guard<std::mutex> lock(mutex_);
    uint64_t size = least;
    for (const Piece& piece : pieces_) {
      if (piece.device != device || piece.queue != queue || piece.of != of) continue;
      *data = piece.data;
      if (piece.bytes >= bytes) return cudaSuccess;
      size = piece.bytes;
    }
    while (size < bytes) size *= 2;
    cudaError_t status = cudaMalloc(data, size);
    // The default stream may not be ordered before the queue.
    if (status == cudaSuccess && of == ScratchOf::counters) status = cudaMemset(*data, 0, size);
    if (status == cudaSuccess && of == ScratchOf::counters) status = cudaStreamSynchronize(nullptr);
    // Later blocks of memory of a queue are larger.
    if (status == cudaSuccess) pieces_.push_back({device, queue, of, *data, size});
    return status;
  }

 private:
  static constexpr uint64_t least = uint64_t{1} << 20;
  struct Piece {
    int device;
    void* queue;
    ScratchOf of;
    void* data;
    uint64_t bytes;
  };

  std::mutex mutex_;
  std::vector<Piece> pieces_;
};

inline QueueMemory& queue_memory() {
  static QueueMemory* const memory = new QueueMemory;  // never destroyed: the driver may be gone before it
  return *memory;
}

/// Memory of `floats` floats with unspecified content.
class Scratch {
 public:
  Scratch(const heddle_launch* launch, heddle_error* error, const char* name, int64_t floats,
          ScratchOf of = ScratchOf::launcher) {
    if (floats == 0) return;
    const uint64_t bytes = static_cast<uint64_t>(floats) * sizeof(float);
    const cudaError_t got = queue_memory().get(current_device(), launch->queue, of, bytes, &data_);
    if (got == cudaSuccess) return;
    cudaGetLastError();  // so that a later caller does not see this error
    status = fail(error, got == cudaErrorMemoryAllocation ? HEDDLE_MEMORY : HEDDLE_DEVICE, "kernel %s: cannot allocate %llu bytes for sums: %s", name,
                  static_cast<unsigned long long>(bytes), cudaGetErrorString(got));
  }

  int32_t status = HEDDLE_OK;
  void* data() const { return data_; }
  In<float> in() const { return in_as<float>(); }
  Out<float> out() const { return out_as<float>(); }
  /// The same memory as elements of another type.
  template <class T>
  In<T> in_as() const {
    return {static_cast<const T*>(data_)};
  }
  template <class T>
  Out<T> out_as() const {
    return {static_cast<T*>(data_)};
  }

 private:
  void* data_ = nullptr;
};

#endif

}  // namespace heddle

#if defined(HEDDLE_SIMT)
#pragma GCC visibility pop
#endif

#endif
