// A small reader and writer of safetensors files, for examples: an 8-byte little-endian header length, a JSON header, the bytes of the tensors. It
// reads the output of any writer of the format, except escapes in names.
#ifndef HEDDLE_EXAMPLE_TENSORS_HPP
#define HEDDLE_EXAMPLE_TENSORS_HPP

#include <cctype>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "heddle/abi.h"

namespace example {

struct Tensor {
  int32_t dtype = 0;
  std::vector<int64_t> shape;
  std::vector<char> data;
};

using Tensors = std::map<std::string, Tensor>;

constexpr const char* dtype_names[] = {"F32", "F16", "BF16", "I32", "I8", "U8", "F8_E4M3", "F8_E5M2", "I16", "U32", "I64", "F64"};
// For expected values alone: no kernel stores it.
constexpr int32_t f64 = HEDDLE_I64 + 1;

inline int32_t dtype_of(const std::string& name) {
  for (int32_t i = HEDDLE_F32; i <= f64; ++i) {
    if (name == dtype_names[i]) return i;
  }
  throw std::runtime_error("no program reads tensors of type " + name);
}

// Parses the header: a JSON object of objects whose values are strings, numbers and lists of numbers.
class Header {
 public:
  explicit Header(const std::string& text) : text_(text) {}

  bool next(char wanted) {
    skip();
    if (at_ >= text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }
  void expect(char wanted) {
    if (!next(wanted)) throw std::runtime_error(std::string("the header of the file is not JSON of a supported form: expected ") + wanted);
  }
  std::string word() {
    expect('"');
    const size_t end = text_.find('"', at_);
    if (end == std::string::npos) throw std::runtime_error("the header of the file ends in a name");
    const std::string found = text_.substr(at_, end - at_);
    at_ = end + 1;
    return found;
  }
  std::vector<int64_t> numbers() {
    std::vector<int64_t> found;
    expect('[');
    while (!next(']')) {
      skip();
      size_t used = 0;
      found.push_back(std::stoll(text_.substr(at_, 20), &used));
      at_ += used;
      next(',');
    }
    return found;
  }

 private:
  void skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }
  const std::string& text_;
  size_t at_ = 0;
};

inline Tensors read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path);
  uint64_t length = 0;
  file.read(reinterpret_cast<char*>(&length), sizeof length);
  if (!file || length > (uint64_t{1} << 30)) throw std::runtime_error(path + " is not a safetensors file");
  std::string text(length, ' ');
  file.read(&text[0], static_cast<std::streamsize>(length));
  const auto first = file.tellg();
  Header header(text);
  Tensors tensors;
  header.expect('{');
  while (!header.next('}')) {
    const std::string name = header.word();
    Tensor tensor;
    std::vector<int64_t> range;
    header.expect(':');
    header.expect('{');
    while (!header.next('}')) {
      const std::string key = header.word();
      header.expect(':');
      if (key == "shape") tensor.shape = header.numbers();
      else if (key == "data_offsets") range = header.numbers();
      else if (key == "dtype") tensor.dtype = dtype_of(header.word());
      else header.word();
      header.next(',');
    }
    header.next(',');
    if (range.size() != 2 || range[1] < range[0]) continue;  // metadata
    tensor.data.resize(static_cast<size_t>(range[1] - range[0]));
    file.seekg(first + static_cast<std::streamoff>(range[0]));
    file.read(tensor.data.data(), static_cast<std::streamsize>(tensor.data.size()));
    if (!file) throw std::runtime_error(path + " ends before " + name + " does");
    tensors[name] = std::move(tensor);
  }
  return tensors;
}

inline void write(const std::string& path, const Tensors& tensors) {
  std::string text = "{";
  size_t at = 0;
  for (const auto& [name, tensor] : tensors) {
    std::string shape;
    for (const int64_t extent : tensor.shape) shape += (shape.empty() ? "" : ",") + std::to_string(extent);
    text += (text.size() > 1 ? ",\"" : "\"") + name + "\":{\"dtype\":\"" + dtype_names[tensor.dtype] + "\",\"shape\":[" + shape +
            "],\"data_offsets\":[" + std::to_string(at) + "," + std::to_string(at + tensor.data.size()) + "]}";
    at += tensor.data.size();
  }
  text += "}";
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const uint64_t length = text.size();
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(&length), sizeof length);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  for (const auto& [name, tensor] : tensors) file.write(tensor.data.data(), static_cast<std::streamsize>(tensor.data.size()));
  if (!file) throw std::runtime_error("cannot write " + path);
}

}  // namespace example

#endif
