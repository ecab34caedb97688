// The threads that run blocks and matmul tiles. One parallel loop runs at a time; its caller takes part.
#ifndef HEDDLE_SIMT_PLUGIN_WORKERS_HPP
#define HEDDLE_SIMT_PLUGIN_WORKERS_HPP

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "heddle/abi.h"

namespace heddle::simt {

class Workers {
 public:
  using Run = int32_t (*)(void* data, int64_t index, heddle_error* error);

  /// `count` threads in all, including the caller of parallel_for.
  explicit Workers(uint32_t count);
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  ~Workers();

  uint32_t count() const { return static_cast<uint32_t>(threads_.size()) + 1; }

  /// Calls run(data, i, error) for every i in [0, count). After a failure later indices are skipped. The failure with the lowest index is reported,
  /// so that the report does not depend on timing. Calls from inside `run` work, serially.
  int32_t parallel_for(int64_t count, Run run, void* data, heddle_error* error);

 private:
  struct Loop {
    Run run;
    void* data;
    std::atomic<int64_t> next{0};
    std::atomic<int64_t> failed;  // lowest index that failed, or count
    std::mutex mutex;             // guards status and error
    int32_t status = HEDDLE_OK;
    heddle_error error = {};
  };

  static void take_part(Loop& loop);
  void serve();

  std::mutex one_loop_;  // held by the caller whose loop is running
  std::mutex mutex_;     // guards the members below
  std::condition_variable wake_, idle_;
  Loop* loop_ = nullptr;
  uint64_t generation_ = 0;
  uint32_t busy_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace heddle::simt

#endif
