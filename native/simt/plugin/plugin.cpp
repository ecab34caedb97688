// The simt device behind the C interface. Work runs inside the call that enqueues it, on the device's worker threads. The caller is a thread of the
// addon, never the event loop. So a queue is always done, and waiting only checks guard bands.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <thread>

#include "matmul.hpp"
#include "memory.hpp"
#include "simt/fault.hpp"
#include "workers.hpp"

struct heddle_device {
  heddle_device(uint32_t threads, uint64_t limit) : memory(limit), workers(threads) {}
  heddle::simt::Memory memory;
  heddle::simt::Workers workers;
};

struct heddle_queue {
  heddle_device* device;
  heddle_simt_executor executor;
};

struct heddle_event {
  std::chrono::steady_clock::time_point time;
  bool recorded;
};

namespace {

using heddle::fail;

/// Runs `body`, turning exceptions into statuses: none may cross the C interface.
template <class Body>
int32_t guarded(heddle_error* error, Body body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return fail(error, HEDDLE_MEMORY, "the simt plugin is out of host memory");
  } catch (const std::exception& exception) {
    return fail(error, HEDDLE_DEVICE, "the simt plugin failed: %s", exception.what());
  }
}

/// Reads a positive integer from the environment into `value`, which keeps its default if the variable is not set.
int32_t read_environment(const char* name, uint64_t most, uint64_t& value, heddle_error* error) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return HEDDLE_OK;
  char* end = nullptr;
  const unsigned long long number = std::strtoull(text, &end, 10);
  if (*text < '0' || *text > '9' || *end != '\0' || number == 0 || number > most) {
    return fail(error, HEDDLE_INVALID, "%s is '%.64s': a whole number from 1 to %llu", name, text,
                static_cast<unsigned long long>(most));
  }
  value = number;
  return HEDDLE_OK;
}

int32_t open(int32_t ordinal, heddle_device** device, heddle_error* error) {
  return guarded(error, [&]() -> int32_t {
    *device = nullptr;
    if (ordinal != 0) return fail(error, HEDDLE_UNAVAILABLE, "there is no simt device %d: the only one is 0", ordinal);
    const unsigned int cores = std::thread::hardware_concurrency();
    uint64_t threads = cores == 0 ? 1 : cores, limit = heddle::simt::system_memory().total;
    int32_t status = read_environment("HEDDLE_SIMT_THREADS", 1024, threads, error);
    if (status == HEDDLE_OK) status = read_environment("HEDDLE_SIMT_MEMORY", UINT64_MAX, limit, error);
    if (status != HEDDLE_OK) return status;
    *device = new heddle_device(static_cast<uint32_t>(threads), limit);
    return HEDDLE_OK;
  });
}

void close(heddle_device* device) { delete device; }

int32_t info(heddle_device* device, heddle_device_info* info, heddle_error* error) {
  return guarded(error, [&] {
    *info = {};
    std::snprintf(info->name, sizeof info->name, "simt, %u threads", device->workers.count());
    info->memory_bytes = device->memory.limit();
    info->memory_free_bytes = device->memory.available();
    info->multiprocessors = static_cast<int32_t>(device->workers.count());
    return HEDDLE_OK;
  });
}

int32_t allocate(heddle_device* device, uint64_t bytes, void** data, heddle_error* error) {
  return guarded(error, [&] { return device->memory.allocate(bytes, data, error); });
}

int32_t release(heddle_device* device, void* data, heddle_error* error) {
  return guarded(error, [&] { return device->memory.release(data, error); });
}

int32_t parallel_for(void* self, int64_t count, int32_t (*run)(void*, int64_t, heddle_error*), void* data, heddle_error* error) {
  return guarded(error, [&] { return static_cast<heddle_device*>(self)->workers.parallel_for(count, run, data, error); });
}

int32_t queue_create(heddle_device* device, heddle_queue** queue, heddle_error* error) {
  return guarded(error, [&] {
    *queue = new heddle_queue{device, {device, parallel_for}};
    return HEDDLE_OK;
  });
}

void queue_destroy(heddle_queue* queue) { delete queue; }

/// Prepares memory for a launch, whose kernel accesses it by address.
void* queue_native(heddle_queue* queue) {
  queue->device->memory.settle();
  return &queue->executor;
}

