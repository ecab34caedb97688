// A queue is a non-blocking stream with a pinned staging area, plus the graphs and events recorded on it.
#include <cstring>

#include "device.hpp"

namespace heddle {

namespace {

constexpr uint64_t staging_bytes = 4ull << 20;

// Space in the staging area for one copy; null if it does not fit until earlier copies are done.
uint8_t* stage(heddle_queue* queue, uint64_t bytes) {
  if (bytes > staging_bytes) return nullptr;
  const uint64_t left = staging_bytes - queue->staged % staging_bytes;
  // A copy is contiguous: an end of the area that is too short is skipped.
  const uint64_t from = bytes > left ? queue->staged + left : queue->staged;
  if (from + bytes - queue->landed > staging_bytes) return nullptr;
  queue->staged = from + (bytes + 255) / 256 * 256;
  return queue->staging + from % staging_bytes;
}

// A captured copy would read host memory after its caller has reused it.
int32_t refuse_while_capturing(const heddle_queue* queue, const char* what, heddle_error* error) {
  if (!queue->capturing) return HEDDLE_OK;
  return fail(error, HEDDLE_INVALID, "%s cannot be part of a captured graph: copy before or after the graph", what);
}

int32_t initialise(heddle_queue* queue, heddle_error* error) {
  HEDDLE_TRY(cudaSetDevice(queue->device->ordinal));
  HEDDLE_TRY(cudaStreamCreateWithFlags(&queue->stream, cudaStreamNonBlocking));
  void* staging = nullptr;
  HEDDLE_TRY(cudaMallocHost(&staging, staging_bytes));
  queue->staging = static_cast<uint8_t*>(staging);
  if (!queue->device->matmuls.library().loaded()) return HEDDLE_OK;
  return device_allocate(queue->device, matmul_workspace_bytes, &queue->workspace, error);
}

}  // namespace

int32_t queue_create(heddle_device* device, heddle_queue** queue, heddle_error* error) {
  *queue = nullptr;
  auto* created = new heddle_queue;
  created->device = device;
  const int32_t status = initialise(created, error);
  if (status != HEDDLE_OK) {
    queue_destroy(created);
    return status;
  }
  *queue = created;
  return HEDDLE_OK;
}

void queue_destroy(heddle_queue* queue) {
  cudaSetDevice(queue->device->ordinal);
  if (queue->stream != nullptr) {
    cudaStreamSynchronize(queue->stream);
    cudaStreamDestroy(queue->stream);
  }
  heddle_error ignored = {};
  if (queue->workspace != nullptr) device_release(queue->device, queue->workspace, &ignored);
  if (queue->staging != nullptr) cudaFreeHost(queue->staging);
  delete queue;
}

// Launchers launch on the current device, which must be the stream's. A launch on another fails with an error.
void* queue_native(heddle_queue* queue) {
  cudaSetDevice(queue->device->ordinal);
  return queue->stream;
}

int32_t queue_wait(heddle_queue* queue, heddle_error* error) {
  HEDDLE_TRY(cudaSetDevice(queue->device->ordinal));
  const cudaError_t result = cudaStreamSynchronize(queue->stream);
  if (result == cudaSuccess) {
    for (const auto& landing : queue->landings) memcpy(landing.host, landing.staged, landing.bytes);
  }
  queue->landings.clear();
  // Staged copies of fences reach the host when the fences are queried.
  if (queue->fences == 0) queue->staged = queue->landed = 0;
  return check(result, "cudaStreamSynchronize", error);
}

int32_t queue_copy_in(heddle_queue* queue, void* device_data, const void* host, uint64_t bytes, heddle_error* error) {
  const int32_t refused = refuse_while_capturing(queue, "a copy from the host", error);
  if (refused != HEDDLE_OK || bytes == 0) return refused;
  HEDDLE_TRY(cudaSetDevice(queue->device->ordinal));
  uint8_t* room = stage(queue, bytes);
  if (room != nullptr) memcpy(room, host, bytes);
  HEDDLE_TRY(cudaMemcpyAsync(device_data, room != nullptr ? room : host, bytes, cudaMemcpyHostToDevice, queue->stream));
  return HEDDLE_OK;
}

int32_t queue_copy_out(heddle_queue* queue, void* host, const void* device_data, uint64_t bytes, heddle_error* error) {
  const int32_t refused = refuse_while_capturing(queue, "a copy to the host", error);
  if (refused != HEDDLE_OK || bytes == 0) return refused;
  HEDDLE_TRY(cudaSetDevice(queue->device->ordinal));
  uint8_t* room = stage(queue, bytes);
  HEDDLE_TRY(cudaMemcpyAsync(room != nullptr ? room : host, device_data, bytes, cudaMemcpyDeviceToHost, queue->stream));
  if (room != nullptr) queue->landings.push_back({host, room, bytes});
  return HEDDLE_OK;
}

int32_t queue_copy(heddle_queue* queue, void* to, const void* from, uint64_t bytes, heddle_error* error) {
  if (bytes == 0) return HEDDLE_OK;
  HEDDLE_TRY(cudaSetDevice(queue->device->ordinal));
  HEDDLE_TRY(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, queue->stream));
  return HEDDLE_OK;
}

