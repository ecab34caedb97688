// NativeProgram.
#include <algorithm>

#include "host.hpp"

namespace heddle {

namespace {

constexpr uint32_t most_transfers = 4096;
constexpr uint64_t most_repeats = 100000;

std::shared_ptr<Program> live_program(const ProgramFace& face) {
  face.host->device()->check_open();
  if (face.program == nullptr) throw Failure{"CLOSED", "the program was released"};
  return face.program;
}

std::vector<CopyIn> read_inputs(const Napi::Value& value, const Device& device) {
  const Napi::Array array = read_array(value, "inputs", most_transfers);
  std::vector<CopyIn> inputs;
  for (uint32_t i = 0; i < array.Length(); ++i) {
    const std::string what = "inputs[" + std::to_string(i) + "]";
    const Napi::Object object = read_object(array.Get(i), what);
    const Slice to = read_slice(object.Get("to"), what + ".to", device);
    const Bytes data = read_bytes(object.Get("data"), what + ".data");
    if (data.size != to.bytes) {
      invalid(what + ": " + std::to_string(data.size) + " bytes of data for " + std::to_string(to.bytes) + " on the device");
    }
    inputs.push_back({to, std::vector<uint8_t>(data.data, data.data + data.size)});
  }
  return inputs;
}

// Host copies of a run, and the arrays that hold them after the run.
struct Results {
  std::vector<HostBytes> arrays;
  std::vector<CopyOut> copies;

  Napi::Value value(Napi::Env env) const {
    auto array = Napi::Array::New(env, arrays.size());
    for (size_t i = 0; i < arrays.size(); ++i) array.Set(static_cast<uint32_t>(i), arrays[i].value());
    return array;
  }
};

std::shared_ptr<Results> read_outputs(const Napi::CallbackInfo& info, const Napi::Value& value, const Device& device) {
  const Napi::Array wanted = read_array(value, "outputs", most_transfers);
  auto results = std::make_shared<Results>();
  for (uint32_t i = 0; i < wanted.Length(); ++i) {
    const std::string what = "outputs[" + std::to_string(i) + "]";
    const Slice from = read_slice(wanted.Get(i), what, device);
    if (from.bytes > most_read_bytes) {
      invalid(what + ": at most " + std::to_string(most_read_bytes) + " bytes can be read at once");
    }
    results->arrays.emplace_back(info.Env(), from.bytes);
    results->copies.push_back({from, results->arrays.back().data()});
  }
  return results;
}

Napi::Value run_program(const Napi::CallbackInfo& info, const std::shared_ptr<ProgramFace>& self) {
  const Device& device = *self->host->device();
  auto inputs = std::make_shared<std::vector<CopyIn>>(read_inputs(info[0], device));
  auto results = read_outputs(info, info[1], device);
  const uint64_t repeats = info[2].IsUndefined() ? 1 : read_whole(info[2], "repeats", 1, most_repeats);
  const std::shared_ptr<Program> program = live_program(*self);
  const auto work = [program, inputs, results, repeats, ticket = program->ticket()] {
    program->run(*inputs, results->copies, static_cast<uint32_t>(repeats), ticket);
  };
  return self->host->worker().submit(work, [host = self->host, results](Napi::Env env) { return results->value(env); });
}

Napi::Value run_program_ahead(const Napi::CallbackInfo& info, const std::shared_ptr<ProgramFace>& self) {
  auto results = read_outputs(info, info[0], *self->host->device());
  const std::shared_ptr<Program> program = live_program(*self);
  const auto begin = [program, results, ticket = program->ticket()](bool busy) -> Worker::Done {
    return [fence = std::shared_ptr<Fence>(program->begin(results->copies, ticket, busy))] { return fence->done(); };
  };
  return self->host->worker().submit_ahead(begin, [host = self->host, results](Napi::Env env) { return results->value(env); });
}

// Queues a measurement and resolves with its milliseconds.
template <class Measure>
Napi::Value submit_measurement(const std::shared_ptr<ProgramFace>& self, Measure measure) {
  const std::shared_ptr<Program> program = live_program(*self);
  auto result = std::make_shared<std::vector<double>>();
  const auto work = [program, result, measure, ticket = program->ticket()] { *result = measure(*program, ticket); };
  return self->host->worker().submit(work, [host = self->host, result](Napi::Env env) -> Napi::Value {
    auto array = Napi::Float64Array::New(env, result->size());
    std::copy(result->begin(), result->end(), array.Data());
    return array;
  });
}

Napi::Value time_program(const Napi::CallbackInfo& info, const std::shared_ptr<ProgramFace>& self) {
  const auto repeats = static_cast<uint32_t>(read_whole(info[0], "repeats", 1, most_repeats));
  const auto warmup = static_cast<uint32_t>(read_whole(info[1], "warmup", 0, most_repeats));
  return submit_measurement(
      self, [repeats, warmup](Program& program, uint64_t ticket) { return program.time(repeats, warmup, ticket); });
}

Napi::Value profile_program(const Napi::CallbackInfo& info, const std::shared_ptr<ProgramFace>& self) {
  const auto repeats = static_cast<uint32_t>(read_whole(info[0], "repeats", 1, most_repeats));
  return submit_measurement(self, [repeats](Program& program, uint64_t ticket) { return program.profile(repeats, ticket); });
}

Napi::Value capture_program(const Napi::CallbackInfo&, const std::shared_ptr<ProgramFace>& self) {
  const std::shared_ptr<Program> program = live_program(*self);
  const auto work = [program, ticket = program->ticket()] { program->capture(ticket); };
  return self->host->worker().submit(work, [host = self->host](Napi::Env env) { return env.Undefined(); });
}

}  // namespace

Napi::Object program_face(Napi::Env env, const std::shared_ptr<Host>& host, const Napi::Value& steps) {
  const auto program = std::make_shared<Program>(host->device(), read_steps(steps, *host->device()));
  const auto self = std::make_shared<ProgramFace>(ProgramFace{host, program});
  auto object = Napi::Object::New(env);
  object.Set("steps", Napi::Number::New(env, static_cast<double>(program->size())));
  const auto count = [&](const char* name, uint64_t (Program::*of)() const) {
    const auto get = [self, of](const Napi::CallbackInfo& info) -> Napi::Value {
      return Napi::Number::New(info.Env(), self->program == nullptr ? 0 : static_cast<double>((*self->program.*of)()));
    };
    object.DefineProperty(Napi::PropertyDescriptor::Accessor(env, object, name, get, napi_enumerable));
  };
  count("begun", &Program::begun);
  count("begunAhead", &Program::begun_ahead);
  const auto captured = [self](const Napi::CallbackInfo& info) -> Napi::Value {
    return Napi::Boolean::New(info.Env(), self->program != nullptr && self->program->captured());
  };
  object.DefineProperty(Napi::PropertyDescriptor::Accessor(env, object, "captured", captured, napi_enumerable));
  add_async_method(object, "run", self, run_program);
  add_async_method(object, "runAhead", self, run_program_ahead);
  add_async_method(object, "capture", self, capture_program);
  add_async_method(object, "time", self, time_program);
  add_async_method(object, "profile", self, profile_program);
  add_method(object, "abort", self, [](const Napi::CallbackInfo& info, const std::shared_ptr<ProgramFace>& face) {
    live_program(*face)->abort();
    return info.Env().Undefined();
  });
  add_method(object, "release", self, [](const Napi::CallbackInfo& info, const std::shared_ptr<ProgramFace>& face) {
    face->program.reset();
    return info.Env().Undefined();
  });
  object.Freeze();
  return object;
}

}  // namespace heddle
