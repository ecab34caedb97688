// The worker thread, and its calls back to JavaScript.
#include "worker.hpp"

#include <chrono>
#include <exception>
#include <new>
#include <string>
#include <thread>
#include <utility>

#include "face.hpp"

namespace heddle {

Worker::Worker(Napi::Env env) : env_(env) {
  const auto name = Napi::String::New(env, "heddle");
  const napi_status status =
      napi_create_threadsafe_function(env, nullptr, nullptr, name, 0, 1, nullptr, nullptr, this, on_signal, &signal_);
  if (status != napi_ok) throw Failure{"DEVICE", "cannot create the device's worker"};
  napi_unref_threadsafe_function(env_, signal_);
  try {
    thread_ = std::thread([this] { loop(); });
  } catch (const std::exception& error) {
    napi_release_threadsafe_function(signal_, napi_tsfn_abort);
    throw Failure{"DEVICE", std::string("cannot start the device's worker: ") + error.what()};
  }
}

Napi::Promise Worker::submit(std::function<void()> work, std::function<Napi::Value(Napi::Env)> result) {
  auto job = std::make_unique<Job>(env_);
  job->work = std::move(work);
  job->result = std::move(result);
  return submit(std::move(job));
}

Napi::Promise Worker::submit_ahead(std::function<Done(bool)> begin, std::function<Napi::Value(Napi::Env)> result) {
  auto job = std::make_unique<Job>(env_);
  job->begin = std::move(begin);
  job->result = std::move(result);
  return submit(std::move(job));
}

Napi::Promise Worker::submit(std::unique_ptr<Job> job) {
  const Napi::Promise promise = job->deferred.Promise();
  if (pending_++ == 0) napi_ref_threadsafe_function(env_, signal_);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (ended_) {
      job->failure = Failure{"CLOSED", "the device was closed"};
      finish(std::move(job));
      return promise;
    }
    waiting_.push_back(std::move(job));
  }
  wake_.notify_one();
  return promise;
}

void Worker::end_when_idle() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ending_ = true;
  }
  wake_.notify_one();
}

template <class Work>
void Worker::attempt(Job& job, Work work) {
  try {
    work();
  } catch (const Failure& failure) {
    job.failure = failure;
  } catch (const std::bad_alloc&) {
    job.failure = Failure{"MEMORY", "out of host memory"};
  } catch (const std::exception& error) {
    job.failure = Failure{"DEVICE", error.what()};
  } catch (...) {
    job.failure = Failure{"DEVICE", "a foreign exception left the device's work"};
  }
}

void Worker::finish(std::unique_ptr<Job> job) {
  finished_.push_back(std::move(job));
  napi_call_threadsafe_function(signal_, nullptr, napi_tsfn_nonblocking);
}

// True if the next job need not wait for the work under way.
bool Worker::can_start() const { return !waiting_.empty() && (under_way_.empty() || waiting_.front()->begin); }

void Worker::start_next(std::unique_lock<std::mutex>& lock) {
  std::unique_ptr<Job> job = std::move(waiting_.front());
  waiting_.pop_front();
  lock.unlock();
  attempt(*job, [&] {
    if (job->begin) {
      job->done = job->begin(!under_way_.empty());
    } else {
      job->work();
    }
  });
  lock.lock();
  // Promises are settled in the order of their jobs, also of those that fail at once.
  if (job->done || !under_way_.empty()) {
    under_way_.push_back(std::move(job));
  } else {
    finish(std::move(job));
  }
}

// Finishes the oldest job under way if its work is done.
bool Worker::settle_first(std::unique_lock<std::mutex>& lock) {
  if (under_way_.empty()) return false;
  lock.unlock();
  Job& job = *under_way_.front();
  bool over = true;
  if (job.done) attempt(job, [&] { over = job.done(); });
  if (over) job.done = nullptr;
  lock.lock();
  if (!over) return false;
  std::unique_ptr<Job> settled = std::move(under_way_.front());
  under_way_.pop_front();
  finish(std::move(settled));
  return true;
}

// Polling interval for work under way: short compared with the steps of a model, long for a core.
constexpr std::chrono::microseconds between_looks{20};

void Worker::loop() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stopping_) {
    // Finished work is settled first, so that its caller can continue while the next is under way.
    if (settle_first(lock)) continue;
    if (can_start()) {
      start_next(lock);
    } else if (!under_way_.empty()) {
      // Without wake_, whose timed waits need glibc 2.30 (steady clock) or follow a clock that may be set back.
      lock.unlock();
      std::this_thread::sleep_for(between_looks);
      lock.lock();
    } else if (ending_) {
      break;
    } else {
      wake_.wait(lock, [this] { return stopping_ || ending_ || !waiting_.empty(); });
    }
  }
  ended_ = true;
}

// Without an environment the process is ending and the worker may be gone.
void Worker::on_signal(napi_env env, napi_value, void* context, void*) {
  if (env != nullptr) static_cast<Worker*>(context)->settle_finished(env);
}

// Node calls on_signal without a frame that catches: an exception from here would end the process. Every step fails once the thread is terminated,
// since JavaScript cannot run any more. Nothing waits for the promise then.
void Worker::settle(Napi::Env env, Job& job) noexcept {
  try {
    const Napi::HandleScope scope(env);
    Napi::Value value;
    try {
      if (!job.failure) value = job.result(env);
    } catch (const Napi::Error& error) {
      // Such as an allocation failure of an array.
      job.deferred.Reject(error.Value());
      return;
    } catch (const std::exception& error) {
      job.failure = Failure{"DEVICE", error.what()};
    }
    if (job.failure) {
      job.deferred.Reject(to_error(env, *job.failure).Value());
    } else {
      job.deferred.Resolve(value);
    }
  } catch (...) {
  }
}

void Worker::settle_finished(Napi::Env env) {
  Jobs finished;
  bool ended = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    finished.swap(finished_);
    ended = ended_;
  }
  // Frees its stack now, not at the next garbage collection of JavaScript.
  if (ended && thread_.joinable()) thread_.join();
  pending_ -= finished.size();
  if (pending_ == 0 && !finished.empty()) napi_unref_threadsafe_function(env_, signal_);
  for (const std::unique_ptr<Job>& job : finished) settle(env, *job);
  // Destroying a job may also destroy this worker: no member may be used after this line.
}

void Worker::stop() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (stopping_) return;
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
  napi_release_threadsafe_function(signal_, napi_tsfn_abort);
  waiting_.clear();
  under_way_.clear();
  finished_.clear();
}

}  // namespace heddle
