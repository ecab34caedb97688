// Speed facts of a GPU from its attributes; no table of names is used.
#include "heddle/facts.h"

#include <cstdio>

#include "device.hpp"

namespace {

// An attribute, or 0 if this GPU or driver does not have it.
int attribute(cudaDeviceAttr which, int ordinal) {
  int value = 0;
  if (cudaDeviceGetAttribute(&value, which, ordinal) == cudaSuccess && value > 0) return value;
  cudaGetLastError();
  return 0;
}

void print_id(char (&id)[64], const cudaUUID_t& uuid) {
  const auto* byte = reinterpret_cast<const unsigned char*>(uuid.bytes);
  snprintf(id, sizeof id, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", byte[0], byte[1], byte[2],
           byte[3], byte[4], byte[5], byte[6], byte[7], byte[8], byte[9], byte[10], byte[11], byte[12], byte[13], byte[14],
           byte[15]);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int32_t heddle_device_facts(heddle_device* device, heddle_facts* facts,
                                                                               heddle_error* error) {
  *facts = {};
  HEDDLE_TRY(cudaSetDevice(device->ordinal));
  cudaDeviceProp properties;
  HEDDLE_TRY(cudaGetDeviceProperties(&properties, device->ordinal));
  print_id(facts->id, properties.uuid);
  facts->cache_bytes = static_cast<uint64_t>(attribute(cudaDevAttrL2CacheSize, device->ordinal));
  facts->clock_hz = 1000ull * static_cast<uint64_t>(attribute(cudaDevAttrClockRate, device->ordinal));
  const auto bits = static_cast<uint64_t>(attribute(cudaDevAttrGlobalMemoryBusWidth, device->ordinal));
  const auto kilohertz = static_cast<uint64_t>(attribute(cudaDevAttrMemoryClockRate, device->ordinal));
  // Two transfers per clock on each line of the bus.
  facts->bandwidth = 2 * (bits / 8) * kilohertz * 1000;
  return HEDDLE_OK;
}
