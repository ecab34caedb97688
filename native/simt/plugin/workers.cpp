#include "workers.hpp"

#include <exception>

namespace heddle::simt {
namespace {

thread_local bool inside_loop = false;

}  // namespace

Workers::Workers(uint32_t count) {
  try {
    for (uint32_t i = 1; i < count; i++) threads_.emplace_back([this] { serve(); });
  } catch (const std::exception&) {
    // The system refuses more threads: those that started, and the caller, do the work.
  }
}

Workers::~Workers() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Workers::take_part(Loop& loop) {
  inside_loop = true;
  heddle_error error = {};
  for (int64_t i = loop.next++; i < loop.failed; i = loop.next++) {
    const int32_t status = loop.run(loop.data, i, &error);
    if (status == HEDDLE_OK) continue;
    const std::lock_guard<std::mutex> lock(loop.mutex);
    if (i >= loop.failed) break;
    loop.failed = i;
    loop.status = status;
    loop.error = error;
  }
  inside_loop = false;
}

void Workers::serve() {
  uint64_t seen = 0;
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    wake_.wait(lock, [&] { return stopping_ || (loop_ != nullptr && generation_ != seen); });
    if (stopping_) return;
    seen = generation_;
    Loop& loop = *loop_;
    busy_++;
    lock.unlock();
    take_part(loop);
    lock.lock();
    if (--busy_ == 0) idle_.notify_all();
  }
}

int32_t Workers::parallel_for(int64_t count, Run run, void* data, heddle_error* error) {
  if (count == 1 || inside_loop || threads_.empty()) {
    for (int64_t i = 0; i < count; i++) {
      if (const int32_t status = run(data, i, error); status != HEDDLE_OK) return status;
    }
    return HEDDLE_OK;
  }
  const std::lock_guard<std::mutex> turn(one_loop_);
  Loop loop;
  loop.run = run;
  loop.data = data;
  loop.failed = count;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    loop_ = &loop;
    generation_++;
  }
  wake_.notify_all();
  take_part(loop);
  {
    std::unique_lock<std::mutex> lock(mutex_);
    loop_ = nullptr;
    idle_.wait(lock, [&] { return busy_ == 0; });
  }
  if (loop.status != HEDDLE_OK && error != nullptr) *error = loop.error;
  return loop.status;
}

}  // namespace heddle::simt
