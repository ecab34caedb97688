// Opening a GPU, its properties, and its memory pool.
#include <dlfcn.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>

#include "device.hpp"

namespace heddle {

namespace {

// Free memory from a caller's view: the driver's free memory and the unused memory of the pool.
int32_t free_memory(heddle_device* device, uint64_t* free_bytes, uint64_t* total_bytes, heddle_error* error) {
  size_t free_now = 0;
  size_t total = 0;
  HEDDLE_TRY(cudaMemGetInfo(&free_now, &total));
  uint64_t reserved = 0;
  uint64_t used = 0;
  if (device->pooled) {
    HEDDLE_TRY(cudaMemPoolGetAttribute(device->pool, cudaMemPoolAttrReservedMemCurrent, &reserved));
    HEDDLE_TRY(cudaMemPoolGetAttribute(device->pool, cudaMemPoolAttrUsedMemCurrent, &used));
  }
  *free_bytes = free_now + (reserved - used);
  *total_bytes = total;
  return HEDDLE_OK;
}

int32_t initialise(heddle_device* device, heddle_error* error) {
  HEDDLE_TRY(cudaSetDevice(device->ordinal));
  HEDDLE_TRY(cudaStreamCreateWithFlags(&device->memory, cudaStreamNonBlocking));
  int pools = 0;
  HEDDLE_TRY(cudaDeviceGetAttribute(&pools, cudaDevAttrMemoryPoolsSupported, device->ordinal));
  device->pooled = pools != 0;
  if (device->pooled) {
    HEDDLE_TRY(cudaDeviceGetDefaultMemPool(&device->pool, device->ordinal));
    uint64_t keep = UINT64_MAX;
    HEDDLE_TRY(cudaMemPoolSetAttribute(device->pool, cudaMemPoolAttrReleaseThreshold, &keep));
  }
  return HEDDLE_OK;
}

cudaError_t allocate_once(heddle_device* device, uint64_t bytes, void** data) {
  if (!device->pooled) return cudaMalloc(data, bytes);
  const cudaError_t result = cudaMallocAsync(data, bytes, device->memory);
  // Other streams may use the memory at once, so the allocation must be complete before it is returned.
  return result == cudaSuccess ? cudaStreamSynchronize(device->memory) : result;
}

}  // namespace

int32_t device_open(int32_t ordinal, heddle_device** device, heddle_error* error) {
  *device = nullptr;
  // cudart reports a missing driver as an outdated one; the loader gives the true reason.
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr) return fail(error, HEDDLE_UNAVAILABLE, "no CUDA driver on this machine (%s)", dlerror());
  dlclose(driver);

  int count = 0;
  const cudaError_t found = cudaGetDeviceCount(&count);
  if (found != cudaSuccess) {
    cudaGetLastError();
    return fail(error, HEDDLE_UNAVAILABLE, "no usable CUDA device: %s (%s)", cudaGetErrorString(found), cudaGetErrorName(found));
  }
  if (ordinal < 0 || ordinal >= count) {
    return fail(error, HEDDLE_UNAVAILABLE, "there is no CUDA device %d: expected 0 to %d, got %d", ordinal, count - 1, ordinal);
  }
  // A handle of cuBLASLt belongs to the device that is current when it is made.
  HEDDLE_TRY(cudaSetDevice(ordinal));
  auto* opened = new heddle_device;
  opened->ordinal = ordinal;
  const int32_t status = initialise(opened, error);
  if (status != HEDDLE_OK) {
    device_close(opened);
    return status;
  }
  *device = opened;
  return HEDDLE_OK;
}

void device_close(heddle_device* device) {
  cudaSetDevice(device->ordinal);
  if (device->memory != nullptr) {
    cudaStreamSynchronize(device->memory);
    cudaStreamDestroy(device->memory);
  }
  if (device->pooled) cudaMemPoolTrimTo(device->pool, 0);
  delete device;
}

int32_t device_info(heddle_device* device, heddle_device_info* info, heddle_error* error) {
  *info = {};
  HEDDLE_TRY(cudaSetDevice(device->ordinal));
  cudaDeviceProp properties;
  HEDDLE_TRY(cudaGetDeviceProperties(&properties, device->ordinal));
  snprintf(info->name, sizeof info->name, "%s", properties.name);
  info->compute_major = properties.major;
  info->compute_minor = properties.minor;
  info->multiprocessors = properties.multiProcessorCount;
  HEDDLE_TRY(cudaDriverGetVersion(&info->driver_version));
  HEDDLE_TRY(cudaRuntimeGetVersion(&info->runtime_version));
  info->matmul_version = device->matmuls.library().version();
  return free_memory(device, &info->memory_free_bytes, &info->memory_bytes, error);
}

int32_t device_allocate(heddle_device* device, uint64_t bytes, void** data, heddle_error* error) {
  *data = nullptr;
  HEDDLE_TRY(cudaSetDevice(device->ordinal));
  const uint64_t size = std::max<uint64_t>(bytes, 1);
  cudaError_t result = allocate_once(device, size, data);
  if (result == cudaErrorMemoryAllocation && device->pooled) {
    // The pool's free memory may be too fragmented: return it to the driver and try once more.
    cudaGetLastError();
    HEDDLE_TRY(cudaStreamSynchronize(device->memory));
    HEDDLE_TRY(cudaMemPoolTrimTo(device->pool, 0));
    result = allocate_once(device, size, data);
  }
  if (result != cudaErrorMemoryAllocation) return check(result, device->pooled ? "cudaMallocAsync" : "cudaMalloc", error);

  cudaGetLastError();
  *data = nullptr;
  uint64_t free_bytes = 0;
  uint64_t total_bytes = 0;
  const int32_t status = free_memory(device, &free_bytes, &total_bytes, error);
  if (status != HEDDLE_OK) return status;
  return fail(error, HEDDLE_MEMORY, "out of device memory: asked for %" PRIu64 " bytes, %" PRIu64 " of %" PRIu64 " are free",
              bytes, free_bytes, total_bytes);
}

// The caller releases memory only when no work on any queue uses it: the pool may reuse it at once.
int32_t device_release(heddle_device* device, void* data, heddle_error* error) {
  HEDDLE_TRY(cudaSetDevice(device->ordinal));
  if (device->pooled) {
    HEDDLE_TRY(cudaFreeAsync(data, device->memory));
  } else {
    HEDDLE_TRY(cudaFree(data));
  }
  return HEDDLE_OK;
}

}  // namespace heddle
