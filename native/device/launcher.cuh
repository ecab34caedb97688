// Host side of a kernel file: reads and checks the arguments of a launch, and launches teams over rows. The first invalid argument fills
// the error with one line that names the kernel, the argument and the value; later checks then do nothing.
#ifndef HEDDLE_LAUNCHER_CUH
#define HEDDLE_LAUNCHER_CUH

#include "team.cuh"

namespace heddle {

/// A number of elements. Arithmetic that leaves int64 sticks at `overflow`, so a product of extents needs one check.
struct Count {
  static constexpr int64_t overflow = INT64_MAX;
  int64_t value;

  constexpr Count(int64_t count) : value(count) {}

  bool is_overflow() const { return value == overflow; }

  friend Count operator+(Count a, Count b) {
    int64_t sum;
    return a.is_overflow() || b.is_overflow() || __builtin_add_overflow(a.value, b.value, &sum) ? overflow : sum;
  }
  friend Count operator*(Count a, Count b) {
    int64_t product;
    if (a.value == 0 || b.value == 0) return 0;
    return a.is_overflow() || b.is_overflow() || __builtin_mul_overflow(a.value, b.value, &product) ? overflow : product;
  }
  friend Count operator-(Count a, Count b) { return a.is_overflow() ? a : Count(a.value - b.value); }
  friend Count operator/(Count a, Count b) { return a.is_overflow() || b.value == 0 ? a : Count(a.value / b.value); }
  friend Count operator%(Count a, Count b) { return a.is_overflow() || b.value == 0 ? a : Count(a.value % b.value); }
  friend Count operator>>(Count a, Count b) { return a.is_overflow() ? a : Count(a.value >> b.value); }
  friend Count operator<<(Count a, Count b) { return a * Count(int64_t{1} << b.value); }
  friend Count operator&(Count a, Count b) { return a.is_overflow() ? a : Count(a.value & b.value); }
};

inline Count quotient(Count a, Count b) { return a / b; }
inline Count remainder(Count a, Count b) { return a % b; }

inline int64_t longest(int64_t a) { return a; }
template <class... Rest>
int64_t longest(int64_t a, Rest... rest) {
  const int64_t b = longest(rest...);
  return a < b ? b : a;
}

/// Arguments that every launch of a kernel must give.
struct Signature {
  const char* kernel;
  uint32_t buffers;
  uint32_t dims;
  uint32_t attrs;
};

/// A launch under examination. `status` stays HEDDLE_OK while all arguments are valid; values read after a failure are zero.
class Arguments {
 public:
  int32_t status = HEDDLE_OK;

  Arguments(const heddle_launch* launch, heddle_error* error, const Signature& want)
      : launch_(launch), error_(error), kernel_(want.kernel) {
    if (launch->buffer_count == want.buffers && launch->dim_count == want.dims && launch->attr_count == want.attrs) return;
    status = fail(error, HEDDLE_INVALID, "kernel %s: expected %u buffers, %u dims and %u attrs, got %u, %u and %u", kernel_,
                  want.buffers, want.dims, want.attrs, launch->buffer_count, launch->dim_count, launch->attr_count);
  }

  /// Kernels index in 32 bits within a dimension; offsets are 64 bits.
  int64_t dim(uint32_t index, const char* name) {
    if (status != HEDDLE_OK) return 0;
    const int64_t extent = launch_->dims[index];
    if (extent >= 0 && extent <= INT32_MAX) return extent;
    status = fail(error_, HEDDLE_INVALID, "kernel %s: expected dimension %s in [0, 2147483647], got %lld", kernel_, name,
                  static_cast<long long>(extent));
    return 0;
  }

  /// Checks a dimension the instance is compiled for.
  void fixed_dim(uint32_t index, const char* name, int64_t fixed) {
    if (status != HEDDLE_OK || launch_->dims[index] == fixed) return;
    status = fail(error_, HEDDLE_INVALID, "kernel %s is compiled for %s = %lld, got %lld", kernel_, name,
                  static_cast<long long>(fixed), static_cast<long long>(launch_->dims[index]));
  }

  /// Checks a number against the memory of the instance.
  void at_most(int64_t given, int64_t most, const char* what) {
    if (status != HEDDLE_OK || given <= most) return;
    status = fail(error_, HEDDLE_INVALID, "kernel %s has memory for %lld %s, got %lld", kernel_, static_cast<long long>(most), what,
                  static_cast<long long>(given));
  }

  float f32_attr(uint32_t index, const char*) const {
    return status != HEDDLE_OK ? 0.0f : static_cast<float>(launch_->attrs[index]);
  }

