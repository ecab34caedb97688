// Tensor handles that kernels receive by value. Every access is checked against its buffer: index, and alignment of packs.
#ifndef HEDDLE_SIMT_BUFFER_HPP
#define HEDDLE_SIMT_BUFFER_HPP

#include "worker.hpp"

namespace heddle {

/// N adjacent elements moved in one access of at most 16 bytes.
template <class T, int N>
struct alignas(N * sizeof(T)) Pack {
  static_assert(N > 0 && (N & (N - 1)) == 0 && N * sizeof(T) <= 16, "a pack is a power of two of elements and at most 16 bytes");
  T v[N];
};

namespace simt {

/// Ends the kernel's thread if it divides an integer by 0, which would end the process. No effect outside of kernels.
__attribute__((noinline, cold)) inline void divided_by_zero(long long a) {
  if (current != nullptr) current->fault("%lld is divided by 0", a);
}

/// A buffer from its kernel's view. The launcher fills it; `launch` refuses it if it is not usable.
struct Buffer {
  char* data = nullptr;
  uint64_t count = 0;  // elements
  const char* name = "";
  uint32_t index = 0;  // among the launch's buffers
  bool given = false;  // the launch has this many buffers

  /// Checks elements [i, i + width) of an access to read or to write, and counts its sector if the launch counts them. Inlined, as are all accesses,
  /// so that each in a kernel is code of its own.
  __forceinline__ void check(int64_t i, uint64_t width, size_t element_bytes, const char* what) const {
    if (__builtin_expect(static_cast<uint64_t>(i) >= count || count - static_cast<uint64_t>(i) < width, 0)) {
      out_of_bounds(i, width, what);
    }
    if (width > 1 && __builtin_expect(!aligned(i, element_bytes, static_cast<int>(width * element_bytes)), 0)) {
      misaligned(i, width, width * element_bytes, what);
    }
    if (__builtin_expect(sectors_file != nullptr, 0)) {
      current->count_sector(data + static_cast<uint64_t>(i) * element_bytes, *what == 'w');
    }
  }

  bool aligned(int64_t i, size_t element_bytes, int bytes) const {
    return (reinterpret_cast<uintptr_t>(data) + static_cast<uint64_t>(i) * element_bytes) % static_cast<unsigned int>(bytes) == 0;
  }

 private:
  [[noreturn]] __attribute__((noinline, cold)) void out_of_bounds(int64_t i, uint64_t width, const char* what) const {
    char place[64];
    current->fault("%s of %s[%s] is out of bounds (%llu elements)", what, name, range(place, i, width),
                   static_cast<unsigned long long>(count));
  }

  [[noreturn]] __attribute__((noinline, cold)) void misaligned(int64_t i, uint64_t width, size_t bytes, const char* what) const {
    char place[64];
    current->fault("%s of %s[%s] is not aligned to %zu bytes (%llu elements)", what, name, range(place, i, width), bytes,
                   static_cast<unsigned long long>(count));
  }

  static const char* range(char (&place)[64], int64_t i, uint64_t width) {
    const int64_t last = static_cast<int64_t>(static_cast<uint64_t>(i) + width - 1);
    if (width == 1) snprintf(place, sizeof place, "%lld", static_cast<long long>(i));
    if (width > 1) snprintf(place, sizeof place, "%lld..%lld", static_cast<long long>(i), static_cast<long long>(last));
    return place;
  }
};

__attribute__((noinline)) inline Buffer bind(const heddle_launch* launch, uint32_t index, const char* name, size_t element_bytes) {
  Buffer buffer;
  buffer.name = name;
  buffer.index = index;
  if (index < launch->buffer_count) {
    buffer.given = true;
    buffer.data = static_cast<char*>(launch->buffers[index].data);
    buffer.count = launch->buffers[index].bytes / element_bytes;
  }
  return buffer;
}

}  // namespace simt

/// A tensor to read.
template <class T>
class In {
 public:
  explicit In(const simt::Buffer& buffer) : buffer_(buffer) {}

  __forceinline__ T get(int64_t i) const { return get_pack<1>(i).v[0]; }

  template <int N>
  __forceinline__ Pack<T, N> get_pack(int64_t i) const {
    buffer_.check(i, N, sizeof(T), "read");
    Pack<T, N> pack;
    memcpy(&pack, buffer_.data + i * static_cast<int64_t>(sizeof(T)), sizeof pack);
    return pack;
  }

