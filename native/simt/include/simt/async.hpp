// Asynchronous copies under way, thread by thread. A copy happens when its thread waits for the group it belongs to, not when
// it is issued: a kernel that reads a tile without that wait meets the poison its block began with.
#ifndef HEDDLE_SIMT_ASYNC_HPP
#define HEDDLE_SIMT_ASYNC_HPP

#include <stdint.h>
#include <stdlib.h>

namespace heddle::simt {

/// 16 bytes on their way; a null source stands for zeros.
struct AsyncCopy {
  const char* from;
  uint32_t to;     // offset in the block's dynamic shared memory
  uint32_t group;  // commits of the thread before this copy was issued
};

class AsyncCopies {
 public:
  /// Copies one thread may have under way: more than any pipeline that fits shared memory needs.
  static constexpr uint32_t kMost = 256;

  AsyncCopies() = default;
  AsyncCopies(const AsyncCopies&) = delete;
  AsyncCopies& operator=(const AsyncCopies&) = delete;
  ~AsyncCopies() { clear(); }

  /// Forgets what the block before has left under way.
  void begin_block() {
    for (uint32_t i = 0; i < threads_; i++) queues_[i].head = queues_[i].tail = queues_[i].commits = 0;
  }

  /// Makes room for the threads of a block; false without memory.
  bool reserve(uint32_t threads) {
    if (threads <= threads_) return true;
    clear();
    queues_ = static_cast<Queue*>(calloc(threads, sizeof(Queue)));
    threads_ = queues_ == nullptr ? 0 : threads;
    return queues_ != nullptr;
  }

  /// False when the thread has kMost copies under way.
  bool issue(uint32_t thread, uint32_t to, const char* from) {
    Queue& queue = queues_[thread];
    if (queue.tail - queue.head == kMost) return false;
    queue.copies[queue.tail++ % kMost] = {from, to, queue.commits};
    return true;
  }

  /// Closes the thread's group; one that never copied has nothing to close.
  void commit(uint32_t thread) {
    if (thread < threads_) queues_[thread].commits++;
  }

  /// Hands the thread's copies, oldest first, to `perform` until at most `pending` of its closed groups are left.
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
