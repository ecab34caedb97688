// Fences of the simt device: work runs inside the call that enqueues it, so that all of it is done when a fence is queried. As after a wait, guard
// bands are checked then.
#include "heddle/fences.h"

#include <new>

#include "simt/fault.hpp"

extern "C" const heddle_device_api* heddle_device_plugin();

struct heddle_fence {
  heddle_queue* queue;
};

namespace {

int32_t create(heddle_queue* queue, heddle_fence** fence, heddle_error* error) {
  *fence = new (std::nothrow) heddle_fence{queue};
  return *fence != nullptr ? HEDDLE_OK : heddle::fail(error, HEDDLE_MEMORY, "the simt plugin is out of host memory");
}

int32_t query(heddle_fence* fence, int32_t* done, heddle_error* error) {
  *done = 1;
  return heddle_device_plugin()->queue_wait(fence->queue, error);
}

void destroy(heddle_fence* fence) { delete fence; }

constexpr heddle_fences_api kApi = {create, query, destroy};

}  // namespace

extern "C" __attribute__((visibility("default"))) const heddle_fences_api* heddle_device_fences() { return &kApi; }