  /// True if element i's address is a multiple of `bytes`.
  bool aligned(int64_t i, int bytes) const { return buffer_.aligned(i, sizeof(T), bytes); }

  const simt::Buffer& buffer() const { return buffer_; }

 private:
  simt::Buffer buffer_;
};

/// A tensor to read that no launch writes while this one runs. Launches run one after the other here, so it is read like any other.
template <class T>
class ConstantIn : public In<T> {
 public:
  using In<T>::In;
};

/// A tensor to write, and to read back.
template <class T>
class Out {
 public:
  explicit Out(const simt::Buffer& buffer) : buffer_(buffer) {}

  __forceinline__ T get(int64_t i) const { return get_pack<1>(i).v[0]; }

  template <int N>
  __forceinline__ Pack<T, N> get_pack(int64_t i) const {
    buffer_.check(i, N, sizeof(T), "read");
    Pack<T, N> pack;
    memcpy(&pack, buffer_.data + i * static_cast<int64_t>(sizeof(T)), sizeof pack);
    return pack;
  }

  __forceinline__ void set(int64_t i, T value) const { set_pack(i, Pack<T, 1>{{value}}); }

  template <int N>
  __forceinline__ void set_pack(int64_t i, Pack<T, N> pack) const {
    buffer_.check(i, N, sizeof(T), "write");
    if (__builtin_expect(owners_ != nullptr, 0)) {
      for (int k = 0; k < N; k++) own(i + k);
    }
    memcpy(buffer_.data + i * static_cast<int64_t>(sizeof(T)), &pack, sizeof pack);
  }

  /// Adds to an integer that other threads may add to at the same time. Any other writer must be ordered before by a barrier.
  __forceinline__ void add(int64_t i, T value) const {
    static_assert(std::is_integral<T>::value, "sums of floats would depend on their order");
    buffer_.check(i, 1, sizeof(T), "write");
    __atomic_fetch_add(reinterpret_cast<T*>(buffer_.data) + i, value, __ATOMIC_RELAXED);
  }

  bool aligned(int64_t i, int bytes) const { return buffer_.aligned(i, sizeof(T), bytes); }

  const simt::Buffer& buffer() const { return buffer_; }
  uint32_t* owners() const { return owners_; }
  /// Records the writer of each element from now on: 1 + the thread's linear number in the grid, 0 for none.
  void watch(uint32_t* owners) { owners_ = owners; }

 private:
  /// Two threads of one launch must not write the same element, since nothing orders them.
  void own(int64_t i) const {
    const uint64_t block = blockIdx.x + uint64_t{gridDim.x} * (blockIdx.y + uint64_t{gridDim.y} * blockIdx.z);
    const uint32_t thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    const uint32_t me = static_cast<uint32_t>(block * simt::current->threads + thread + 1);
    const uint32_t other = __atomic_exchange_n(owners_ + i, me, __ATOMIC_RELAXED);
    if (__builtin_expect(other == 0 || other == me, 1)) return;
    const uint3 at = simt::coordinates((other - 1) / simt::current->threads, gridDim);
    const uint3 who = simt::coordinates((other - 1) % simt::current->threads, blockDim);
    simt::current->fault("data race: %s[%lld] is also written by block (%u,%u,%u), thread (%u,%u,%u)", buffer_.name,
                         static_cast<long long>(i), at.x, at.y, at.z, who.x, who.y, who.z);
  }

  simt::Buffer buffer_;
  uint32_t* owners_ = nullptr;
};

/// The launch's buffer `index` as a tensor of T to read. `name` is for error messages and must outlive the launch.
template <class T>
inline In<T> in(const heddle_launch* launch, uint32_t index, const char* name) {
  return In<T>(simt::bind(launch, index, name, sizeof(T)));
}

/// The launch's buffer `index` as a tensor that is constant while the launch runs.
template <class T>
inline ConstantIn<T> constant_in(const heddle_launch* launch, uint32_t index, const char* name) {
  return ConstantIn<T>(simt::bind(launch, index, name, sizeof(T)));
}

/// The launch's buffer `index` as a tensor to write.
template <class T>
inline Out<T> out(const heddle_launch* launch, uint32_t index, const char* name) {
  return Out<T>(simt::bind(launch, index, name, sizeof(T)));
}

}  // namespace heddle

#endif
