// Runs one kernel on one case and compares its outputs with those of its body. Exits with 0 if they agree, with 1 if they differ or the kernel
// faults, and with 2 if the case cannot be run.
//
// Buffers lie in one block with guard bands between them, outputs are poisoned, and inputs and guards must be unchanged afterwards.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "case.hpp"
#include "device.hpp"
#include "numbers.hpp"
#include "tensors.hpp"

namespace {

using repro::Buffer;

const example::Tensor& find(const example::Tensors& tensors, const std::string& name) {
  const auto found = tensors.find(name);
  if (found == tensors.end()) throw std::runtime_error("there is no tensor " + name);
  return found->second;
}

std::vector<char> block_before(const example::Tensors& inputs) {
  std::vector<char> block(repro::block_bytes, static_cast<char>(repro::guard_byte));
  for (const Buffer& buffer : repro::buffers) {
    const auto from = block.begin() + static_cast<std::ptrdiff_t>(buffer.offset);
    if (!buffer.is_output) {
      const example::Tensor& tensor = find(inputs, buffer.name);
      if (tensor.data.size() != buffer.bytes)
        throw std::runtime_error(std::string(buffer.name) + " has " + std::to_string(tensor.data.size()) + " bytes, expected " +
                                 std::to_string(buffer.bytes));
      std::copy(tensor.data.begin(), tensor.data.end(), from);
    } else if (buffer.updates == nullptr) {
      std::fill_n(from, buffer.bytes, static_cast<char>(buffer.poison));
    }
  }
  return block;
}

// Describes the first byte outside of the outputs that the run changed; empty if there is none.
std::string trespass(const std::vector<char>& before, const std::vector<char>& after) {
  const auto inside = [](size_t byte, const Buffer& buffer) { return byte >= buffer.offset && byte < buffer.offset + buffer.bytes; };
  for (size_t byte = 0; byte < before.size(); ++byte) {
    if (before[byte] == after[byte]) continue;
    const Buffer *input = nullptr, *near = nullptr;
    bool is_output = false;
    for (const Buffer& buffer : repro::buffers) {
      if (buffer.is_output && inside(byte, buffer)) is_output = true;
      if (input == nullptr && inside(byte, buffer)) input = &buffer;
      if (buffer.offset <= byte) near = &buffer;
    }
    if (is_output) continue;
    if (input != nullptr)
      return std::string("input ") + input->name + " was overwritten at byte " + std::to_string(byte - input->offset);
    if (near == nullptr) return "guard band before the first buffer was overwritten at byte " + std::to_string(byte);
    return std::string("guard band after ") + near->name + " was overwritten, " + std::to_string(byte - near->offset - near->bytes) +
           " bytes past its end";
  }
  return "";
}

// Elements of a buffer in logical order; `places` has the position of each element, if it differs from its index.
std::vector<double> elements(const Buffer& buffer, const char* data, size_t count, const example::Tensor* places) {
  std::vector<double> found(count);
  for (size_t i = 0; i < count; ++i) {
    const size_t at = places == nullptr ? i : static_cast<size_t>(repro::plain<int64_t>(places->data.data() + 8 * i));
    found[i] = repro::number(buffer.dtype, data + at * repro::element_bytes(buffer.dtype));
  }
  return found;
}

// True if the kernel leaves a buffer unchanged.
bool is_constant(const Buffer& buffer) {
  bool is_kept = !buffer.is_output;
  for (const Buffer& other : repro::buffers) {
    if (other.updates != nullptr && std::string(other.updates) == buffer.name) is_kept = false;
  }
  return is_kept;
}

struct Verdict {
  bool passed;
  std::string words;
};

Verdict compare(const Buffer& buffer, const std::vector<double>& actual, const std::vector<double>& expected) {
  size_t failures = 0, worst = expected.size();
  double worst_ratio = 0, worst_error = 0, worst_allowed = 0;
  const double infinity = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < expected.size(); ++i) {
    if (actual[i] == expected[i]) continue;
    const double difference = std::fabs(actual[i] - expected[i]);
    const double error = std::isnan(difference) ? infinity : difference;
    const double allowed = std::isfinite(expected[i]) ? buffer.absolute + buffer.relative * std::fabs(expected[i]) : 0;
    if (error > allowed) ++failures;
    const double ratio = std::isfinite(error) && allowed > 0 ? error / allowed : infinity;
    if (worst == expected.size() || ratio > worst_ratio) {
      worst = i;
      worst_ratio = ratio;
      worst_error = error;
      worst_allowed = allowed;
    }
  }
  const std::string count = std::to_string(expected.size());
  if (worst == expected.size()) return {true, count + " elements equal"};
  const std::string where = "element " + std::to_string(worst) + " is " + repro::text_of(actual[worst]) + ", expected " +
                            repro::text_of(expected[worst]) + ", error " + repro::rough(worst_error) + ", allowed " +
                            repro::rough(worst_allowed);
  if (failures == 0) return {true, "worst " + where};
  return {false, std::to_string(failures) + " of " + count + " elements differ; worst " + where};
}