  int i32_attr(uint32_t index, const char* name) {
    if (status != HEDDLE_OK) return 0;
    const double value = launch_->attrs[index];
    if (value >= INT32_MIN && value <= INT32_MAX && value == floor(value)) return static_cast<int>(value);
    status = fail(error_, HEDDLE_INVALID, "kernel %s: expected a 32-bit integer for attribute %s, got %g", kernel_, name, value);
    return 0;
  }

  /// A tensor to read that spans `elements`, padding included.
  template <class T>
  In<T> in(uint32_t index, const char* name, Count elements) {
    check_buffer(index, name, elements, sizeof(T));
    return heddle::in<T>(launch_, index, name);
  }

  /// A tensor to read through the read-only path. Refused unless the program knows that no launch writes it meanwhile.
  template <class T>
  ConstantIn<T> constant_in(uint32_t index, const char* name, Count elements) {
    check_buffer(index, name, elements, sizeof(T));
    if (status == HEDDLE_OK && !is_constant(index)) {
      status = fail(error_, HEDDLE_INVALID, "kernel %s reads %s as a constant, but a step of the program writes it", kernel_, name);
    }
    return heddle::constant_in<T>(launch_, index, name);
  }

  /// True if no launch writes a buffer while this one runs or waits, so that it may be read before earlier launches are complete.
  bool is_constant(uint32_t index) const {
    return status == HEDDLE_OK && launch_->constants != nullptr && launch_->constants[index] == HEDDLE_CONSTANT;
  }

  /// True if the previous launch does not write a buffer either, so that parts of it that this launch does not write may be prefetched.
  bool is_settled(uint32_t index) const {
    return status == HEDDLE_OK && launch_->constants != nullptr && launch_->constants[index] != HEDDLE_CHANGING;
  }

  /// A tensor to write that spans `elements`, padding included.
  template <class T>
  Out<T> out(uint32_t index, const char* name, Count elements) {
    check_buffer(index, name, elements, sizeof(T));
    return heddle::out<T>(launch_, index, name);
  }

  /// The number of rows or chunks to work on, of which a block takes at least one; grids have at most 2^31 - 1 blocks.
  int64_t work(Count count, int64_t per_block) {
    if (status != HEDDLE_OK) return 0;
    if (!count.is_overflow() && count.value / per_block < INT32_MAX) return count.value;
    status = fail(error_, HEDDLE_INVALID, "kernel %s: the launch exceeds 2147483647 blocks", kernel_);
    return 0;
  }

 private:
  void check_buffer(uint32_t index, const char* name, Count elements, uint64_t element_bytes) {
    if (status != HEDDLE_OK) return;
    const Count bytes = elements * Count(static_cast<int64_t>(element_bytes));
    const heddle_slice& slice = launch_->buffers[index];
    if (bytes.is_overflow()) {
      status = fail(error_, HEDDLE_INVALID, "kernel %s: the size of %s in bytes exceeds 64 bits", kernel_, name);
    } else if (static_cast<uint64_t>(bytes.value) > slice.bytes) {
      status = fail(error_, HEDDLE_INVALID, "kernel %s: %s needs %lld bytes, its buffer has %llu", kernel_, name,
                    static_cast<long long>(bytes.value), static_cast<unsigned long long>(slice.bytes));
    } else if (bytes.value > 0 && slice.data == nullptr) {
      status = fail(error_, HEDDLE_INVALID, "kernel %s: the buffer of %s is null", kernel_, name);
    } else if (reinterpret_cast<uintptr_t>(slice.data) % element_bytes != 0) {
      status = fail(error_, HEDDLE_INVALID, "kernel %s: the buffer of %s is not aligned to its %llu-byte elements", kernel_, name,
                    static_cast<unsigned long long>(element_bytes));
    }
  }

  const heddle_launch* launch_;
  heddle_error* error_;
  const char* kernel_;
};

/// Launches `kernel` with one thread for each of `work` chunks.
template <class Kernel, class... Args>
int32_t launch_elements(const heddle_launch* queue, heddle_error* error, const char* name, int64_t work, int threads,
                        Kernel kernel, Args... args) {
  const dim3 grid(static_cast<unsigned int>((work + threads - 1) / threads));
  return launch(queue, error, LaunchConfig{name, grid, dim3(static_cast<unsigned int>(threads)), 0, Sync::none, true}, kernel,
                args...);
}

/// Launches `kernel` with one team for each of `rows`.
template <class Team, class Kernel, class... Args>
int32_t launch_rows(Team, const heddle_launch* queue, heddle_error* error, const char* name, int64_t rows, Kernel kernel,
                    Args... args) {
  const dim3 grid(static_cast<unsigned int>((rows + Team::rows - 1) / Team::rows));
  return launch(queue, error, LaunchConfig{name, grid, dim3(Team::threads), 0, Team::sync, true}, kernel, args...);
}

}  // namespace heddle

#endif
