// State shared by all JavaScript faces of one device: the device and its worker thread.
#pragma once

#include <napi.h>

#include <memory>
#include <string>
#include <vector>

#include "device.hpp"
#include "face.hpp"
#include "program.hpp"
#include "staging.hpp"
#include "worker.hpp"

namespace heddle {

class Host {
 public:
  Host(Napi::Env env, const std::string& plugin_path, int32_t ordinal);
  ~Host();
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  const std::shared_ptr<Device>& device() const { return device_; }
  Worker& worker() { return worker_; }
  Staging& staging() { return staging_; }

 private:
  static void on_environment_end(void* host);

  Napi::Env env_;
  std::shared_ptr<Device> device_;
  Staging staging_;
  Worker worker_;
};

// The C++ halves of the faces. `release` empties them; the memory or program stays alive while work refers to it.
struct BufferFace {
  std::shared_ptr<Host> host;
  std::shared_ptr<Memory> memory;
};

struct LibraryFace {
  std::shared_ptr<Host> host;
  std::shared_ptr<Library> library;
};

struct ProgramFace {
  std::shared_ptr<Host> host;
  std::shared_ptr<Program> program;
};

template <>
const napi_type_tag* type_tag<BufferFace>();
template <>
const napi_type_tag* type_tag<LibraryFace>();

Napi::Object device_face(Napi::Env env, const std::shared_ptr<Host>& host);
Napi::Object buffer_face(Napi::Env env, const std::shared_ptr<Host>& host, uint64_t bytes);
Napi::Object library_face(Napi::Env env, const std::shared_ptr<Host>& host, const std::string& path);
Napi::Object program_face(Napi::Env env, const std::shared_ptr<Host>& host, const Napi::Value& steps);

// The memory of a live buffer. Throws CLOSED after its release or the end of its device, INVALID for another device's.
const std::shared_ptr<Memory>& live_memory(const BufferFace& face, const Device& device, const std::string& what);

// Reads `{ buffer, offset, bytes }`, a range of a live buffer of the device.
Slice read_slice(const Napi::Value& value, const std::string& what, const Device& device);

// A matmul step: the problem for the plugin, and the buffers and the algorithm that it refers to.
struct MatmulStep {
  std::string label;
  heddle_matmul matmul = {};
  std::vector<Slice> slices;
  std::vector<uint8_t> algorithm;  // empty: the library chooses
};

// Reads a single matmul, for NativeDevice.algorithms.
MatmulStep read_matmul_step(const Napi::Value& value, const std::string& what, const Device& device);

// Reads the argument of NativeDevice.program.
std::vector<Step> read_steps(const Napi::Value& value, const Device& device);

// A Uint8Array that the worker may fill: JavaScript cannot reach it before its promise resolves.
class HostBytes {
 public:
  HostBytes(Napi::Env env, uint64_t bytes)
      : array_(Napi::Persistent(Napi::Uint8Array::New(env, bytes))), data_(array_.Value().Data()) {}
  uint8_t* data() const { return data_; }
  Napi::Value value() const { return array_.Value(); }

 private:
  Napi::Reference<Napi::Uint8Array> array_;
  uint8_t* data_;
};

// The most bytes that one read returns: every typed array can hold as many.
constexpr uint64_t most_read_bytes = 1ull << 32;

}  // namespace heddle
