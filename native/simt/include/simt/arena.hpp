// Storage of one block's shared arrays. Each array is found by the address of its declaration, and starts every block as 0xFF bytes (NaN as a float).
// It carries a shadow record per element: the thread of the last access, and its time.
#ifndef HEDDLE_SIMT_ARENA_HPP
#define HEDDLE_SIMT_ARENA_HPP

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

namespace heddle::simt {

/// The last accesses to an element. All bytes 0xFF: none yet.
struct Shadow {
  static constexpr uint16_t kNobody = 0xffff;
  static constexpr uint16_t kManyWarps = 0xfffe;
  static constexpr uint16_t kManyLanes = 0x8000;  // or'ed with the warp they are in

  uint32_t write_stamp, read_stamp;  // the worker's meeting count at the time
  uint16_t writer, reader;           // thread numbers in the block
};

class SharedArena {
 public:
  struct Array {
    const void* key;
    char* data;
    Shadow* shadow;
    size_t bytes, count;
    bool poisoned;
  };

  SharedArena() = default;
  SharedArena(const SharedArena&) = delete;
  SharedArena& operator=(const SharedArena&) = delete;
  ~SharedArena() { clear(); }

  /// The array declared at `key` in the current block; null when memory or the table is full.
  Array* find(const void* key, size_t bytes, size_t count) {
    uint32_t i = 0;
    while (i < used_ && arrays_[i].key != key) i++;
    if (i == used_ && !add(key, bytes, count)) return nullptr;
    Array& array = arrays_[i];
    if (!array.poisoned) {
      memset(array.data, 0xff, array.bytes);
      memset(static_cast<void*>(array.shadow), 0xff, array.count * sizeof(Shadow));
      array.poisoned = true;
    }
    return &array;
  }

  void begin_block() {
    for (uint32_t i = 0; i < used_; i++) arrays_[i].poisoned = false;
  }

  void clear() {
    for (uint32_t i = 0; i < used_; i++) free(arrays_[i].data);
    used_ = 0;
  }

 private:
  static constexpr uint32_t kMaxArrays = 64;
  static constexpr size_t kAlign = 128;

  bool add(const void* key, size_t bytes, size_t count) {
    if (used_ == kMaxArrays) return false;
    const size_t data_bytes = (bytes + kAlign - 1) / kAlign * kAlign;
    const size_t total = (data_bytes + count * sizeof(Shadow) + kAlign - 1) / kAlign * kAlign;
    char* data = static_cast<char*>(aligned_alloc(kAlign, total));
    if (data == nullptr) return false;
    arrays_[used_++] = {key, data, reinterpret_cast<Shadow*>(data + data_bytes), bytes, count, false};
    return true;
  }

  Array arrays_[kMaxArrays];
  uint32_t used_ = 0;
};

}  // namespace heddle::simt

#endif
