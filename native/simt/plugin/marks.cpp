// Marks of the simt device: work runs inside the call that enqueues it, so that all of it is done when a mark is asked for. As behind a
// wait, guard bands are looked at then.
#include "heddle/marks.h"

#include <new>

#include "simt/fault.hpp"

extern "C" const heddle_device_api* heddle_device_plugin();

struct heddle_mark {
  heddle_queue* queue;
};

namespace {

int32_t create(heddle_queue* queue, heddle_mark** mark, heddle_error* error) {
  *mark = new (std::nothrow) heddle_mark{queue};
  return *mark != nullptr ? HEDDLE_OK : heddle::fail(error, HEDDLE_MEMORY, "the simt plugin is out of host memory");
}

int32_t query(heddle_mark* mark, int32_t* done, heddle_error* error) {
  *done = 1;
  return heddle_device_plugin()->queue_wait(mark->queue, error);
}

void destroy(heddle_mark* mark) { delete mark; }

constexpr heddle_marks_api kApi = {create, query, destroy};

}  // namespace

extern "C" __attribute__((visibility("default"))) const heddle_marks_api* heddle_device_marks() { return &kApi; }
