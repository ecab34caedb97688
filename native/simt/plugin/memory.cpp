#include "memory.hpp"

#include <sys/sysinfo.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "simt/fault.hpp"

namespace heddle::simt {
namespace {

constexpr uint64_t kAlign = 256;
constexpr uint64_t kGuard = 256;
constexpr unsigned char kGuardByte = 0xa5;
constexpr unsigned char kPoisonByte = 0xff;

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

/// Bytes the allocation occupies with both bands; the band after the data starts at its last byte.
uint64_t padded(uint64_t bytes) { return (kGuard + bytes + kGuard + kAlign - 1) / kAlign * kAlign; }

/// Whether both bands of the allocation still hold what was put there.
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

}  // namespace

SystemMemory system_memory() {
  struct sysinfo info = {};
  sysinfo(&info);
  const uint64_t total = uint64_t{info.totalram} * info.mem_unit;
  const uint64_t free_bytes = read_number("/proc/meminfo", "MemAvailable:", uint64_t{info.freeram} * info.mem_unit / 1024) * 1024;
  // A control group's limit counts where there is one; "max" is not a number and leaves the machine's own.
  const uint64_t group = read_number("/sys/fs/cgroup/memory.max", "", total);
  const uint64_t group_used = read_number("/sys/fs/cgroup/memory.current", "", 0);
  SystemMemory memory = {std::min(total, group), std::min(free_bytes, total)};
  if (group < total) memory.available = std::min(memory.available, group - std::min(group, group_used));
  return memory;
}

Memory::~Memory() {
  for (const auto& [address, bytes] : sizes_) std::free(reinterpret_cast<unsigned char*>(address) - kGuard);
}

uint64_t Memory::available_locked() const { return std::min(limit_ - std::min(limit_, used_), system_memory().available); }

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
  std::memset(block, kGuardByte, kGuard);
  std::memset(block + kGuard, kPoisonByte, bytes);
  std::memset(block + kGuard + bytes, kGuardByte, kGuard);
  sizes_.emplace(reinterpret_cast<uintptr_t>(block + kGuard), bytes);
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

int32_t Memory::check_range(const void* data, uint64_t bytes, const char* what, heddle_error* error) {
  if (bytes == 0) return HEDDLE_OK;
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto address = reinterpret_cast<uintptr_t>(data);
  auto found = sizes_.upper_bound(address);
  if (found == sizes_.begin()) return fail(error, HEDDLE_INVALID, "%s %p is not in a live device buffer", what, data);
  --found;
  const uint64_t offset = address - found->first;
  if (offset >= found->second) return fail(error, HEDDLE_INVALID, "%s %p is not in a live device buffer", what, data);
  if (bytes > found->second - offset) {
    return fail(error, HEDDLE_INVALID, "%s of %llu bytes at offset %llu ends outside a device buffer of %llu bytes", what,
                static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(offset),
                static_cast<unsigned long long>(found->second));
  }
  return HEDDLE_OK;
}

}  // namespace heddle::simt
