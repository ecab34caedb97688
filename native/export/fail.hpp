// Filling an error with one line.
#ifndef HEDDLE_EXPORT_FAIL_HPP
#define HEDDLE_EXPORT_FAIL_HPP

#include <cstdarg>
#include <cstdint>
#include <cstdio>

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

}  // namespace heddle::exported

#endif
