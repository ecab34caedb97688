// Runs two graphs of the library on one element, in two storage types, and prints what they give.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "layers.h"

namespace {

heddle_error error = {};

void require(int32_t status) {
  if (status == HEDDLE_OK) return;
  std::printf("status %d: %s\n", status, error.message);
  std::exit(1);
}

template <typename T>
void* on_device(T value) {
  void* data = nullptr;
  require(affine_f32_allocate(sizeof value, &data, &error));
  require(affine_f32_copy(data, &value, sizeof value, nullptr, &error));
  return data;
}

template <typename T>
T on_host(const void* data) {
  T value = {};
  require(affine_f32_copy(&value, data, sizeof value, nullptr, &error));
  require(affine_f32_wait(nullptr, &error));
  return value;
}

}  // namespace

// A run of a graph without states: its workspace is allocated, and never released.
#define RUN(graph, inputs, outputs)                                                                         \
  do {                                                                                                      \
    graph##_program* program = nullptr;                                                                     \
    const graph##_dims dims = {1, 1};                                                                       \
    uint64_t bytes = 0;                                                                                     \
    void* workspace = nullptr;                                                                              \
    require(graph##_create(nullptr, 0, &program, &error));                                                  \
    require(graph##_workspace_bytes(program, &dims, &bytes, &error));                                       \
    require(graph##_allocate(bytes, &workspace, &error));                                                   \
    require(graph##_run(program, &dims, &inputs, &outputs, nullptr, 0, workspace, bytes, nullptr, &error)); \
    graph##_destroy(program);                                                                               \
  } while (false)

int main() {
  constexpr uint16_t two = 0x4000, three = 0x4200;
  void* out = on_device(0.0f);
  const affine_f32_inputs wide = {on_device(2.0f), on_device(3.0f)};
  const affine_f32_outputs sum = {out};
  RUN(affine_f32, wide, sum);
  std::printf("affine f32 %g\n", static_cast<double>(on_host<float>(out)));
  const affine_f16_inputs narrow = {on_device(two), on_device(three)};
  const affine_f16_outputs short_sum = {out};
  RUN(affine_f16, narrow, short_sum);
  std::printf("affine f16 %04x\n", static_cast<unsigned>(on_host<uint16_t>(out)));
  const energy_f32_inputs wide_energy = {wide.gamma};
  const energy_f32_outputs energy = {out};
  RUN(energy_f32, wide_energy, energy);
  std::printf("energy f32 %g\n", static_cast<double>(on_host<float>(out)));
  const energy_f16_inputs narrow_energy = {narrow.gamma};
  const energy_f16_outputs short_energy = {out};
  RUN(energy_f16, narrow_energy, short_energy);
  std::printf("energy f16 %g\n", static_cast<double>(on_host<float>(out)));
  return 0;
}
