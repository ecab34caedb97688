// Numbers of a reproduction: stored elements as doubles, and doubles in the format of `heddle check`.
#ifndef HEDDLE_REPRO_NUMBERS_HPP
#define HEDDLE_REPRO_NUMBERS_HPP

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>

#include "heddle/abi.h"

namespace repro {

inline size_t element_bytes(int32_t dtype) {
  switch (dtype) {
    case HEDDLE_F32: case HEDDLE_I32: case HEDDLE_U32: return 4;
    case HEDDLE_F16: case HEDDLE_BF16: case HEDDLE_I16: return 2;
    case HEDDLE_I64: return 8;
    default: return 1;
  }
}

template <class T>
double plain(const char* data) {
  T value;
  std::memcpy(&value, data, sizeof value);
  return static_cast<double>(value);
}

// A float of a sign, `exponent` and `mantissa` bits. Without infinities the largest exponent is an ordinary one, except for one NaN.
inline double small_float(uint32_t bits, int exponent, int mantissa, bool has_infinity) {
  const int total = exponent + mantissa;
  const uint32_t fraction = bits & ((1u << mantissa) - 1), power = (bits >> mantissa) & ((1u << exponent) - 1);
  const uint32_t most = (1u << exponent) - 1;
  const int bias = (1 << (exponent - 1)) - 1;
  double value;
  if (power == most && (has_infinity || fraction == (1u << mantissa) - 1)) {
    value = has_infinity && fraction == 0 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  } else if (power == 0) {
    value = std::ldexp(static_cast<double>(fraction), 1 - bias - mantissa);
  } else {
    value = std::ldexp(static_cast<double>(fraction + (1u << mantissa)), static_cast<int>(power) - bias - mantissa);
  }
  return (bits >> total) & 1 ? -value : value;
}

/// The element at `data` of a storage type. The poison of int8, which no store produces, is not a number.
inline double number(int32_t dtype, const char* data) {
  switch (dtype) {
    case HEDDLE_F32: return plain<float>(data);
    case HEDDLE_I32: return plain<int32_t>(data);
    case HEDDLE_U32: return plain<uint32_t>(data);
    case HEDDLE_I16: return plain<int16_t>(data);
    case HEDDLE_I64: return plain<int64_t>(data);
    case HEDDLE_U8: return plain<uint8_t>(data);
    case HEDDLE_I8: {
      const double value = plain<int8_t>(data);
      return value == -128 ? std::numeric_limits<double>::quiet_NaN() : value;
    }
    default: break;
  }
  const uint8_t byte = static_cast<uint8_t>(*data);
  if (dtype == HEDDLE_F8E4M3) return small_float(byte, 4, 3, false);
  if (dtype == HEDDLE_F8E5M2) return small_float(byte, 5, 2, true);
  uint16_t bits;
  std::memcpy(&bits, data, sizeof bits);
  return dtype == HEDDLE_F16 ? small_float(bits, 5, 10, true) : small_float(bits, 8, 7, true);
}

// Decimal digits of a positive number, and the power of ten of the first.
struct Digits {
  std::string digits;
  int power;
};

inline Digits digits_of(double value, int after_first) {
  char text[96];
  std::snprintf(text, sizeof text, "%.*e", after_first, value);
  const char* e = std::strchr(text, 'e');
  std::string digits(1, text[0]);
  if (after_first > 0) digits.append(static_cast<const char*>(text) + 2, e);
  return {digits, std::atoi(e + 1)};
}

inline std::string special(double value) { return std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity"; }

inline std::string exponent_text(int power) { return (power < 0 ? "e-" : "e+") + std::to_string(power < 0 ? -power : power); }

/// The shortest text that reads back as the number, in JavaScript's form.
inline std::string text_of(double value) {
  if (!std::isfinite(value)) return special(value);
  if (value == 0) return "0";
  const double size = std::fabs(value);
  Digits found = digits_of(size, 0);
  for (int more = 0; more < 17; ++more) {
    found = digits_of(size, more);
    const std::string back = found.digits.substr(0, 1) + "." + found.digits.substr(1) + "e" + std::to_string(found.power);
    if (std::strtod(back.c_str(), nullptr) == size) break;
  }
  const std::string& digits = found.digits;
  const int count = static_cast<int>(digits.size()), point = found.power + 1;
  std::string text;
  if (count <= point && point <= 21) text = digits + std::string(static_cast<size_t>(point - count), '0');
  else if (0 < point && point <= 21) text = digits.substr(0, static_cast<size_t>(point)) + "." + digits.substr(static_cast<size_t>(point));
  else if (-6 < point && point <= 0) text = "0." + std::string(static_cast<size_t>(-point), '0') + digits;
  else text = digits.substr(0, 1) + (count > 1 ? "." + digits.substr(1) : "") + exponent_text(found.power);
  return (value < 0 ? "-" : "") + text;
}

/// Two digits after the point, as in 1.25e-4.
inline std::string rough(double value) {
  if (!std::isfinite(value)) return special(value);
  if (value == 0) return "0.00e+0";
  // JavaScript rounds a half up, the C library to even.
  const Digits found = digits_of(std::fabs(value), 60);
  int shown = std::atoi(found.digits.substr(0, 3).c_str()) + (found.digits[3] >= '5' ? 1 : 0), power = found.power;
  if (shown == 1000) {
    shown = 100;
    ++power;
  }
  const std::string digits = std::to_string(shown);
  return std::string(value < 0 ? "-" : "") + digits[0] + "." + digits.substr(1) + exponent_text(power);
}

}  // namespace repro

#endif
