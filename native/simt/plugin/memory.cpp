#include "memory.hpp"

#include <sys/mman.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "simt/fault.hpp"

namespace heddle::simt {
namespace {

constexpr uint64_t kAlign = 256;
constexpr uint64_t kGuard = 256;
constexpr unsigned char kGuardByte = 0xa5;
constexpr unsigned char kPoisonByte = 0xff;
/// Larger blocks are filled before something may read them.
constexpr uint64_t kLargeBlock = 8 << 20;

/// The number after `key` in a text file of the system, or `otherwise`.
uint64_t read_number(const char* path, const char* key, uint64_t otherwise) {
  FILE* file = std::fopen(path, "re");
  if (file == nullptr) return otherwise;
  char line[256];
  uint64_t number = otherwise;
  const size_t length = std::strlen(key);
  while (std::fgets(line, sizeof line, file) != nullptr) {
    unsigned long long value = 0;
    if (std::strncmp(line, key, length) == 0 && std::sscanf(line + length, "%llu", &value) == 1) {
      number = value;
      break;
    }
  }
  std::fclose(file);
  return number;
}

/// Bytes of the allocation with both bands; the band after the data starts at its last byte.
uint64_t padded(uint64_t bytes) { return (kGuard + bytes + kGuard + kAlign - 1) / kAlign * kAlign; }

/// Requests pages of 2 MiB for a block, if the system has them: a fault every 4 KiB takes longer than filling a block does.
void ask_for_large_pages(void* block, uint64_t bytes) {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const auto first = (reinterpret_cast<uintptr_t>(block) + page - 1) / page * page, end = reinterpret_cast<uintptr_t>(block) + bytes;
  // A hint: a system without large pages serves small ones.
  if (first < end) madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE);
}

/// Fails unless both bands of the allocation are intact.
int32_t check_bands(uintptr_t address, uint64_t bytes, heddle_error* error) {
  const auto* data = reinterpret_cast<const unsigned char*>(address);
  const auto intact = [](const unsigned char* band, int64_t& first) {
    const unsigned char* bad = std::find_if(band, band + kGuard, [](unsigned char byte) { return byte != kGuardByte; });
    first = bad - band;
    return bad == band + kGuard;
  };
  int64_t at = 0;
  if (!intact(data - kGuard, at)) {
    return fail(error, HEDDLE_FAULT, "something wrote %lld bytes before a device buffer of %llu bytes",
                static_cast<long long>(static_cast<int64_t>(kGuard) - at), static_cast<unsigned long long>(bytes));
  }
  if (!intact(data + bytes, at)) {
    return fail(error, HEDDLE_FAULT, "something wrote at byte %llu of a device buffer of %llu bytes",
                static_cast<unsigned long long>(bytes + static_cast<uint64_t>(at)), static_cast<unsigned long long>(bytes));
  }
  return HEDDLE_OK;
}

/// Populates a range at once, if the system can: pages cost half as much as with a fault each.
void touch(uintptr_t from, uintptr_t to) {
#ifdef MADV_POPULATE_WRITE
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t first = (from + page - 1) / page * page;
  if (first < to) madvise(reinterpret_cast<void*>(first), to - first, MADV_POPULATE_WRITE);
#endif
}

}  // namespace

SystemMemory system_memory() {
  struct sysinfo info = {};
  sysinfo(&info);
  const uint64_t total = uint64_t{info.totalram} * info.mem_unit;
  const uint64_t free_bytes = read_number("/proc/meminfo", "MemAvailable:", uint64_t{info.freeram} * info.mem_unit / 1024) * 1024;
  // A control group's limit takes precedence, if there is one; "max" is not a number and leaves the machine's own.
  const uint64_t group = read_number("/sys/fs/cgroup/memory.max", "", total);
  const uint64_t group_used = read_number("/sys/fs/cgroup/memory.current", "", 0);
  SystemMemory memory = {std::min(total, group), std::min(free_bytes, total)};
  if (group < total) memory.available = std::min(memory.available, group - std::min(group, group_used));
  return memory;
}

Memory::~Memory() {
  for (const auto& [address, bytes] : sizes_) std::free(reinterpret_cast<unsigned char*>(address) - kGuard);
}

uint64_t Memory::untouched_locked() const {
  uint64_t bytes = 0;
  for (const auto& [address, filled] : filled_) bytes += sizes_.at(address) - filled;
  return bytes;
}

