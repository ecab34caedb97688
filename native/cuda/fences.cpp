// Fences of a queue: an event after the work, and the copies that reach host memory once it has passed.
#include "heddle/fences.h"

#include <cstring>
#include <utility>

#include "device.hpp"

struct heddle_fence {
  heddle_queue* queue = nullptr;
  cudaEvent_t event = nullptr;
  std::vector<heddle_queue::Landing> landings;
  uint64_t staged = 0;  // where the queue's staging stood
};

namespace heddle {

namespace {

int32_t record(heddle_fence* fence, heddle_error* error) {
  HEDDLE_TRY(cudaSetDevice(fence->queue->device->ordinal));
  HEDDLE_TRY(cudaEventCreateWithFlags(&fence->event, cudaEventDisableTiming));
  HEDDLE_TRY(cudaEventRecord(fence->event, fence->queue->stream));
  return HEDDLE_OK;
}

void fence_destroy(heddle_fence* fence) {
  cudaSetDevice(fence->queue->device->ordinal);
  if (fence->event != nullptr) cudaEventDestroy(fence->event);
  fence->queue->fences--;
  delete fence;
}

int32_t fence_create(heddle_queue* queue, heddle_fence** fence, heddle_error* error) {
  *fence = nullptr;
  if (queue->capturing) return fail(error, HEDDLE_INVALID, "a fence cannot be part of a captured graph");
  auto* created = new heddle_fence;
  created->queue = queue;
  queue->fences++;
  const int32_t status = record(created, error);
  if (status != HEDDLE_OK) {
    fence_destroy(created);
    return status;
  }
  created->landings = std::exchange(queue->landings, {});
  created->staged = queue->staged;
  *fence = created;
  return HEDDLE_OK;
}

int32_t fence_query(heddle_fence* fence, int32_t* done, heddle_error* error) {
  *done = 0;
  HEDDLE_TRY(cudaSetDevice(fence->queue->device->ordinal));
  const cudaError_t result = cudaEventQuery(fence->event);
  if (result == cudaErrorNotReady) {
    // Not an error, but stored as the thread's last one, where the next kernel launch would report it as its own.
    cudaGetLastError();
    return HEDDLE_OK;
  }
  if (result != cudaSuccess) return check(result, "cudaEventQuery", error);
  for (const auto& landing : fence->landings) memcpy(landing.host, landing.staged, landing.bytes);
  fence->landings.clear();
  fence->queue->landed = fence->staged;
  *done = 1;
  return HEDDLE_OK;
}

}  // namespace

}  // namespace heddle

extern "C" __attribute__((visibility("default"))) const heddle_fences_api* heddle_device_fences(void) {
  static const heddle_fences_api api = {heddle::fence_create, heddle::fence_query, heddle::fence_destroy};
  return &api;
}
