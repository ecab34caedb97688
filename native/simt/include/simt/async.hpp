// Asynchronous copies under way, per thread. A copy happens when its thread waits for the group it belongs to, not when it is issued: a kernel that
// reads a tile without that wait reads the poison of the block's begin.
#ifndef HEDDLE_SIMT_ASYNC_HPP
#define HEDDLE_SIMT_ASYNC_HPP

#include <stdint.h>
#include <stdlib.h>

namespace heddle::simt {

/// A pending copy of 4 or 16 bytes; a null source stands for zeros.
struct AsyncCopy {
  const char* from;
  uint32_t to;     // offset in the block's dynamic shared memory
  uint32_t group;  // commits of the thread before this copy was issued
  uint32_t bytes;
};

class AsyncCopies {
 public:
  /// Maximum number of pending copies of one thread: more than any pipeline that fits shared memory needs.
  static constexpr uint32_t kMost = 256;

  AsyncCopies() = default;
  AsyncCopies(const AsyncCopies&) = delete;
  AsyncCopies& operator=(const AsyncCopies&) = delete;
  ~AsyncCopies() { clear(); }

  /// Drops pending copies of the previous block.
  void begin_block() {
    for (uint32_t i = 0; i < threads_; i++) queues_[i].head = queues_[i].tail = queues_[i].commits = 0;
  }

  /// Allocates memory for the threads of a block; false without memory.
  bool reserve(uint32_t threads) {
    if (threads <= threads_) return true;
    clear();
    queues_ = static_cast<Queue*>(calloc(threads, sizeof(Queue)));
    threads_ = queues_ == nullptr ? 0 : threads;
    return queues_ != nullptr;
  }

  /// False if the thread has kMost copies under way.
  bool issue(uint32_t thread, uint32_t to, const char* from, uint32_t bytes) {
    Queue& queue = queues_[thread];
    if (queue.tail - queue.head == kMost) return false;
    queue.copies[queue.tail++ % kMost] = {from, to, queue.commits, bytes};
    return true;
  }

  /// Closes the thread's group; a thread that never copied has nothing to close.
  void commit(uint32_t thread) {
    if (thread < threads_) queues_[thread].commits++;
  }

  /// Passes the thread's copies, oldest first, to `perform` until at most `pending` of its closed groups are left.
  template <class Perform>
  void wait(uint32_t thread, uint32_t pending, Perform perform) {
    if (thread >= threads_) return;
    Queue& queue = queues_[thread];
    while (queue.head != queue.tail && queue.copies[queue.head % kMost].group + pending < queue.commits) {
      perform(queue.copies[queue.head++ % kMost]);
    }
  }

  void clear() {
    free(queues_);
    queues_ = nullptr;
    threads_ = 0;
  }

 private:
  struct Queue {
    uint32_t head, tail, commits;
    AsyncCopy copies[kMost];
  };

  Queue* queues_ = nullptr;
  uint32_t threads_ = 0;
};

}  // namespace heddle::simt

#endif
