// Marks of a queue: an event behind the work, and the copies out that land in host memory once it has passed.
#include "heddle/marks.h"

#include <cstring>
#include <utility>

#include "device.hpp"

struct heddle_mark {
  heddle_queue* queue = nullptr;
  cudaEvent_t event = nullptr;
  std::vector<heddle_queue::Landing> landings;
  uint64_t staged = 0;  // where the queue's staging stood
};

namespace heddle {

namespace {

int32_t record(heddle_mark* mark, heddle_error* error) {
  HEDDLE_TRY(cudaSetDevice(mark->queue->device->ordinal));
  HEDDLE_TRY(cudaEventCreateWithFlags(&mark->event, cudaEventDisableTiming));
  HEDDLE_TRY(cudaEventRecord(mark->event, mark->queue->stream));
  return HEDDLE_OK;
}

void mark_destroy(heddle_mark* mark) {
  cudaSetDevice(mark->queue->device->ordinal);
  if (mark->event != nullptr) cudaEventDestroy(mark->event);
  mark->queue->marks--;
  delete mark;
}

int32_t mark_create(heddle_queue* queue, heddle_mark** mark, heddle_error* error) {
  *mark = nullptr;
  if (queue->capturing) return fail(error, HEDDLE_INVALID, "a mark cannot be part of a captured graph");
  auto* created = new heddle_mark;
  created->queue = queue;
  queue->marks++;
  const int32_t status = record(created, error);
  if (status != HEDDLE_OK) {
    mark_destroy(created);
    return status;
  }
  created->landings = std::exchange(queue->landings, {});
  created->staged = queue->staged;
  *mark = created;
  return HEDDLE_OK;
}

int32_t mark_query(heddle_mark* mark, int32_t* done, heddle_error* error) {
  *done = 0;
  HEDDLE_TRY(cudaSetDevice(mark->queue->device->ordinal));
  const cudaError_t result = cudaEventQuery(mark->event);
  if (result == cudaErrorNotReady) {
    // It is no error, but kept as the thread's last one, which whoever launches the next kernel would take for its own.
    cudaGetLastError();
    return HEDDLE_OK;
  }
  if (result != cudaSuccess) return check(result, "cudaEventQuery", error);
  for (const auto& landing : mark->landings) memcpy(landing.host, landing.staged, landing.bytes);
  mark->landings.clear();
  mark->queue->landed = mark->staged;
  *done = 1;
  return HEDDLE_OK;
}

}  // namespace

}  // namespace heddle

extern "C" __attribute__((visibility("default"))) const heddle_marks_api* heddle_device_marks(void) {
  static const heddle_marks_api api = {heddle::mark_create, heddle::mark_query, heddle::mark_destroy};
  return &api;
}
