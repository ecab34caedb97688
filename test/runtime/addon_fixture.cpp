// A device plugin and a kernel library in one file, for testing the addon alone: memory is malloc, work runs immediately, and a graph is a list of
// recorded closures, so capturing can be tested without a GPU. Work may also report completion only after more was enqueued, so running ahead can
// be tested.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "heddle/abi.h"
#include "heddle/algorithms.h"
#include "heddle/facts.h"
#include "heddle/fences.h"

using Work = std::function<int32_t(heddle_error*)>;

struct heddle_device {
  int32_t ordinal = 0;
  std::mutex mutex;
  uint64_t used = 0;
};

struct heddle_queue {
  heddle_device* device = nullptr;
  bool capturing = false;
  std::vector<Work> recorded;
  bool needs_more = false;  // work enqueued since the last fence
  uint64_t fences = 0;       // made so far
};

struct heddle_fence {
  heddle_queue* queue;
  uint64_t needed;  // fences that were made when it is done
};

struct heddle_graph {
  std::vector<Work> work;
};

struct heddle_event {
  std::chrono::steady_clock::time_point at;
};

namespace {

constexpr uint64_t memory_bytes = 64ull << 20;
constexpr uint64_t header_bytes = 256;

// Queues of this plugin: kernels may also be launched by another plugin, whose queue they must not touch.
std::mutex queues_mutex;
std::set<void*> queues;

int32_t fail(heddle_error* error, heddle_status status, const char* message) {
  error->status = status;
  snprintf(error->message, sizeof error->message, "%s", message);
  return status;
}

int32_t submit(heddle_queue* queue, heddle_error* error, Work work) {
  if (!queue->capturing) return work(error);
  queue->recorded.push_back(std::move(work));
  return HEDDLE_OK;
}

int32_t launch(const heddle_launch* launch, heddle_error* error, Work work) {
  std::unique_lock<std::mutex> lock(queues_mutex);
  const bool own = queues.count(launch->queue) != 0;
  lock.unlock();
  return own ? submit(static_cast<heddle_queue*>(launch->queue), error, std::move(work)) : work(error);
}

// y[i] = x[i] * factor for i < n
int32_t scale(const heddle_launch* l, heddle_error* error) {
  const auto n = static_cast<uint64_t>(l->dims[0]);
  if (n > l->buffers[0].bytes / sizeof(float) || n > l->buffers[1].bytes / sizeof(float)) {
    return fail(error, HEDDLE_INVALID, "scale: n reaches beyond a buffer");
  }
  const auto* x = static_cast<const char*>(l->buffers[0].data);
  auto* y = static_cast<char*>(l->buffers[1].data);
  const auto factor = static_cast<float>(l->attrs[0]);
  return launch(l, error, [=](heddle_error*) {
    for (uint64_t i = 0; i < n * sizeof(float); i += sizeof(float)) {
      float value;
      memcpy(&value, x + i, sizeof value);
      value *= factor;
      memcpy(y + i, &value, sizeof value);
    }
    return static_cast<int32_t>(HEDDLE_OK);
  });
}

// y[i] = who may write buffer i, as a heddle_constancy
int32_t constants(const heddle_launch* l, heddle_error* error) {
  if (l->buffers[1].bytes < 2 * sizeof(float)) return fail(error, HEDDLE_INVALID, "constants: y is too small");
  const float answer[2] = {static_cast<float>(l->constants[0]), static_cast<float>(l->constants[1])};
  auto* y = l->buffers[1].data;
  return launch(l, error, [=](heddle_error*) {
    memcpy(y, answer, sizeof answer);
    return static_cast<int32_t>(HEDDLE_OK);
  });
}

// Takes dims[0] milliseconds.
int32_t slow(const heddle_launch* l, heddle_error* error) {
  const int64_t milliseconds = l->dims[0];
  return launch(l, error, [=](heddle_error*) {
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    return static_cast<int32_t>(HEDDLE_OK);
  });
}

// Completes when there is another fence after the one that follows it.
int32_t behind(const heddle_launch* l, heddle_error* error) {
  auto* queue = static_cast<heddle_queue*>(l->queue);
  return launch(l, error, [=](heddle_error*) {
    queue->needs_more = true;
    return static_cast<int32_t>(HEDDLE_OK);
  });
}

int32_t fault(const heddle_launch*, heddle_error* error) {
  return fail(error, HEDDLE_FAULT, "kernel fault: read of x[9] is out of bounds");
}

const heddle_kernel kernels[] = {
    {"behind", "b0", 0, 0, 0, behind, ""},         {"constants", "c0", 2, 0, 0, constants, "rw"},
    {"fault", "f0", 0, 0, 0, fault, ""},           {"scale", "5c", 2, 1, 1, scale, "rw"},
    {"slow", "51", 0, 1, 0, slow, ""},             {"unsaid", "c1", 2, 0, 0, constants, nullptr},
};
const heddle_kernel_library_info library = {HEDDLE_ABI_VERSION, "simt", 6, kernels};

int32_t open(int32_t ordinal, heddle_device** device, heddle_error* error) {
  if (ordinal > 1) return fail(error, HEDDLE_UNAVAILABLE, "there is no device 7: expected 0 to 1, got 7");
  *device = new heddle_device;
  (*device)->ordinal = ordinal;
  return HEDDLE_OK;
}

void close(heddle_device* device) {
  // Memory that outlives its device is a defect of the addon.
  if (device->used != 0) abort();
  delete device;
}

int32_t info(heddle_device* device, heddle_device_info* info, heddle_error*) {
  *info = {};
  snprintf(info->name, sizeof info->name, "fixture %d", device->ordinal);
  info->memory_bytes = memory_bytes;
  info->memory_free_bytes = memory_bytes - device->used;
  return HEDDLE_OK;
}

int32_t allocate(heddle_device* device, uint64_t bytes, void** data, heddle_error* error) {
  const std::lock_guard<std::mutex> lock(device->mutex);
  if (bytes > memory_bytes - device->used) return fail(error, HEDDLE_MEMORY, "out of device memory");
  auto* block = static_cast<char*>(malloc(header_bytes + bytes));
  memcpy(block, &bytes, sizeof bytes);
  device->used += bytes;
  *data = block + header_bytes;
  return HEDDLE_OK;
}

int32_t release(heddle_device* device, void* data, heddle_error*) {
  const std::lock_guard<std::mutex> lock(device->mutex);
  char* block = static_cast<char*>(data) - header_bytes;
  uint64_t bytes = 0;
  memcpy(&bytes, block, sizeof bytes);
  device->used -= bytes;
  free(block);
  return HEDDLE_OK;
}

int32_t queue_create(heddle_device* device, heddle_queue** queue, heddle_error*) {
  *queue = new heddle_queue;
  (*queue)->device = device;
  const std::lock_guard<std::mutex> lock(queues_mutex);
  queues.insert(*queue);
  return HEDDLE_OK;
}

void queue_destroy(heddle_queue* queue) {
  const std::lock_guard<std::mutex> lock(queues_mutex);
  queues.erase(queue);
  delete queue;
}

void* queue_native(heddle_queue* queue) { return queue; }
int32_t queue_wait(heddle_queue*, heddle_error*) { return HEDDLE_OK; }

int32_t move(heddle_queue* queue, void* to, const void* from, uint64_t bytes, heddle_error* error) {
  return submit(queue, error, [=](heddle_error*) {
    if (bytes != 0) memmove(to, from, bytes);
    return static_cast<int32_t>(HEDDLE_OK);
  });
}

int32_t fill(heddle_queue* queue, void* data, uint8_t value, uint64_t bytes, heddle_error* error) {
  return submit(queue, error, [=](heddle_error*) {
    memset(data, value, bytes);
    return static_cast<int32_t>(HEDDLE_OK);
  });
}

int32_t matmul(heddle_queue*, const heddle_matmul* p, heddle_error* error) {
  if (p->dtype_a != HEDDLE_F32) return fail(error, HEDDLE_DEVICE, "matmul: the fixture knows no such type");
  return HEDDLE_OK;
}

int32_t graph_begin(heddle_queue* queue, heddle_error*) {
  queue->capturing = true;
  return HEDDLE_OK;
}

int32_t graph_end(heddle_queue* queue, heddle_graph** graph, heddle_error*) {
  queue->capturing = false;
  *graph = new heddle_graph{std::move(queue->recorded)};
  queue->recorded.clear();
  return HEDDLE_OK;
}

int32_t graph_launch(heddle_graph* graph, heddle_queue*, heddle_error* error) {
  for (const Work& work : graph->work) {
    const int32_t status = work(error);
    if (status != HEDDLE_OK) return status;
  }
  return HEDDLE_OK;
}

void graph_destroy(heddle_graph* graph) { delete graph; }

int32_t event_create(heddle_device*, heddle_event** event, heddle_error*) {
  *event = new heddle_event{};
  return HEDDLE_OK;
}

int32_t event_record(heddle_event* event, heddle_queue*, heddle_error*) {
  event->at = std::chrono::steady_clock::now();
  return HEDDLE_OK;
}

int32_t event_elapsed(heddle_event* from, heddle_event* to, float* milliseconds, heddle_error*) {
  *milliseconds = std::chrono::duration<float, std::milli>(to->at - from->at).count();
  return HEDDLE_OK;
}

void event_destroy(heddle_event* event) { delete event; }

int32_t fence_create(heddle_queue* queue, heddle_fence** fence, heddle_error*) {
  *fence = new heddle_fence{queue, ++queue->fences + (queue->needs_more ? 1 : 0)};
  queue->needs_more = false;
  return HEDDLE_OK;
}

int32_t fence_query(heddle_fence* fence, int32_t* done, heddle_error*) {
  *done = fence->queue->fences >= fence->needed ? 1 : 0;
  return HEDDLE_OK;
}

void fence_destroy(heddle_fence* fence) { delete fence; }

// Two algorithms, whose first byte is 1 and 2.
int32_t algorithms_list(heddle_queue*, const heddle_matmul* p, uint32_t capacity, heddle_algorithm* algorithms, uint32_t* count,
                        heddle_error* error) {
  *count = 0;
  if (p->dtype_a != HEDDLE_F32) return fail(error, HEDDLE_DEVICE, "matmul: the fixture knows no such type");
  for (; *count < 2 && *count < capacity; ++*count) {
    heddle_algorithm& algorithm = algorithms[*count];
    algorithm = heddle_algorithm{};
    algorithm.bytes[0] = static_cast<uint8_t>(*count + 1);
    algorithm.id = *count + 7;
    algorithm.workspace_bytes = 64;
  }
  return HEDDLE_OK;
}

// Writes the algorithm's first byte as a float before the result.
int32_t algorithms_matmul(heddle_queue* queue, const heddle_matmul* p, const uint8_t* algorithm, heddle_error* error) {
  if (algorithm[0] > 2) return fail(error, HEDDLE_INVALID, "matmul: there is no such algorithm");
  const auto value = static_cast<float>(algorithm[0]);
  auto* out = p->out.data;
  return submit(queue, error, [=](heddle_error*) {
    memcpy(out, &value, sizeof value);
    return static_cast<int32_t>(HEDDLE_OK);
  });
}

const heddle_algorithms_api algorithms = {algorithms_list, algorithms_matmul};

const heddle_fences_api fences = {fence_create, fence_query, fence_destroy};

const heddle_device_api api = {
    HEDDLE_ABI_VERSION, "simt",       open,         close,        info,          allocate,     release,       queue_create,
    queue_destroy,      queue_native, queue_wait,   move,         move,          move,         fill,          matmul,
    graph_begin,        graph_end,    graph_launch, graph_destroy, event_create, event_record, event_elapsed, event_destroy,
};

}  // namespace

extern "C" const heddle_device_api* heddle_device_plugin(void) { return &api; }
extern "C" int32_t heddle_device_facts(heddle_device*, heddle_facts* facts, heddle_error*) {
  *facts = heddle_facts{};
  return HEDDLE_OK;
}
extern "C" const heddle_fences_api* heddle_device_fences(void) { return &fences; }
extern "C" const heddle_algorithms_api* heddle_device_algorithms(void) { return &algorithms; }
extern "C" const heddle_kernel_library_info* heddle_kernel_library(void) { return &library; }
