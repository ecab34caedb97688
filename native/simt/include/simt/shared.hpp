// Block-shared arrays. An element is read and written through operator[], which checks the index and that no two threads
// touch an element without an ordering barrier between them: __syncthreads, or __syncwarp for lanes of one warp.
#ifndef HEDDLE_SIMT_SHARED_HPP
#define HEDDLE_SIMT_SHARED_HPP

#include "worker.hpp"

namespace heddle::simt {

/// Orders the shared accesses of the running thread against earlier ones.
class AccessOrder {
 public:
  explicit AccessOrder(Worker& worker) : worker_(worker), me_(static_cast<uint16_t>(worker.running)) {}

  // Inlined: an element written before the last barrier and not read since, or read by this thread or by several warps.
  __forceinline__ void read(Shadow& shadow, const char* name, int64_t i) const {
    const uint32_t barrier = worker_.barrier_stamp;
    if (__builtin_expect(shadow.write_stamp >= barrier, 0)) return read_closely(shadow, name, i);
    if (shadow.read_stamp < barrier) {
      shadow.reader = me_;
    } else if (shadow.reader != me_ && shadow.reader != Shadow::kManyWarps) {
      return read_closely(shadow, name, i);
    }
    shadow.read_stamp = worker_.stamp;
  }

  __forceinline__ void write(Shadow& shadow, const char* name, int64_t i) const {
    const uint32_t barrier = worker_.barrier_stamp;
    if (shadow.write_stamp >= barrier || shadow.read_stamp >= barrier) check_write(shadow, name, i);
    shadow.writer = me_;
    shadow.write_stamp = worker_.stamp;
    shadow.reader = Shadow::kNobody;
  }

  /// An atomic addition: ordered against all but other additions. No plain access leaves several lanes or warps as the writer.
  void add(Shadow& shadow, const char* name, int64_t i) const {
    const uint16_t own = static_cast<uint16_t>(Shadow::kManyLanes | me_ / kLanes);
    const bool isAdded = shadow.writer != Shadow::kNobody && (shadow.writer & Shadow::kManyLanes) != 0;
    const bool isOld = worker_.barrier_stamp > shadow.write_stamp;
    if (!isAdded && !after(shadow.writer, shadow.write_stamp)) race("added to", name, i, "written", shadow.writer);
    if (!after(shadow.reader, shadow.read_stamp)) race("added to", name, i, "read", shadow.reader);
    // A writer that has met no other thread since stays the writer, so that additions of others are found. Lanes of one warp that add know of one
    // another when they have met, several warps after a barrier only.
    const bool isMet = isOld || worker_.fibers[me_].synced > shadow.write_stamp;
    if (shadow.writer != me_ || isMet) shadow.writer = isAdded && !isOld && shadow.writer != own ? Shadow::kManyWarps : own;
    shadow.write_stamp = worker_.stamp;
    shadow.reader = Shadow::kNobody;
  }

 private:
  __attribute__((noinline)) void read_closely(Shadow& shadow, const char* name, int64_t i) const {
    if (!after(shadow.writer, shadow.write_stamp)) race("read", name, i, "written", shadow.writer);
    if (after(shadow.reader, shadow.read_stamp)) {
      shadow.reader = me_;
    } else if (shadow.reader == Shadow::kManyWarps || warp_of(shadow.reader) != me_ / kLanes) {
      shadow.reader = Shadow::kManyWarps;
    } else {
      shadow.reader = static_cast<uint16_t>(Shadow::kManyLanes | me_ / kLanes);
    }
    shadow.read_stamp = worker_.stamp;
  }

  __attribute__((noinline)) void check_write(const Shadow& shadow, const char* name, int64_t i) const {
    if (!after(shadow.writer, shadow.write_stamp)) race("written", name, i, "written", shadow.writer);
    if (!after(shadow.reader, shadow.read_stamp)) race("written", name, i, "read", shadow.reader);
  }

  static uint32_t warp_of(uint16_t accessor) {
    return (accessor & Shadow::kManyLanes) != 0 ? accessor & 0xffu : accessor / kLanes;
  }

  /// True if the access of `accessor`, if any, at `stamp` is ordered before the running thread.
  bool after(uint16_t accessor, uint32_t stamp) const {
    if (accessor == Shadow::kNobody || accessor == me_ || worker_.barrier_stamp > stamp) return true;
    const uint32_t warp = me_ / kLanes;
    if (accessor == Shadow::kManyWarps || warp_of(accessor) != warp) return false;
    if (worker_.warp_stamp[warp] > stamp) return true;
    const Fiber& me = worker_.fibers[me_];
    return me.synced > stamp && ((accessor & Shadow::kManyLanes) != 0 || (me.synced_mask >> (accessor % kLanes) & 1u) != 0);
  }

