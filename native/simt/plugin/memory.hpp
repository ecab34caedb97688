// Device memory of the simt device: ordinary memory between guard bands, filled with 0xFF (NaN as a float) when fresh. Large blocks are filled only
// before unwritten parts may be read: weights write theirs from the first byte to the last, once and not twice.
#ifndef HEDDLE_SIMT_PLUGIN_MEMORY_HPP
#define HEDDLE_SIMT_PLUGIN_MEMORY_HPP

#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

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
  /// Frees; HEDDLE_FAULT if something wrote outside the allocation, HEDDLE_INVALID if `data` is not one.
  int32_t release(void* data, heddle_error* error);
  /// HEDDLE_FAULT if something wrote outside any live allocation.
  int32_t check_guards(heddle_error* error);
  /// Copies to [data, data + bytes). HEDDLE_INVALID as `check_range`.
  int32_t write(void* data, const void* host, uint64_t bytes, heddle_error* error);
  /// Fills unwritten parts, before accesses by address.
  void settle();
  /// HEDDLE_INVALID unless [data, data + bytes) lies in one live allocation, which is settled then. `what` names the range in the message.
  int32_t check_range(const void* data, uint64_t bytes, const char* what, heddle_error* error);

 private:
  uint64_t available_locked() const;

  std::mutex mutex_;
  /// Address of the live allocation that contains a range; 0 with an error if there is none.
  uintptr_t find_locked(const void* data, uint64_t bytes, const char* what, heddle_error* error) const;
  /// Bytes of large blocks that were never touched: the system counts them as available.
  uint64_t untouched_locked() const;

  std::map<uintptr_t, uint64_t> sizes_;  // address -> bytes
  std::map<uintptr_t, uint64_t> filled_;   // address -> initialised bytes from its start, of blocks whose rest is not filled
  uint64_t used_ = 0;
  const uint64_t limit_;
};

}  // namespace heddle::simt

#endif
