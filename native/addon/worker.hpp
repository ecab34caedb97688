// One thread per device that does everything slow, in order, and settles promises on the JavaScript thread. Jobs are created and destroyed on the
// JavaScript thread only, so they may hold JavaScript references. Some jobs only enqueue work on the device: more of these are taken while it is
// under way, and all others wait for its end.
#pragma once

#include <napi.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "failure.hpp"

namespace heddle {

class Worker {
 public:
  explicit Worker(Napi::Env env);
  ~Worker() { stop(); }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Queues `work` for the thread; the promise takes the value of `result`, or the Failure that `work` threw.
  Napi::Promise submit(std::function<void()> work, std::function<Napi::Value(Napi::Env)> result);
  // Polled until it returns true, which happens once, or throws the Failure of the work. It holds no JavaScript values.
  using Done = std::function<bool()>;
  // Queues work that continues on the device after `begin` returns. `begin` gets true if such work is under way already.
  Napi::Promise submit_ahead(std::function<Done(bool busy)> begin, std::function<Napi::Value(Napi::Env)> result);
  // Ends the thread once no job is waiting, without a further call. Later submissions fail with CLOSED.
  void end_when_idle();
  // Ends the thread after the current job and drops the rest. Only for the JavaScript thread; idempotent.
  void stop();

 private:
  struct Job {
    explicit Job(Napi::Env env) : deferred(Napi::Promise::Deferred::New(env)) {}
    std::function<void()> work;
    std::function<Done(bool)> begin;  // instead of `work`
    Done done;                        // while the work of `begin` is under way
    std::function<Napi::Value(Napi::Env)> result;
    Napi::Promise::Deferred deferred;
    std::optional<Failure> failure;
  };
  using Jobs = std::deque<std::unique_ptr<Job>>;

  Napi::Promise submit(std::unique_ptr<Job> job);
  template <class Work>
  static void attempt(Job& job, Work work);
  bool can_start() const;
  void start_next(std::unique_lock<std::mutex>& lock);
  bool settle_first(std::unique_lock<std::mutex>& lock);
  void finish(std::unique_ptr<Job> job);
  static void on_signal(napi_env env, napi_value, void* context, void*);
  static void settle(Napi::Env env, Job& job) noexcept;
  void settle_finished(Napi::Env env);
  void loop();

  Napi::Env env_;
  napi_threadsafe_function signal_ = nullptr;
  size_t pending_ = 0;  // jobs without a settled promise; the event loop stays alive while there are any
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  bool ending_ = false;  // no job will come that needs the thread
  bool ended_ = false;   // the thread takes no more jobs
  Jobs waiting_;
  Jobs under_way_;  // of the worker thread alone, until it has ended
  Jobs finished_;
  std::thread thread_;
};

}  // namespace heddle