int32_t queue_fill(heddle_queue* queue, void* device_data, uint8_t value, uint64_t bytes, heddle_error* error) {
  if (bytes == 0) return HEDDLE_OK;
  HEDDLE_TRY(cudaSetDevice(queue->device->ordinal));
  HEDDLE_TRY(cudaMemsetAsync(device_data, value, bytes, queue->stream));
  return HEDDLE_OK;
}

int32_t queue_matmul(heddle_queue* queue, const heddle_matmul* matmul, heddle_error* error) {
  HEDDLE_TRY(cudaSetDevice(queue->device->ordinal));
  return queue->device->matmuls.run(*matmul, nullptr, queue->workspace, queue->stream, error);
}

int32_t graph_begin(heddle_queue* queue, heddle_error* error) {
  if (queue->capturing) return fail(error, HEDDLE_INVALID, "a graph is already being captured on this queue");
  HEDDLE_TRY(cudaSetDevice(queue->device->ordinal));
  // Thread-local: allocations and waits of other threads do not break the capture.
  HEDDLE_TRY(cudaStreamBeginCapture(queue->stream, cudaStreamCaptureModeThreadLocal));
  queue->capturing = true;
  return HEDDLE_OK;
}

int32_t graph_end(heddle_queue* queue, heddle_graph** graph, heddle_error* error) {
  *graph = nullptr;
  if (!queue->capturing) return fail(error, HEDDLE_INVALID, "no graph is being captured on this queue");
  queue->capturing = false;
  HEDDLE_TRY(cudaSetDevice(queue->device->ordinal));
  cudaGraph_t captured = nullptr;
  HEDDLE_TRY(cudaStreamEndCapture(queue->stream, &captured));
  cudaGraphExec_t exec = nullptr;
  const cudaError_t result = cudaGraphInstantiate(&exec, captured, 0);
  cudaGraphDestroy(captured);
  if (result != cudaSuccess) return check(result, "cudaGraphInstantiate", error);
  *graph = new heddle_graph{queue->device, exec};
  return HEDDLE_OK;
}

int32_t graph_launch(heddle_graph* graph, heddle_queue* queue, heddle_error* error) {
  HEDDLE_TRY(cudaSetDevice(graph->device->ordinal));
  HEDDLE_TRY(cudaGraphLaunch(graph->exec, queue->stream));
  return HEDDLE_OK;
}

void graph_destroy(heddle_graph* graph) {
  cudaSetDevice(graph->device->ordinal);
  cudaGraphExecDestroy(graph->exec);
  delete graph;
}

int32_t event_create(heddle_device* device, heddle_event** event, heddle_error* error) {
  *event = nullptr;
  HEDDLE_TRY(cudaSetDevice(device->ordinal));
  cudaEvent_t created = nullptr;
  HEDDLE_TRY(cudaEventCreate(&created));
  *event = new heddle_event{device, created};
  return HEDDLE_OK;
}

int32_t event_record(heddle_event* event, heddle_queue* queue, heddle_error* error) {
  HEDDLE_TRY(cudaSetDevice(event->device->ordinal));
  HEDDLE_TRY(cudaEventRecord(event->event, queue->stream));
  return HEDDLE_OK;
}

int32_t event_elapsed(heddle_event* from, heddle_event* to, float* milliseconds, heddle_error* error) {
  HEDDLE_TRY(cudaSetDevice(from->device->ordinal));
  HEDDLE_TRY(cudaEventElapsedTime(milliseconds, from->event, to->event));
  return HEDDLE_OK;
}

void event_destroy(heddle_event* event) {
  cudaSetDevice(event->device->ordinal);
  cudaEventDestroy(event->event);
  delete event;
}

}  // namespace heddle