int32_t queue_wait(heddle_queue* queue, heddle_error* error) {
  return guarded(error, [&] { return queue->device->memory.check_guards(error); });
}

/// Refuses a copy with a null host address.
int32_t check_host(const void* host, uint64_t bytes, heddle_error* error) {
  if (host != nullptr || bytes == 0) return HEDDLE_OK;
  return fail(error, HEDDLE_INVALID, "copy of %llu bytes with a null host address", static_cast<unsigned long long>(bytes));
}

int32_t copy_in(heddle_queue* queue, void* device_data, const void* host, uint64_t bytes, heddle_error* error) {
  return guarded(error, [&] {
    const int32_t status = check_host(host, bytes, error);
    return status == HEDDLE_OK ? queue->device->memory.write(device_data, host, bytes, error) : status;
  });
}

int32_t copy_out(heddle_queue* queue, void* host, const void* device_data, uint64_t bytes, heddle_error* error) {
  return guarded(error, [&] {
    int32_t status = check_host(host, bytes, error);
    if (status == HEDDLE_OK) status = queue->device->memory.check_range(device_data, bytes, "copy from the device", error);
    if (status == HEDDLE_OK && bytes > 0) std::memcpy(host, device_data, bytes);
    return status;
  });
}

int32_t copy(heddle_queue* queue, void* to, const void* from, uint64_t bytes, heddle_error* error) {
  return guarded(error, [&] {
    int32_t status = queue->device->memory.check_range(to, bytes, "copy to", error);
    if (status == HEDDLE_OK) status = queue->device->memory.check_range(from, bytes, "copy from", error);
    if (status == HEDDLE_OK && bytes > 0) std::memmove(to, from, bytes);
    return status;
  });
}

int32_t fill(heddle_queue* queue, void* device_data, uint8_t value, uint64_t bytes, heddle_error* error) {
  return guarded(error, [&] {
    const int32_t status = queue->device->memory.check_range(device_data, bytes, "fill", error);
    if (status == HEDDLE_OK && bytes > 0) std::memset(device_data, value, bytes);
    return status;
  });
}

int32_t matmul(heddle_queue* queue, const heddle_matmul* matmul, heddle_error* error) {
  return guarded(error, [&] {
    const int32_t status = heddle::simt::check_matmul(*matmul, queue->device->memory, error);
    return status == HEDDLE_OK ? heddle::simt::run_matmul(*matmul, queue->device->workers, error) : status;
  });
}

int32_t no_graphs(heddle_error* error) {
  return fail(error, HEDDLE_UNAVAILABLE, "the simt device does not capture graphs: run the steps one by one");
}

int32_t graph_begin(heddle_queue*, heddle_error* error) { return no_graphs(error); }
int32_t graph_end(heddle_queue*, heddle_graph** graph, heddle_error* error) {
  *graph = nullptr;
  return no_graphs(error);
}
int32_t graph_launch(heddle_graph*, heddle_queue*, heddle_error* error) { return no_graphs(error); }
void graph_destroy(heddle_graph*) {}

int32_t event_create(heddle_device*, heddle_event** event, heddle_error* error) {
  return guarded(error, [&] {
    *event = new heddle_event{{}, false};
    return HEDDLE_OK;
  });
}

int32_t event_record(heddle_event* event, heddle_queue*, heddle_error*) {
  *event = {std::chrono::steady_clock::now(), true};
  return HEDDLE_OK;
}

int32_t event_elapsed(heddle_event* from, heddle_event* to, float* milliseconds, heddle_error* error) {
  if (!from->recorded || !to->recorded) return fail(error, HEDDLE_INVALID, "elapsed time of an event that was not recorded");
  *milliseconds = std::chrono::duration<float, std::milli>(to->time - from->time).count();
  return HEDDLE_OK;
}

void event_destroy(heddle_event* event) { delete event; }

constexpr heddle_device_api kApi = {
    HEDDLE_ABI_VERSION, "simt",       open,         close,         info,         allocate,     release,       queue_create,
    queue_destroy,      queue_native, queue_wait,   copy_in,       copy_out,     copy,         fill,          matmul,
    graph_begin,        graph_end,    graph_launch, graph_destroy, event_create, event_record, event_elapsed, event_destroy,
};

}  // namespace

extern "C" __attribute__((visibility("default"))) const heddle_device_api* heddle_device_plugin() { return &kApi; }
