// JavaScript faces of C++ objects, and readers of arguments. A face is a frozen, type-tagged object whose methods close over their C++ object: no
// method can be called on a wrong `this`, and no foreign object passes for a face.
#pragma once

#include <napi.h>

#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <string>

#include "failure.hpp"

namespace heddle {

// ---- errors at the boundary to JavaScript ----

Napi::Error to_error(Napi::Env env, const Failure& failure);

// Runs a method's body; failures become thrown Errors with a code.
template <class Body>
auto guarded(Napi::Env env, Body body) -> decltype(body()) {
  try {
    return body();
  } catch (const Failure& failure) {
    throw to_error(env, failure);
  } catch (const std::bad_alloc&) {
    throw to_error(env, {"MEMORY", "out of host memory"});
  } catch (const Napi::Error&) {
    throw;
  } catch (const std::exception& error) {
    throw to_error(env, {"DEVICE", error.what()});
  }
}

// Runs the body of a method that returns a promise; failures become rejections.
template <class Body>
Napi::Value promised(Napi::Env env, Body body) {
  try {
    return guarded(env, body);
  } catch (const Napi::Error& error) {
    const auto deferred = Napi::Promise::Deferred::New(env);
    deferred.Reject(error.Value());
    return deferred.Promise();
  }
}

// ---- faces ----

// Identifies faces of T; specialised beside each T.
template <class T>
const napi_type_tag* type_tag();

// Gives an object its C++ half, which lives as long as the object.
template <class T>
void wrap(Napi::Object object, const std::shared_ptr<T>& self) {
  object.TypeTag(type_tag<T>());
  auto* pointer = new std::shared_ptr<T>(self);
  const auto release = [](napi_env, void* data, void*) { delete static_cast<std::shared_ptr<T>*>(data); };
  if (napi_wrap(object.Env(), object, pointer, release, nullptr, nullptr) != napi_ok) {
    delete pointer;
    throw Failure{"DEVICE", "cannot wrap a native object"};
  }
}

// The C++ half of a face. Throws INVALID for anything that is not a face of T.
template <class T>
std::shared_ptr<T> unwrap(const Napi::Value& value, const std::string& what, const char* kind);

// Adds a method; `call` gets the arguments and the C++ object.
template <class T, class Call>
void add_method(Napi::Object object, const char* name, const std::shared_ptr<T>& self, Call call) {
  const auto method = [self, call](const Napi::CallbackInfo& info) -> Napi::Value {
    return guarded(info.Env(), [&]() -> Napi::Value { return call(info, self); });
  };
  object.Set(name, Napi::Function::New(object.Env(), method, name));
}

// Adds a method that returns a promise.
template <class T, class Call>
void add_async_method(Napi::Object object, const char* name, const std::shared_ptr<T>& self, Call call) {
  const auto method = [self, call](const Napi::CallbackInfo& info) -> Napi::Value {
    return promised(info.Env(), [&]() -> Napi::Value { return call(info, self); });
  };
  object.Set(name, Napi::Function::New(object.Env(), method, name));
}

// ---- reading arguments: every function throws INVALID with the expected and the actual value ----

// The largest whole number a JavaScript number holds exactly.
constexpr uint64_t max_safe_integer = (1ull << 53) - 1;

// `3`, `"text"`, `an array`: a value in words, without running any JavaScript.
std::string describe(const Napi::Value& value);
[[noreturn]] void expected(const std::string& what, const std::string& allowed, const Napi::Value& value);

uint64_t read_whole(const Napi::Value& value, const std::string& what, uint64_t least, uint64_t most);
double read_number(const Napi::Value& value, const std::string& what);
bool read_boolean(const Napi::Value& value, const std::string& what);
// Without NUL, which would end a C string.
std::string read_text(const Napi::Value& value, const std::string& what);
Napi::Object read_object(const Napi::Value& value, const std::string& what);
Napi::Array read_array(const Napi::Value& value, const std::string& what, uint32_t most);

struct Bytes {
  const uint8_t* data;
  size_t size;
};
// A Uint8Array; valid until the next JavaScript runs.
Bytes read_bytes(const Napi::Value& value, const std::string& what);

template <class T>
std::shared_ptr<T> unwrap(const Napi::Value& value, const std::string& what, const char* kind) {
  void* pointer = nullptr;
  if (value.IsObject()) {
    const auto object = value.As<Napi::Object>();
    if (object.CheckTypeTag(type_tag<T>())) napi_unwrap(value.Env(), value, &pointer);
  }
  if (pointer == nullptr) expected(what, kind, value);
  return *static_cast<std::shared_ptr<T>*>(pointer);
}

}  // namespace heddle