  [[noreturn]] __attribute__((noinline, cold)) void race(const char* now, const char* name, int64_t i, const char* before,
                                                         uint16_t accessor) const {
    char who[48] = "several threads";
    if ((accessor & Shadow::kManyLanes) == 0) {
      const uint3 at = coordinates(accessor, blockDim);
      snprintf(who, sizeof who, "thread (%u,%u,%u)", at.x, at.y, at.z);
    }
    worker_.fault("data race: shared %s[%lld] is %s here and was %s by %s with no barrier between", name,
                  static_cast<long long>(i), now, before, who);
  }

  Worker& worker_;
  uint16_t me_;
};

/// An element to be read or written. It only exists inside the expression that indexes the array, so code cannot keep one by accident where CUDA
/// would have copied the value.
template <class T>
class SharedElement {
 public:
  __forceinline__ SharedElement(const AccessOrder& order, T* data, Shadow* shadow, const char* name, int64_t i)
      : order_(order), data_(data), shadow_(shadow), name_(name), i_(i) {}
  SharedElement(const SharedElement&) = delete;

  __forceinline__ operator T() const&& { return read(); }
  T operator=(T value) && { return write(value); }
  T operator=(SharedElement&& other) && { return write(other.read()); }
  T operator+=(T value) && { return write(read() + value); }
  T operator-=(T value) && { return write(read() - value); }
  T operator*=(T value) && { return write(read() * value); }

  /// Adds as atomicAdd does; returns the value before. The threads of a block run alternately, so a plain addition is atomic.
  T add(T value) && {
    order_.add(*shadow_, name_, i_);
    const T before = *data_;
    *data_ = before + value;
    return before;
  }

 private:
  __forceinline__ T read() const {
    order_.read(*shadow_, name_, i_);
    return *data_;
  }
  __forceinline__ T write(T value) const {
    order_.write(*shadow_, name_, i_);
    return *data_ = value;
  }

  const AccessOrder& order_;
  T* data_;
  Shadow* shadow_;
  const char* name_;
  int64_t i_;
};

/// The array of a HEDDLE_SHARED declaration: the running block's array, seen by one thread. A thread keeps its worker, so that both are looked up
/// once.
template <class T, size_t Count>
class Shared {
  static_assert(Count > 0, "a shared array has at least one element");

 public:
  Shared(const void* key, const char* name) : order_(*current), name_(name) {
    const SharedArena::Array* array = current->shared.find(key, sizeof(T) * Count, Count);
    if (array == nullptr) current->fault("no memory for shared %s (%zu bytes)", name, sizeof(T) * Count);
    data_ = reinterpret_cast<T*>(array->data);
    shadow_ = array->shadow;
  }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;

  __forceinline__ SharedElement<T> operator[](int64_t i) const {
    if (__builtin_expect(static_cast<uint64_t>(i) >= Count, 0)) out_of_bounds(i);
    return {order_, data_ + i, shadow_ + i, name_, i};
  }

 private:
  [[noreturn]] __attribute__((noinline, cold)) void out_of_bounds(int64_t i) const {
    current->fault("shared %s[%lld] is out of bounds (%zu elements)", name_, static_cast<long long>(i), Count);
  }

  AccessOrder order_;
  T* data_;
  Shadow* shadow_;
  const char* name_;
};

}  // namespace heddle::simt

namespace heddle {

/// Adds to an element of a block-shared array that other threads may add to at the same time; returns the value before.
template <class T, size_t Count>
T add_shared(const simt::Shared<T, Count>& array, int i, T value) {
  return array[i].add(value);
}

/// Adds to a 64-bit sum.
template <size_t Count>
void sum_shared(const simt::Shared<unsigned long long, Count>& array, int i, unsigned long long value) {
  array[i].add(value);
}

}  // namespace heddle

/// Declares a block-shared array inside device code, once per declaration as `__shared__` does. `count` is a constant.
#define HEDDLE_SHARED(type, name, count) \
  static const char name##_declared = 0; \
  const heddle::simt::Shared<type, (count)> name(&name##_declared, #name)

/// Declares a function that returns a block-shared array, the same one for all calls of a kernel.
#define HEDDLE_SHARED_FUNCTION(type, name, count)         \
  inline heddle::simt::Shared<type, (count)> name() {     \
    static const char declared = 0;                       \
    return {&declared, #name};                            \
  }

#endif
