// Reading arguments: one function for each kind of value.
#include "face.hpp"

#include <cmath>
#include <cstdio>

namespace heddle {

Napi::Error to_error(Napi::Env env, const Failure& failure) {
  Napi::Error error = Napi::Error::New(env, failure.message);
  error.Set("code", Napi::String::New(env, failure.code));
  return error;
}

namespace {

std::string number_text(double value) {
  char text[32];
  snprintf(text, sizeof text, "%.17g", value);
  return text;
}

constexpr size_t shown_characters = 60;

}  // namespace

std::string describe(const Napi::Value& value) {
  switch (value.Type()) {
    case napi_undefined:
      return "undefined";
    case napi_null:
      return "null";
    case napi_boolean:
      return value.As<Napi::Boolean>().Value() ? "true" : "false";
    case napi_number:
      return number_text(value.As<Napi::Number>().DoubleValue());
    case napi_string: {
      const std::string text = value.As<Napi::String>().Utf8Value();
      return text.size() <= shown_characters ? '"' + text + '"' : '"' + text.substr(0, shown_characters) + "...\"";
    }
    case napi_symbol:
      return "a symbol";
    case napi_function:
      return "a function";
    case napi_bigint:
      return "a bigint";
    default:
      return value.IsArray() ? "an array" : "an object";
  }
}

void expected(const std::string& what, const std::string& allowed, const Napi::Value& value) {
  invalid(what + ": expected " + allowed + ", got " + describe(value));
}

uint64_t read_whole(const Napi::Value& value, const std::string& what, uint64_t least, uint64_t most) {
  const double number = value.IsNumber() ? value.As<Napi::Number>().DoubleValue() : NAN;
  const bool inside = number >= static_cast<double>(least) && number <= static_cast<double>(most);
  if (!inside || number != std::floor(number)) {
    expected(what, "a whole number from " + std::to_string(least) + " to " + std::to_string(most), value);
  }
  return static_cast<uint64_t>(number);
}

double read_number(const Napi::Value& value, const std::string& what) {
  const double number = value.IsNumber() ? value.As<Napi::Number>().DoubleValue() : NAN;
  if (std::isnan(number)) expected(what, "a number", value);
  return number;
}

bool read_boolean(const Napi::Value& value, const std::string& what) {
  if (!value.IsBoolean()) expected(what, "true or false", value);
  return value.As<Napi::Boolean>().Value();
}

std::string read_text(const Napi::Value& value, const std::string& what) {
  if (!value.IsString()) expected(what, "a string", value);
  std::string text = value.As<Napi::String>().Utf8Value();
  if (text.empty() || text.find('\0') != std::string::npos) expected(what, "a non-empty string without NUL", value);
  return text;
}

Napi::Object read_object(const Napi::Value& value, const std::string& what) {
  if (!value.IsObject() || value.IsFunction()) expected(what, "an object", value);
  return value.As<Napi::Object>();
}

Napi::Array read_array(const Napi::Value& value, const std::string& what, uint32_t most) {
  if (!value.IsArray()) expected(what, "an array", value);
  const auto array = value.As<Napi::Array>();
  if (array.Length() > most) {
    invalid(what + ": expected at most " + std::to_string(most) + " entries, got " + std::to_string(array.Length()));
  }
  return array;
}

Bytes read_bytes(const Napi::Value& value, const std::string& what) {
  napi_typedarray_type type = napi_int8_array;
  size_t length = 0;
  void* data = nullptr;
  bool is_typed_array = false;
  napi_is_typedarray(value.Env(), value, &is_typed_array);
  if (is_typed_array) napi_get_typedarray_info(value.Env(), value, &type, &length, &data, nullptr, nullptr);
  if (!is_typed_array || type != napi_uint8_array) expected(what, "a Uint8Array", value);
  return {static_cast<const uint8_t*>(data), data == nullptr ? 0 : length};
}

}  // namespace heddle
