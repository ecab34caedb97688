// Converts a failing call to a heddle_error: one line with the call's name and CUDA's message.
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <string>

#include "device.hpp"

namespace heddle {

int32_t fail(heddle_error* error, heddle_status status, const char* format, ...) {
  error->status = status;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(error->message, sizeof error->message, format, arguments);
  va_end(arguments);
  return status;
}

namespace {

// Errors that only a running kernel raises. After one of these every later call in the process reports it again.
bool caused_by_kernel(cudaError_t result) {
  switch (result) {
    case cudaErrorIllegalAddress:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorIllegalInstruction:
    case cudaErrorHardwareStackError:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
      return true;
    default:
      return false;
  }
}

}  // namespace

int32_t check(cudaError_t result, const char* call, heddle_error* error) {
  if (result == cudaSuccess) return HEDDLE_OK;
  cudaGetLastError();  // a non-sticky error must not surface again in an unrelated call
  const std::string name(call, strcspn(call, "("));
  if (caused_by_kernel(result)) {
    return fail(error, HEDDLE_FAULT, "%s: %s (%s); a kernel failed and the device cannot be used again in this process",
                name.c_str(), cudaGetErrorString(result), cudaGetErrorName(result));
  }
  const heddle_status status = result == cudaErrorMemoryAllocation ? HEDDLE_MEMORY : HEDDLE_DEVICE;
  return fail(error, status, "%s: %s (%s)", name.c_str(), cudaGetErrorString(result), cudaGetErrorName(result));
}

}  // namespace heddle
