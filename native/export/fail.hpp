// Errors of the C interface: one line, also for exceptions.
#ifndef HEDDLE_EXPORT_FAIL_HPP
#define HEDDLE_EXPORT_FAIL_HPP

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <new>

#include "heddle/export.h"

namespace heddle::exported {

__attribute__((format(printf, 3, 4))) inline int32_t refuse(heddle_error* error, int32_t status, const char* format, ...) {
  error->status = status;
  va_list values;
  va_start(values, format);
  std::vsnprintf(error->message, sizeof error->message, format, values);
  va_end(values);
  return status;
}

// Runs a function of the C interface; exceptions become errors.
template <class Body>
int32_t guarded(heddle_error* error, Body body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return refuse(error, HEDDLE_MEMORY, "out of host memory");
  } catch (const std::exception& exception) {
    return refuse(error, HEDDLE_DEVICE, "%s", exception.what());
  }
}

}  // namespace heddle::exported

#endif
