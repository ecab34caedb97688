// Device memory of the simt device: ordinary memory between guard bands, filled with 0xFF (NaN as a float) when fresh.
#ifndef HEDDLE_SIMT_PLUGIN_MEMORY_HPP
#define HEDDLE_SIMT_PLUGIN_MEMORY_HPP

#include <cstdint>
#include <map>
#include <mutex>

#include "heddle/abi.h"

namespace heddle::simt {

/// Physical memory of the machine or of the control group the process is in, in bytes.
struct SystemMemory {
  uint64_t total, available;
};
SystemMemory system_memory();

class Memory {
 public:
  /// `limit` bounds the sum of live allocations.
  explicit Memory(uint64_t limit) : limit_(limit) {}
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory();

  uint64_t limit() const { return limit_; }
  uint64_t available();

  /// @returns HEDDLE_MEMORY with the bytes asked for and available
  int32_t allocate(uint64_t bytes, void** data, heddle_error* error);
  /// Frees; HEDDLE_FAULT when something wrote outside the allocation, HEDDLE_INVALID when `data` is not one.
  int32_t release(void* data, heddle_error* error);
  /// HEDDLE_FAULT when something wrote outside any live allocation.
  int32_t check_guards(heddle_error* error);
  /// HEDDLE_INVALID unless [data, data + bytes) lies in one live allocation. `what` names the range in the message.
  int32_t check_range(const void* data, uint64_t bytes, const char* what, heddle_error* error);

 private:
  uint64_t available_locked() const;

  std::mutex mutex_;
  std::map<uintptr_t, uint64_t> sizes_;  // address -> bytes
  uint64_t used_ = 0;
  const uint64_t limit_;
};

}  // namespace heddle::simt

#endif
