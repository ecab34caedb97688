/** The C++ example of an exported program: it reads weights, inputs and states from files, runs, and writes what came out. */
import { abiType, dtypeInfo } from '../ir/dtype.js'
import { multiplyExtents } from '../ir/shape.js'
import type { CNames } from './header.js'
import type { Lowered, LoweredValue } from './lowered.js'
import { type Size, times } from './sizes.js'
import { braced, plainText, quoted } from './text.js'

export function exampleText(lowered: Lowered, { program, ...names }: CNames): string {
  const text = (size: Size): string => plainText(size, (dim) => `dims.${names.dims[lowered.dims.indexOf(dim)]}`)
  const made = ({ name, dtype, shape, padded }: LoweredValue, prefix = ''): string => {
    const extents = padded === undefined ? shape : [padded]
    const bytes = text(times(padded ?? multiplyExtents(shape), dtypeInfo[dtype].bytes))
    return `{${quoted(`${prefix}${name}`)}, ${abiType(dtype)}, ${braced(extents.map(text))}, ${bytes}}`
  }
  const list = (items: readonly string[]): string =>
    `{${items.map((item) => `\n      ${item},`).join('')}${items.length > 0 ? '\n  ' : ''}}`
  const dims = names.dims
    .map((dim) => `      if (name == ${quoted(dim)}) dims.${dim} = std::stoll(argument.substr(at + 1));\n`)
    .join('')
  const sizes = names.dims.map((dim) => `${dim}=...`).join(' ')
  return `// Runs ${lowered.name} from files: example WEIGHTS INPUTS OUTPUTS REPEATS ${sizes}
//
// WEIGHTS, INPUTS and OUTPUTS are safetensors files. A state begins with the tensor of INPUTS that is called \`state.<its name>\`, and ends as
// that tensor of OUTPUTS.
#include <cstdio>
#include <string>
#include <vector>

#include "${program}.h"
#include "tensors.hpp"

namespace {

struct Value {
  const char* name;
  int32_t dtype;
  std::vector<int64_t> shape;
  int64_t bytes;
};

void require(int32_t status, const heddle_error& error) {
  if (status != HEDDLE_OK) throw std::runtime_error("status " + std::to_string(status) + ": " + error.message);
}

void* on_device(const void* host, uint64_t bytes) {
  heddle_error error = {};
  void* data = nullptr;
  require(${program}_allocate(bytes, &data, &error), error);
  if (host != nullptr) require(${program}_copy(data, host, bytes, nullptr, &error), error);
  return data;
}

example::Tensor on_host(const Value& value, const void* data) {
  heddle_error error = {};
  example::Tensor tensor{value.dtype, value.shape, std::vector<char>(static_cast<size_t>(value.bytes))};
  require(${program}_copy(tensor.data.data(), data, tensor.data.size(), nullptr, &error), error);
  require(${program}_wait(nullptr, &error), error);
  return tensor;
}

// The tensor of a value, of its size.
const example::Tensor& find(const example::Tensors& tensors, const Value& value) {
  const auto found = tensors.find(value.name);
  if (found == tensors.end()) throw std::runtime_error(std::string("there is no tensor ") + value.name);
  if (static_cast<int64_t>(found->second.data.size()) == value.bytes && found->second.dtype == value.dtype) return found->second;
  throw std::runtime_error(std::string(value.name) + " has " + std::to_string(found->second.data.size()) + " bytes, expected are " +
                           std::to_string(value.bytes));
}

void run(int argc, char** argv) {
  if (argc < 5) throw std::runtime_error("usage: example WEIGHTS INPUTS OUTPUTS REPEATS ${sizes}");
  heddle_error error = {};
  ${program}_dims dims = {};
  for (int i = 5; i < argc; ++i) {
    const std::string argument = argv[i];
    const size_t at = argument.find('=');
    const std::string name = argument.substr(0, at);
    if (at != std::string::npos) {
${dims}    }
  }

  const example::Tensors files = example::read(argv[1]);
  std::vector<heddle_weight> weights;
  std::vector<void*> held;
  for (const auto& [name, tensor] : files) {
    held.push_back(on_device(tensor.data.data(), tensor.data.size()));
    weights.push_back({name.c_str(), held.back(), tensor.dtype, static_cast<uint32_t>(tensor.shape.size()), tensor.shape.data()});
  }
  ${program}_program* program = nullptr;
  require(${program}_create(weights.data(), static_cast<uint32_t>(weights.size()), &program, &error), error);

  uint64_t workspace_bytes = 0, states_bytes = 0;
  require(${program}_workspace_bytes(program, &dims, &workspace_bytes, &error), error);
  require(${program}_states_bytes(program, &dims, &states_bytes, &error), error);
  void* workspace = on_device(nullptr, workspace_bytes);
  void* states = on_device(nullptr, states_bytes);

  const example::Tensors given = example::read(argv[2]);
  const std::vector<Value> inputs = ${list(lowered.inputs.map((value) => made(value)))};
  const std::vector<Value> outputs = ${list(lowered.outputs.map((value) => made(value)))};
  const std::vector<Value> kept = ${list(lowered.states.map((value) => made(value, 'state.')))};
  ${program}_inputs in = {};
  ${program}_outputs out = {};
  // The fields of both are pointers in the order above.
  for (size_t i = 0; i < inputs.size(); ++i) {
    const example::Tensor& tensor = find(given, inputs[i]);
    reinterpret_cast<const void**>(&in)[i] = on_device(tensor.data.data(), tensor.data.size());
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    reinterpret_cast<void**>(&out)[i] = on_device(nullptr, static_cast<uint64_t>(outputs[i].bytes));
  }
  require(${program}_reset(program, &dims, states, states_bytes, nullptr, &error), error);
  for (size_t i = 0; i < kept.size(); ++i) {
    if (given.count(kept[i].name) == 0) continue;
    const example::Tensor& tensor = find(given, kept[i]);
    require(${program}_write(program, &dims, states, states_bytes, static_cast<uint32_t>(i), tensor.data.data(), tensor.data.size(), nullptr, &error), error);
  }

  const int repeats = std::stoi(argv[4]);
  for (int i = 0; i < repeats; ++i) {
    require(${program}_run(program, &dims, &in, &out, states, states_bytes, workspace, workspace_bytes, nullptr, &error), error);
  }
  require(${program}_wait(nullptr, &error), error);

  example::Tensors results;
  for (size_t i = 0; i < outputs.size(); ++i) results[outputs[i].name] = on_host(outputs[i], reinterpret_cast<void**>(&out)[i]);
  for (size_t i = 0; i < kept.size(); ++i) {
    example::Tensor tensor{kept[i].dtype, kept[i].shape, std::vector<char>(static_cast<size_t>(kept[i].bytes))};
    require(${program}_read(program, &dims, states, states_bytes, static_cast<uint32_t>(i), tensor.data.data(), tensor.data.size(), nullptr, &error), error);
    require(${program}_wait(nullptr, &error), error);
    results[kept[i].name] = std::move(tensor);
  }
  example::write(argv[3], results);
  for (size_t i = 0; i < inputs.size(); ++i) ${program}_release(const_cast<void*>(reinterpret_cast<const void**>(&in)[i]), &error);
  for (size_t i = 0; i < outputs.size(); ++i) ${program}_release(reinterpret_cast<void**>(&out)[i], &error);
  for (void* data : held) ${program}_release(data, &error);
  ${program}_release(states, &error);
  ${program}_release(workspace, &error);
  ${program}_destroy(program);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(argc, argv);
    return 0;
  } catch (const std::exception& exception) {
    std::fprintf(stderr, "%s\\n", exception.what());
    return 1;
  }
}
`
}
