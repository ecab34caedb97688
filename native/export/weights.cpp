// Reads the weights that a caller passes: each is checked against the program's expectation of its name, type and shape.
#include <cstring>

#include "fail.hpp"
#include "program.hpp"

namespace heddle::exported {

namespace {

constexpr const char* dtype_names[] = {"f32", "f16", "bf16", "i32", "i8", "u8", "f8e4m3", "f8e5m2", "i16", "u32", "i64"};
constexpr uint64_t dtype_bytes[] = {4, 2, 2, 4, 1, 1, 1, 1, 2, 4, 8};

const char* name_of(int32_t dtype) { return dtype >= 0 && dtype <= HEDDLE_I64 ? dtype_names[dtype] : "no type"; }

std::string text(const int64_t* shape, size_t rank) {
  std::string joined = "[";
  for (size_t i = 0; i < rank; ++i) joined += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return joined + "]";
}

const heddle_weight* find(const heddle_weight* given, uint32_t count, const std::string& name) {
  for (uint32_t i = 0; i < count; ++i) {
    if (given[i].name != nullptr && name == given[i].name) return &given[i];
  }
  return nullptr;
}

int32_t check(const Tensor& wanted, const heddle_weight& given, heddle_error* error) {
  const char* name = wanted.name.c_str();
  if (given.dtype != wanted.dtype) {
    return refuse(error, HEDDLE_WEIGHT_DTYPE, "weight %s is %s, given is %s", name, name_of(wanted.dtype), name_of(given.dtype));
  }
  const bool same = given.rank == wanted.shape.size() && (given.rank == 0 || given.shape != nullptr) &&
                    (given.rank == 0 || std::memcmp(given.shape, wanted.shape.data(), given.rank * sizeof(int64_t)) == 0);
  if (!same) {
    const uint32_t rank = given.shape == nullptr ? 0 : given.rank;
    return refuse(error, HEDDLE_WEIGHT_SHAPE, "weight %s has shape %s, given is %s", name,
                  text(wanted.shape.data(), wanted.shape.size()).c_str(), text(given.shape, rank).c_str());
  }
  if (given.data == nullptr || reinterpret_cast<uintptr_t>(given.data) % 16 != 0) {
    return refuse(error, HEDDLE_POINTER, "weight %s lies at %p, expected a multiple of 16", name, given.data);
  }
  return HEDDLE_OK;
}

}  // namespace

bool has_weight(const Model& model, const char* name) {
  for (const Weight& weight : model.weights) {
    if (name == weight.whole.name) return true;
    for (const Tensor& part : weight.parts) {
      if (name == part.name) return true;
    }
  }
  return false;
}

int32_t Program::take(const heddle_weight* given, uint32_t count, heddle_error* error) {
  for (uint32_t i = 0; i < count; ++i) {
    if (given[i].name == nullptr || !has_weight(model_, given[i].name)) {
      return refuse(error, HEDDLE_WEIGHT_UNKNOWN, "%s has no weight %s", model_.name, given[i].name == nullptr ? "without a name" : given[i].name);
    }
  }
  for (const Weight& weight : model_.weights) {
    const heddle_weight* whole = find(given, count, weight.whole.name);
    const void* data = nullptr;
    int32_t status = HEDDLE_OK;
    if (whole != nullptr) {
      status = check(weight.whole, *whole, error);
      data = whole->data;
    } else {
      status = stack(weight, given, count, &data, error);
    }
    if (status != HEDDLE_OK) return status;
    weights_.push_back(data);
  }
  return wait(nullptr, error);
}

int32_t Program::stack(const Weight& weight, const heddle_weight* given, uint32_t count, const void** data, heddle_error* error) {
  const char* name = weight.whole.name.c_str();
  if (weight.parts.empty()) return refuse(error, HEDDLE_WEIGHT_MISSING, "weight %s is missing", name);
  for (const Tensor& part : weight.parts) {
    const heddle_weight* found = find(given, count, part.name);
    if (found == nullptr) {
      return refuse(error, HEDDLE_WEIGHT_MISSING, "weight %s is missing; so is %s, which holds it", part.name.c_str(), name);
    }
    const int32_t status = check(part, *found, error);
    if (status != HEDDLE_OK) return status;
  }
  void* memory = nullptr;
  const int32_t status = allocate(weight.bytes, &memory, error);
  if (status != HEDDLE_OK) return status;
  owned_.push_back(memory);
  uint64_t at = 0;
  for (const Tensor& part : weight.parts) {
    uint64_t bytes = dtype_bytes[part.dtype];
    for (const int64_t extent : part.shape) bytes *= static_cast<uint64_t>(extent);
    const int32_t copied = copy(static_cast<uint8_t*>(memory) + at, find(given, count, part.name)->data, bytes, nullptr, error);
    if (copied != HEDDLE_OK) return copied;
    at += bytes;
  }
  *data = memory;
  return HEDDLE_OK;
}

}  // namespace heddle::exported
