// The only exception of the addon: a code of src/runtime/native.ts and one line. It never crosses the C interface; at the boundary to JavaScript it
// becomes an Error with that code.
#pragma once

#include <string>
#include <utility>

#include "heddle/abi.h"

namespace heddle {

struct Failure {
  const char* code;
  std::string message;
};

// Code of a status of the C interface.
inline const char* code_of(int32_t status) {
  switch (status) {
    case HEDDLE_INVALID:
      return "INVALID";
    case HEDDLE_UNAVAILABLE:
      return "UNAVAILABLE";
    case HEDDLE_MEMORY:
      return "MEMORY";
    case HEDDLE_FAULT:
      return "FAULT";
    default:
      return "DEVICE";
  }
}

[[noreturn]] inline void invalid(std::string message) { throw Failure{"INVALID", std::move(message)}; }

// Throws the error that a failing call of the C interface reported.
inline void require(int32_t status, const heddle_error& error) {
  if (status != HEDDLE_OK) throw Failure{code_of(status), error.message};
}

}  // namespace heddle
