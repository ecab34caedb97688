// Device interface of an exported program. One file implements it for simt and one for CUDA; an export is built with one of them.
#ifndef HEDDLE_EXPORT_BACKEND_HPP
#define HEDDLE_EXPORT_BACKEND_HPP

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "heddle/export.h"

namespace heddle::exported {

// Key of a run: its dimensions, and all its addresses.
using RunKey = std::vector<int64_t>;
// Enqueues a run on a stream.
using Enqueue = std::function<int32_t(void* stream, heddle_error* error)>;

class Backend {
 public:
  static int32_t open(std::unique_ptr<Backend>* backend, heddle_error* error);
  virtual ~Backend() = default;

  // As in tuning files: `sm_90`, or `simt`.
  virtual const std::string& architecture() const = 0;
  // Stream in the form that launchers expect.
  virtual void* queue(void* stream) = 0;
  // Orders all later work after all earlier work, regardless of early starts of launches.
  virtual int32_t fence(void* stream, heddle_error* error) = 0;
  virtual int32_t matmul(const heddle_matmul& matmul, void* stream, heddle_error* error) = 0;
  // Enqueues a run, or replays an earlier one with the same key.
  virtual int32_t run(const RunKey& key, void* stream, const Enqueue& enqueue, heddle_error* error) = 0;
};

// Allows the first launch of a kernel to load it while a stream is captured; ends with the scope.
class Launching {
 public:
  Launching();
  ~Launching();
  Launching(const Launching&) = delete;
  Launching& operator=(const Launching&) = delete;

 private:
  int mode_ = 0;
};

// "cuda" or "simt".
const char* target();

int32_t allocate(uint64_t bytes, void** data, heddle_error* error);
int32_t release(void* data, heddle_error* error);
// Between any two of device and host memory, in the order of the stream.
int32_t copy(void* to, const void* from, uint64_t bytes, void* stream, heddle_error* error);
int32_t fill(void* data, uint8_t value, uint64_t bytes, void* stream, heddle_error* error);
int32_t wait(void* stream, heddle_error* error);

}  // namespace heddle::exported

#endif