int say(bool passed, const std::string& words) {
  std::printf("%s %s: %s\n", passed ? "ok  " : "FAIL", repro::name, words.c_str());
  return passed ? 0 : 1;
}

int run() {
  const example::Tensors inputs = example::read("inputs.safetensors"), expected = example::read("expected.safetensors");
  const std::vector<char> before = block_before(inputs);
  repro::Memory memory(before);
  std::vector<heddle_slice> slices;
  std::vector<uint8_t> constants;
  for (const Buffer& buffer : repro::buffers) {
    slices.push_back({memory.data() + buffer.offset, buffer.bytes});
    constants.push_back(is_constant(buffer) ? HEDDLE_CONSTANT : HEDDLE_CHANGING);
  }
  const heddle_launch launch = {memory.queue(),
                                slices.data(),
                                repro::dims.data(),
                                repro::attrs.data(),
                                static_cast<uint32_t>(slices.size()),
                                static_cast<uint32_t>(repro::dims.size()),
                                static_cast<uint32_t>(repro::attrs.size()),
                                constants.data()};
  heddle_error error = {};
  if (repro::launcher(&launch, &error) != HEDDLE_OK) return say(false, error.message);
  const std::vector<char> after = memory.read();
  const std::string changed = trespass(before, after);
  if (!changed.empty()) return say(false, changed);

  std::string words;
  for (const Buffer& buffer : repro::buffers) {
    if (!buffer.is_output) continue;
    const example::Tensor& tensor = find(expected, buffer.name);
    const auto placed = expected.find(std::string(buffer.name) + ".places");
    const example::Tensor* places = placed == expected.end() ? nullptr : &placed->second;
    std::vector<double> wanted(tensor.data.size() / sizeof(double));
    for (size_t i = 0; i < wanted.size(); ++i) wanted[i] = repro::plain<double>(tensor.data.data() + sizeof(double) * i);
    const std::vector<double> stored = elements(buffer, after.data() + buffer.offset, wanted.size(), places);
    const Verdict verdict = compare(buffer, stored, wanted);
    if (!verdict.passed) return say(false, std::string(buffer.name) + ": " + verdict.words);
    words += (words.empty() ? "" : "; ") + std::string(buffer.name) + ": " + verdict.words;
    if (buffer.updates == nullptr) continue;
    // Elements that an update does not replace must be bitwise unchanged.
    const std::vector<double> old = elements(buffer, before.data() + buffer.offset, wanted.size(), places);
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (wanted[i] == old[i] && stored[i] != old[i])
        return say(false, std::string(buffer.name) + ": element " + std::to_string(i) + ", which is not replaced, changed");
    }
  }
  return say(true, words);
}

}  // namespace

int main() {
  try {
    return run();
  } catch (const std::exception& exception) {
    std::fprintf(stderr, "%s\n", exception.what());
    return 2;
  }
}
