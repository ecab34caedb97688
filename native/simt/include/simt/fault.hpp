// Errors of the C interface: a status and one line of text. The simt plugin uses this header too.
#ifndef HEDDLE_SIMT_FAULT_HPP
#define HEDDLE_SIMT_FAULT_HPP

#include <stdarg.h>
#include <stdio.h>

#include "heddle/abi.h"

namespace heddle {

/// Fills `error` (which may be null) and returns `status`. The format is printf's.
__attribute__((noinline, cold, format(printf, 3, 4))) inline int32_t fail(heddle_error* error, heddle_status status,
                                                                          const char* format, ...) {
  if (error != nullptr) {
    error->status = status;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->message, sizeof error->message, format, arguments);
    va_end(arguments);
  }
  return status;
}

}  // namespace heddle

namespace heddle::simt {

/// Thrown out of a kernel's thread once its worker's error is filled; never crosses the C interface.
struct Fault {};

}  // namespace heddle::simt

#endif
