// NativeDevice, NativeBuffer and NativeLibrary.
#include <algorithm>
#include <cmath>
#include <iterator>

#include "host.hpp"

namespace heddle {

template <>
const napi_type_tag* type_tag<BufferFace>() {
  static constexpr napi_type_tag tag = {0x8d0d5b1c7a8f4f0e, 0xb7c1a94fd8e3621a};
  return &tag;
}

template <>
const napi_type_tag* type_tag<LibraryFace>() {
  static constexpr napi_type_tag tag = {0x3e6fd0b59c2a47d1, 0x95a2c07be14f8d63};
  return &tag;
}

const std::shared_ptr<Memory>& live_memory(const BufferFace& face, const Device& device, const std::string& what) {
  face.host->device()->check_open();
  if (face.memory == nullptr) throw Failure{"CLOSED", what + ": the buffer was released"};
  if (face.memory->device() != &device) invalid(what + ": the buffer belongs to another device");
  return face.memory;
}

Slice read_slice(const Napi::Value& value, const std::string& what, const Device& device) {
  const Napi::Object object = read_object(value, what);
  const auto face = unwrap<BufferFace>(object.Get("buffer"), what + ".buffer", "a buffer of this addon");
  const uint64_t offset = read_whole(object.Get("offset"), what + ".offset", 0, max_safe_integer);
  const uint64_t bytes = read_whole(object.Get("bytes"), what + ".bytes", 0, max_safe_integer);
  // Last, since the reads above may run getters that release the buffer.
  const std::shared_ptr<Memory>& memory = live_memory(*face, device, what);
  if (offset + bytes > memory->bytes()) {
    invalid(what + ": bytes " + std::to_string(offset) + " to " + std::to_string(offset + bytes) + " are outside its buffer of " +
            std::to_string(memory->bytes()) + " bytes");
  }
  return {memory, offset, bytes};
}

namespace {

Napi::Value write_buffer(const Napi::CallbackInfo& info, const std::shared_ptr<BufferFace>& self) {
  const Device& device = *self->host->device();
  const std::shared_ptr<Memory> memory = live_memory(*self, device, "write");
  const uint64_t offset = read_whole(info[0], "offset", 0, memory->bytes());
  const Bytes bytes = read_bytes(info[1], "data");
  if (bytes.size > memory->bytes() - offset) {
    invalid("write: " + std::to_string(bytes.size) + " bytes at offset " + std::to_string(offset) + " do not fit the buffer of " +
            std::to_string(memory->bytes()) + " bytes");
  }
  const auto data = self->host->staging().copy(bytes.data, bytes.size);
  const auto work = [device = self->host->device(), memory, offset, data] {
    device->check_open();
    heddle_error error = {};
    const int32_t status = device->api().copy_in(device->queue(), memory->data() + offset, data->data(), data->size(), &error);
    heddle_error waited = {};
    const int32_t done = device->api().queue_wait(device->queue(), &waited);
    require(status, error);
    require(done, waited);
  };
  return self->host->worker().submit(work, [host = self->host](Napi::Env env) { return env.Undefined(); });
}

Napi::Value read_buffer(const Napi::CallbackInfo& info, const std::shared_ptr<BufferFace>& self) {
  const Device& device = *self->host->device();
  const std::shared_ptr<Memory> memory = live_memory(*self, device, "read");
  const uint64_t offset = read_whole(info[0], "offset", 0, memory->bytes());
  const uint64_t bytes = read_whole(info[1], "bytes", 0, std::min(memory->bytes() - offset, most_read_bytes));
  auto result = std::make_shared<HostBytes>(info.Env(), bytes);
  const auto work = [device = self->host->device(), memory, offset, bytes, result] {
    device->check_open();
    heddle_error error = {};
    const int32_t status = device->api().copy_out(device->queue(), result->data(), memory->data() + offset, bytes, &error);
    heddle_error waited = {};
    const int32_t done = device->api().queue_wait(device->queue(), &waited);
    require(status, error);
    require(done, waited);
  };
  return self->host->worker().submit(work, [host = self->host, result](Napi::Env) { return result->value(); });
}

Napi::Object info_object(Napi::Env env, Device& device) {
  const heddle_device_info info = device.info();
  const heddle_facts facts = device.facts();
  auto object = Napi::Object::New(env);
  const auto number = [&](const char* name, double value) { object.Set(name, Napi::Number::New(env, value)); };
  object.Set("kind", device.api().kind);
  object.Set("name", info.name);
  number("memoryBytes", static_cast<double>(info.memory_bytes));
  number("memoryFreeBytes", static_cast<double>(info.memory_free_bytes));
  if (info.compute_major > 0) {
    object.Set("computeCapability", std::to_string(info.compute_major) + "." + std::to_string(info.compute_minor));
  }
  number("multiprocessors", info.multiprocessors);
  number("driverVersion", info.driver_version);
  number("runtimeVersion", info.runtime_version);
  number("matmulVersion", info.matmul_version);
  // Unknown properties of a device are absent.
  const auto known = [&](const char* name, uint64_t value) {
    if (value > 0) number(name, static_cast<double>(value));
  };
  known("cacheBytes", facts.cache_bytes);
  known("bandwidth", facts.bandwidth);
  known("clockHz", facts.clock_hz);
  if (facts.id[0] != '\0') object.Set("id", facts.id);
  return object;
}

// Maximum number of algorithms that are listed for one matmul, and the number by default.
constexpr uint32_t most_algorithms = 65536;
constexpr uint32_t usual_algorithms = 512;

// Reads the largest wanted number of algorithms.
uint32_t read_algorithm_count(const Napi::Value& value) {
  if (value.IsUndefined()) return usual_algorithms;
  const double count = value.IsNumber() ? value.As<Napi::Number>().DoubleValue() : 0;
  if (!(count >= 1 && count <= most_algorithms) || count != std::floor(count)) {
    invalid("algorithms: expected a count from 1 to " + std::to_string(most_algorithms));
  }
  return static_cast<uint32_t>(count);
}

Napi::Object algorithm_object(Napi::Env env, const heddle_algorithm& algorithm) {
  auto object = Napi::Object::New(env);
  auto bytes = Napi::Uint8Array::New(env, HEDDLE_ALGORITHM_BYTES);
  std::copy(std::begin(algorithm.bytes), std::end(algorithm.bytes), bytes.Data());
  object.Set("bytes", bytes);
  const auto number = [&](const char* name, double value) { object.Set(name, Napi::Number::New(env, value)); };
  number("id", algorithm.id);
  number("tile", algorithm.tile);
  number("stages", algorithm.stages);
  number("split", algorithm.split);
  number("swizzle", algorithm.swizzle);
  number("custom", algorithm.custom);
  number("cluster", algorithm.cluster);
  number("workspaceBytes", static_cast<double>(algorithm.workspace_bytes));
  return object;
}

Napi::Value list_algorithms(const Napi::CallbackInfo& info, const std::shared_ptr<Host>& host) {
  host->device()->check_open();
  const auto step = std::make_shared<MatmulStep>(read_matmul_step(info[0], "matmul", *host->device()));
  const uint32_t most = read_algorithm_count(info[1]);
  const auto found = std::make_shared<std::vector<heddle_algorithm>>();
  const auto work = [device = host->device(), step, found, most] {
    device->check_open();
    found->resize(most);
    uint32_t count = 0;
    heddle_error error = {};
    require(device->algorithms().list(device->queue(), &step->matmul, most, found->data(), &count, &error), error);
    found->resize(count);
  };
  return host->worker().submit(work, [host, found](Napi::Env env) -> Napi::Value {
    auto array = Napi::Array::New(env, found->size());
    for (uint32_t i = 0; i < found->size(); ++i) array.Set(i, algorithm_object(env, (*found)[i]));
    return array;
  });
}

Napi::Value close_device(const Napi::CallbackInfo& info, const std::shared_ptr<Host>& host) {
  const auto undefined = info.Env().Undefined();
  if (host->device()->closed()) return undefined;
  host->device()->mark_closed();
  // Freed after the current job, which stops at its next step.
  host->worker().submit([device = host->device()] { device->shut(); }, [host](Napi::Env env) { return env.Undefined(); });
  host->worker().end_when_idle();
  return undefined;
}

}  // namespace

Napi::Object buffer_face(Napi::Env env, const std::shared_ptr<Host>& host, uint64_t bytes) {
  const auto self = std::make_shared<BufferFace>(BufferFace{host, std::make_shared<Memory>(host->device(), bytes)});
  auto object = Napi::Object::New(env);
  wrap(object, self);
  object.Set("bytes", Napi::Number::New(env, static_cast<double>(bytes)));
  add_async_method(object, "write", self, write_buffer);
  add_async_method(object, "read", self, read_buffer);
  add_method(object, "release", self, [](const Napi::CallbackInfo& info, const std::shared_ptr<BufferFace>& face) {
    face->memory.reset();
    return info.Env().Undefined();
  });
  object.Freeze();
  return object;
}

Napi::Object library_face(Napi::Env env, const std::shared_ptr<Host>& host, const std::string& path) {
  const auto self = std::make_shared<LibraryFace>(LibraryFace{host, std::make_shared<Library>(host->device(), path)});
  const heddle_kernel_library_info& info = self->library->info();
  auto kernels = Napi::Array::New(env, info.kernel_count);
  for (uint32_t i = 0; i < info.kernel_count; ++i) {
    const heddle_kernel& kernel = info.kernels[i];
    auto entry = Napi::Object::New(env);
    entry.Set("key", kernel.key);
    entry.Set("digest", kernel.digest);
    entry.Set("buffers", Napi::Number::New(env, kernel.buffer_count));
    entry.Set("dims", Napi::Number::New(env, kernel.dim_count));
    entry.Set("attrs", Napi::Number::New(env, kernel.attr_count));
    entry.Freeze();
    kernels.Set(i, entry);
  }
  kernels.Freeze();
  auto object = Napi::Object::New(env);
  wrap(object, self);
  object.Set("target", info.target);
  object.Set("kernels", kernels);
  object.Freeze();
  return object;
}

Napi::Object device_face(Napi::Env env, const std::shared_ptr<Host>& host) {
  auto object = Napi::Object::New(env);
  add_method(object, "info", host, [](const Napi::CallbackInfo& info, const std::shared_ptr<Host>& self) {
    return info_object(info.Env(), *self->device());
  });
  add_method(object, "allocate", host, [](const Napi::CallbackInfo& info, const std::shared_ptr<Host>& self) {
    return buffer_face(info.Env(), self, read_whole(info[0], "bytes", 0, max_safe_integer));
  });
  add_method(object, "loadLibrary", host, [](const Napi::CallbackInfo& info, const std::shared_ptr<Host>& self) {
    const std::string path = read_text(info[0], "path");
    self->device()->check_open();
    return library_face(info.Env(), self, path);
  });
  add_method(object, "program", host, [](const Napi::CallbackInfo& info, const std::shared_ptr<Host>& self) {
    self->device()->check_open();
    return program_face(info.Env(), self, info[0]);
  });
  add_async_method(object, "algorithms", host, list_algorithms);
  add_method(object, "close", host, close_device);
  object.Freeze();
  return object;
}

}  // namespace heddle
