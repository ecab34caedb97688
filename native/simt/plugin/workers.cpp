#include "workers.hpp"

#include <time.h>

#include <algorithm>
#include <exception>

namespace heddle::simt {
namespace {

thread_local bool inside_loop = false;

/// To wake a thread and to wait for its end takes some ten microseconds on an idle machine.
constexpr int64_t kShortLoop = 100'000;
/// Beside the work of a longer loop a wait for one thread's turn on a core is little.
constexpr int64_t kLongLoop = 20'000'000;
constexpr int64_t kFirstAlone = 8, kMostAlone = 256;
/// A caller takes this part of its own share before it knows how long the loop is.
constexpr int64_t kTriedPart = 8;

int64_t nanoseconds(clockid_t clock) {
  timespec time = {};
  clock_gettime(clock, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

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

void Workers::take_part(Loop& loop, int64_t most) {
  inside_loop = true;
  const int64_t began = nanoseconds(CLOCK_THREAD_CPUTIME_ID);
  heddle_error error = {};
  for (int64_t taken = 0; taken < most; taken++) {
    const int64_t i = loop.next++;
    if (i >= loop.failed) break;
    const int32_t status = loop.run(loop.data, i, &error);
    if (status == HEDDLE_OK) continue;
    const std::lock_guard<std::mutex> lock(loop.mutex);
    if (i >= loop.failed) break;
    loop.failed = i;
    loop.status = status;
    loop.error = error;
  }
  loop.worked += nanoseconds(CLOCK_THREAD_CPUTIME_ID) - began;
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
    take_part(loop, loop.count);
    lock.lock();
    if (--busy_ == 0) idle_.notify_all();
  }
}

/// Whether the caller should run what is left of a loop by itself. It tries a few indices first, where the loop has many or others may be late.
bool Workers::is_for_one(Loop& loop) {
  int64_t tried = loop.count / (kTriedPart * count());
  if (alone_ > 0) tried = std::max<int64_t>(tried, 1);
  if (tried == 0) return false;
  take_part(loop, tried);
  const int64_t left = loop.worked / tried * (loop.count - tried);
  if (left < kShortLoop) return true;
  if (alone_ == 0 || left > kLongLoop) return false;
  alone_--;
  return true;
}

/// Runs what is left of a loop on all threads.
void Workers::share(Loop& loop) {
  const int64_t began = nanoseconds(CLOCK_MONOTONIC), worked_before = loop.worked;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    loop_ = &loop;
    generation_++;
  }
  wake_.notify_all();
  take_part(loop, loop.count);
  {
    std::unique_lock<std::mutex> lock(mutex_);
    loop_ = nullptr;
    idle_.wait(lock, [&] { return busy_ == 0; });
  }
  // One thread would have been as fast: the others had no core, or lost theirs.
  const bool in_vain = nanoseconds(CLOCK_MONOTONIC) - began > loop.worked - worked_before;
  next_alone_ = in_vain ? std::clamp(2 * next_alone_, kFirstAlone, kMostAlone) : next_alone_ / 2;
  alone_ = in_vain ? next_alone_ : 0;
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
  loop.count = loop.failed = count;
  if (is_for_one(loop)) {
    take_part(loop, count);
  } else {
    share(loop);
  }
  if (loop.status != HEDDLE_OK && error != nullptr) *error = loop.error;
  return loop.status;
}

}  // namespace heddle::simt