uint64_t Memory::available_locked() const {
  const uint64_t system = system_memory().available;
  return std::min(limit_ - std::min(limit_, used_), system - std::min(system, untouched_locked()));
}

uint64_t Memory::available() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return available_locked();
}

int32_t Memory::allocate(uint64_t bytes, void** data, heddle_error* error) {
  const std::lock_guard<std::mutex> lock(mutex_);
  *data = nullptr;
  const uint64_t available = available_locked();
  const auto refuse = [&] {
    return fail(error, HEDDLE_MEMORY, "out of memory on the simt device: %llu bytes asked for, %llu available",
                static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(available));
  };
  if (bytes > available) return refuse();
  auto* block = static_cast<unsigned char*>(std::aligned_alloc(kAlign, padded(bytes)));
  if (block == nullptr) return refuse();
  if (bytes > kLargeBlock) ask_for_large_pages(block, padded(bytes));
  std::memset(block, kGuardByte, kGuard);
  std::memset(block + kGuard + bytes, kGuardByte, kGuard);
  const auto address = reinterpret_cast<uintptr_t>(block + kGuard);
  if (bytes > kLargeBlock) {
    filled_.emplace(address, 0);
  } else {
    std::memset(block + kGuard, kPoisonByte, bytes);
  }
  sizes_.emplace(address, bytes);
  used_ += bytes;
  *data = block + kGuard;
  return HEDDLE_OK;
}

int32_t Memory::release(void* data, heddle_error* error) {
  if (data == nullptr) return HEDDLE_OK;
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = sizes_.find(reinterpret_cast<uintptr_t>(data));
  if (found == sizes_.end()) return fail(error, HEDDLE_INVALID, "release of %p, which is not a live device buffer", data);
  const int32_t status = check_bands(found->first, found->second, error);
  used_ -= found->second;
  filled_.erase(found->first);
  sizes_.erase(found);
  std::free(static_cast<unsigned char*>(data) - kGuard);
  return status;
}

int32_t Memory::check_guards(heddle_error* error) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [address, bytes] : sizes_) {
    if (const int32_t status = check_bands(address, bytes, error); status != HEDDLE_OK) return status;
  }
  return HEDDLE_OK;
}

uintptr_t Memory::find_locked(const void* data, uint64_t bytes, const char* what, heddle_error* error) const {
  const auto address = reinterpret_cast<uintptr_t>(data);
  const auto after = sizes_.upper_bound(address);
  const auto found = after == sizes_.begin() ? sizes_.end() : std::prev(after);
  if (found == sizes_.end() || address - found->first >= found->second) {
    fail(error, HEDDLE_INVALID, "%s %p is not in a live device buffer", what, data);
    return 0;
  }
  const uint64_t offset = address - found->first;
  if (bytes > found->second - offset) {
    fail(error, HEDDLE_INVALID, "%s of %llu bytes at offset %llu ends outside a device buffer of %llu bytes", what,
         static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(offset),
         static_cast<unsigned long long>(found->second));
    return 0;
  }
  return found->first;
}

int32_t Memory::write(void* data, const void* host, uint64_t bytes, heddle_error* error) {
  if (bytes == 0) return HEDDLE_OK;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const uintptr_t block = find_locked(data, bytes, "copy to the device", error);
    if (block == 0) return HEDDLE_INVALID;
    if (const auto filled = filled_.find(block); filled != filled_.end()) {
      const uint64_t from = reinterpret_cast<uintptr_t>(data) - block;
      if (from > filled->second) std::memset(reinterpret_cast<void*>(block + filled->second), kPoisonByte, from - filled->second);
      touch(block + filled->second, block + std::max(filled->second, from + bytes));
      filled->second = std::max(filled->second, from + bytes);
    }
  }
  std::memcpy(data, host, bytes);
  return HEDDLE_OK;
}

void Memory::settle() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [address, filled] : filled_) std::memset(reinterpret_cast<void*>(address + filled), kPoisonByte, sizes_.at(address) - filled);
  filled_.clear();
}

int32_t Memory::check_range(const void* data, uint64_t bytes, const char* what, heddle_error* error) {
  if (bytes == 0) return HEDDLE_OK;
  settle();
  const std::lock_guard<std::mutex> lock(mutex_);
  return find_locked(data, bytes, what, error) == 0 ? HEDDLE_INVALID : HEDDLE_OK;
}

}  // namespace heddle::simt
