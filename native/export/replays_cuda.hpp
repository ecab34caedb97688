// Replays repeated runs as CUDA graphs: the host takes some three microseconds to launch each kernel of a run, and not much longer for a graph of
// them all. The key of a run is its sizes and addresses. The first run is enqueued normally, which loads kernels; the second is captured, and
// replayed from then on. A capture by the caller is left alone. Threads enqueue one after the other.
#ifndef HEDDLE_EXPORT_REPLAYS_CUDA_HPP
#define HEDDLE_EXPORT_REPLAYS_CUDA_HPP

#include <algorithm>
#include <list>
#include <map>
#include <mutex>

#include "backend.hpp"
#include "device.hpp"

namespace heddle::exported {

class Replays {
 public:
  Replays() = default;
  Replays(const Replays&) = delete;
  Replays& operator=(const Replays&) = delete;
  ~Replays() {
    for (const Replay& replay : recent_) forget(replay);
    for (const auto& [stream, recorder] : recorders_) cudaStreamDestroy(recorder);
  }

  int32_t run(const RunKey& key, cudaStream_t stream, const Enqueue& enqueue, heddle_error* error) {
    const std::lock_guard<std::mutex> lock(mutex_);
    cudaStreamCaptureStatus captured = cudaStreamCaptureStatusNone;
    HEDDLE_TRY(cudaStreamIsCapturing(stream, &captured));
    if (captured != cudaStreamCaptureStatusNone) return enqueue(stream, error);
    const auto found =
        std::find_if(recent_.begin(), recent_.end(), [&](const Replay& each) { return each.stream == stream && each.key == key; });
    if (found == recent_.end()) {
      recent_.push_front({key, stream, nullptr});
      if (recent_.size() > most) {
        forget(recent_.back());
        recent_.pop_back();
      }
      return enqueue(stream, error);
    }
    recent_.splice(recent_.begin(), recent_, found);
    if (found->graph == nullptr) {
      const int32_t status = record(*found, enqueue, error);
      if (status != HEDDLE_OK) return status;
    }
    HEDDLE_TRY(cudaGraphLaunch(found->graph, stream));
    return HEDDLE_OK;
  }

 private:
  struct Replay {
    RunKey key;
    cudaStream_t stream;
    cudaGraphExec_t graph;
  };
  static constexpr size_t most = 16;

  // Waits for a running graph before it is freed.
  static void forget(const Replay& replay) {
    if (replay.graph != nullptr) cudaGraphExecDestroy(replay.graph);
  }

  // The default stream cannot be captured. Each stream has a recorder of its own, since scratch memory belongs to the stream of a launch: graphs that
  // share it run one after the other.
  int32_t record(Replay& replay, const Enqueue& enqueue, heddle_error* error) {
    cudaStream_t& recorder = recorders_[replay.stream];
    if (recorder == nullptr) HEDDLE_TRY(cudaStreamCreateWithFlags(&recorder, cudaStreamNonBlocking));
    HEDDLE_TRY(cudaStreamBeginCapture(recorder, cudaStreamCaptureModeRelaxed));
    const int32_t status = enqueue(recorder, error);
    cudaGraph_t graph = nullptr;
    const cudaError_t ended = cudaStreamEndCapture(recorder, &graph);
    const cudaError_t made =
        status == HEDDLE_OK && ended == cudaSuccess ? cudaGraphInstantiate(&replay.graph, graph, 0) : cudaSuccess;
    if (graph != nullptr) cudaGraphDestroy(graph);
    if (status != HEDDLE_OK) return status;
    HEDDLE_TRY(ended);
    HEDDLE_TRY(made);
    return HEDDLE_OK;
  }

  std::mutex mutex_;
  std::list<Replay> recent_;  // the latest first
  std::map<cudaStream_t, cudaStream_t> recorders_;
};

}  // namespace heddle::exported

#endif
