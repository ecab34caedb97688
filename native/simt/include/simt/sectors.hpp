// Counts of the 32-byte sectors of global memory that a launch moves, where HEDDLE_SIMT_SECTORS names a file: each launch appends a line of JSON.
//
//   accessed   sectors of every warp-wide access, as GPUs count requests to the first cache: lanes of a warp share a sector within one access
//   blocks     distinct sectors of each block, summed: transfers if a block's cache kept everything, and blocks shared nothing
//   distinct   distinct sectors of the launch: transfers if one cache kept everything
//
// Each is a pair, of loads and of stores. A cache of limited size lies between the first and the last. Accesses of different lanes are one if they come
// from the same machine code, for the same time since the lane met others. Sums of atomics count as stores.
#ifndef HEDDLE_SIMT_SECTORS_HPP
#define HEDDLE_SIMT_SECTORS_HPP

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

namespace heddle::simt {

/// The file that launches append their counts to; null if they do not count.
inline const char* const sectors_file = getenv("HEDDLE_SIMT_SECTORS");

constexpr uint64_t kSectorBytes = 32;

/// Mixes a number into a digest. Two keys of a launch are never equal by chance: digests have 64 bits.
inline uint64_t mixed(uint64_t digest, uint64_t value) {
  uint64_t x = (digest ^ value) * 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93u;
  return x ^ (x >> 29);
}

/// Counters by a digest: open addressing, doubled when half full. Without memory nothing is counted and `failed` is true.
class Counters {
 public:
  Counters() = default;
  Counters(const Counters&) = delete;
  Counters& operator=(const Counters&) = delete;
  ~Counters() { free(slots_); }

  /// Adds one to the counter; returns its value before.
  uint64_t next(uint64_t digest) {
    if (used_ * 2 >= size_ && !grow()) return 1;
    Slot& slot = find(digest == 0 ? 1 : digest);
    if (slot.count == 0) used_++;
    return slot.count++;
  }

  void clear() {
    if (used_ > 0) memset(static_cast<void*>(slots_), 0, size_ * sizeof(Slot));
    used_ = 0;
  }

  bool failed = false;

 private:
  struct Slot {
    uint64_t digest, count;
  };

  Slot& find(uint64_t digest) const {
    uint64_t at = digest & (size_ - 1);
    while (slots_[at].count > 0 && slots_[at].digest != digest) at = (at + 1) & (size_ - 1);
    slots_[at].digest = digest;
    return slots_[at];
  }

  bool grow() {
    const uint64_t size = size_ == 0 ? 1024 : size_ * 2;
    Slot* const before = slots_;
    const uint64_t before_size = size_;
    auto* const slots = static_cast<Slot*>(calloc(size, sizeof(Slot)));
    if (slots == nullptr) {
      failed = true;
      return false;
    }
    slots_ = slots;
    size_ = size;
    for (uint64_t i = 0; i < before_size; i++) {
      if (before[i].count > 0) find(before[i].digest) = before[i];
    }
    free(before);
    return true;
  }

  Slot* slots_ = nullptr;
  uint64_t size_ = 0, used_ = 0;
};

/// Numbers of sectors, of loads and of stores.
struct SectorCounts {
  uint64_t accessed[2] = {}, blocks[2] = {}, distinct[2] = {};
};

/// Counts of a whole launch, which its workers share. A spin lock: it is held once for each sector that is new in a block.
class LaunchSectors {
 public:
  SectorCounts counts;

  void add_block(const uint64_t (&accessed)[2]) {
    lock();
    for (int way = 0; way < 2; way++) counts.accessed[way] += accessed[way];
    unlock();
  }

  void add_sector(uint64_t sector, int way) {
    lock();
    counts.blocks[way]++;
    if (seen_.next(mixed(sector, static_cast<uint64_t>(way))) == 0) counts.distinct[way]++;
    unlock();
  }

  /// Appends the line of the launch, unless memory was too little to count.
  void write(const char* kernel) const {
    FILE* const file = seen_.failed ? nullptr : fopen(sectors_file, "ae");
    if (file == nullptr) return;
    const auto& [accessed, blocks, distinct] = counts;
    fprintf(file, "{\"kernel\":\"%s\",\"accessed\":[%llu,%llu],\"blocks\":[%llu,%llu],\"distinct\":[%llu,%llu]}\n", kernel,
            number(accessed[0]), number(accessed[1]), number(blocks[0]), number(blocks[1]), number(distinct[0]), number(distinct[1]));
    fclose(file);
  }

 private:
  static unsigned long long number(uint64_t value) { return value; }

  void lock() {
    while (__atomic_test_and_set(&locked_, __ATOMIC_ACQUIRE)) {
    }
  }
  void unlock() { __atomic_clear(&locked_, __ATOMIC_RELEASE); }

  Counters seen_;
  bool locked_ = false;
};

/// Counts of the block that a worker runs.
class BlockSectors {
 public:
  /// Counts an access of at most 16 aligned bytes, which lie in one sector. @param site identifies the code of the access
  /// @param thread number in the block @param meetings the times that the thread has met others
  void add(const void* site, const void* address, int way, uint32_t thread, uint32_t meetings) {
    const uint64_t sector = reinterpret_cast<uintptr_t>(address) / kSectorBytes;
    const uint64_t code = mixed(mixed(reinterpret_cast<uintptr_t>(site), meetings), static_cast<uint64_t>(way));
    const uint64_t turn = turns_.next(mixed(code, thread));
    const uint64_t access = mixed(mixed(code, thread / kWarp), turn);
    if (seen_.next(mixed(access, sector)) != 0) return;
    accessed_[way]++;
    if (seen_.next(mixed(sector, static_cast<uint64_t>(way))) == 0) launch->add_sector(sector, way);
  }

  void begin_block() {
    turns_.clear();
    seen_.clear();
    accessed_[0] = accessed_[1] = 0;
  }
  void end_block() { launch->add_block(accessed_); }

  LaunchSectors* launch = nullptr;

 private:
  static constexpr uint32_t kWarp = 32;

  Counters turns_, seen_;
  uint64_t accessed_[2] = {};
};

}  // namespace heddle::simt

#endif
