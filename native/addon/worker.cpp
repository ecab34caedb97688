// The worker thread and its way back to JavaScript.
#include "worker.hpp"

#include <exception>
#include <new>
#include <utility>

#include "face.hpp"

namespace heddle {

Worker::Worker(Napi::Env env) : env_(env) {
  const auto name = Napi::String::New(env, "heddle");
  const napi_status status =
      napi_create_threadsafe_function(env, nullptr, nullptr, name, 0, 1, nullptr, nullptr, this, on_signal, &signal_);
  if (status != napi_ok) throw Failure{"DEVICE", "cannot create the device's worker"};
  napi_unref_threadsafe_function(env_, signal_);
  thread_ = std::thread([this] { loop(); });
}

Napi::Promise Worker::submit(std::function<void()> work, std::function<Napi::Value(Napi::Env)> result) {
  auto job = std::make_unique<Job>(env_);
  job->work = std::move(work);
  job->result = std::move(result);
  const Napi::Promise promise = job->deferred.Promise();
  if (pending_++ == 0) napi_ref_threadsafe_function(env_, signal_);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (ended_) {
      job->failure = Failure{"CLOSED", "the device was closed"};
      finished_.push_back(std::move(job));
      napi_call_threadsafe_function(signal_, nullptr, napi_tsfn_nonblocking);
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

void Worker::loop() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return stopping_ || ending_ || !waiting_.empty(); });
    if (stopping_ || waiting_.empty()) {
      ended_ = true;
      return;
    }
    std::unique_ptr<Job> job = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    try {
      job->work();
    } catch (const Failure& failure) {
      job->failure = failure;
    } catch (const std::bad_alloc&) {
      job->failure = Failure{"MEMORY", "out of host memory"};
    } catch (const std::exception& error) {
      job->failure = Failure{"DEVICE", error.what()};
    }
    lock.lock();
    finished_.push_back(std::move(job));
    ended_ = ending_ && waiting_.empty();
    napi_call_threadsafe_function(signal_, nullptr, napi_tsfn_nonblocking);
    if (ended_) return;
  }
}

// Without an environment the process is ending and the worker may be gone.
void Worker::on_signal(napi_env env, napi_value, void* context, void*) {
  if (env != nullptr) static_cast<Worker*>(context)->settle_finished(env);
}

void Worker::settle_finished(Napi::Env env) {
  Jobs finished;
  bool ended = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    finished.swap(finished_);
    ended = ended_;
  }
  // Its stack is given back now, not when JavaScript's garbage is next collected.
  if (ended && thread_.joinable()) thread_.join();
  pending_ -= finished.size();
  if (pending_ == 0 && !finished.empty()) napi_unref_threadsafe_function(env_, signal_);
  for (const std::unique_ptr<Job>& job : finished) {
    if (job->failure) {
      job->deferred.Reject(to_error(env, *job->failure).Value());
    } else {
      job->deferred.Resolve(job->result(env));
    }
  }
  // Destroying a job may destroy this worker with it: nothing after this line may use a member.
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
  finished_.clear();
}

}  // namespace heddle
