// Labels of texts by an exported BERT: labels WEIGHTS 2,17,40,9,3 2,8,5,33,3 prints the label of each token, one line per text.
#include <algorithm>
#include <iostream>
#include <numeric>
#include <sstream>

#include "bert.h"
#include "tensors.hpp"

static heddle_error error;

static void require(int32_t status) { return status == HEDDLE_OK ? void() : throw std::runtime_error(error.message); }

static void* on_device(const void* data, uint64_t bytes) {
  void* memory = nullptr;
  require(bert_allocate(bytes, &memory, &error));
  if (data != nullptr) require(bert_copy(memory, data, bytes, nullptr, &error));
  return memory;
}

// The number of tokens without padding: a dimension of plans that pack them.
template <class Dims>
auto pack(Dims* dims, int64_t tokens) -> decltype(void(dims->t = tokens)) { dims->t = tokens; }
[[maybe_unused]] static void pack(...) {}

int main(int count, char** arguments) {
  const example::Tensors file = example::read(arguments[1]);
  std::vector<heddle_weight> weights;
  for (const auto& [name, tensor] : file) {
    void* data = on_device(tensor.data.data(), tensor.data.size());
    weights.push_back({name.c_str(), data, tensor.dtype, static_cast<uint32_t>(tensor.shape.size()), tensor.shape.data()});
  }
  bert_program* bert = nullptr;
  require(bert_create(weights.data(), static_cast<uint32_t>(weights.size()), &bert, &error));

  std::vector<std::vector<int32_t>> texts(count - 2);
  std::vector<int32_t> lengths, ids, types;
  for (int i = 2; i < count; ++i) {
    std::istringstream text(arguments[i]);
    for (std::string id; std::getline(text, id, ',');) texts[i - 2].push_back(std::stoi(id));
    lengths.push_back(static_cast<int32_t>(texts[i - 2].size()));
  }
  bert_dims dims = {};
  dims.b = count - 2, dims.s = *std::max_element(lengths.begin(), lengths.end());
  for (auto& text : texts) text.resize(dims.s), ids.insert(ids.end(), text.begin(), text.end());
  types.resize(ids.size());
  pack(&dims, std::accumulate(lengths.begin(), lengths.end(), int64_t{0}));

  uint64_t workspace_bytes = 0;
  require(bert_workspace_bytes(bert, &dims, &workspace_bytes, &error));
  const auto given = [](const std::vector<int32_t>& numbers) { return on_device(numbers.data(), numbers.size() * 4); };
  const bert_inputs in = {given(ids), given(types), given(lengths)};
  const bert_outputs out = {on_device(nullptr, ids.size() * file.at("classifier.bias").data.size()), given(ids)};
  require(bert_run(bert, &dims, &in, &out, nullptr, 0, on_device(nullptr, workspace_bytes), workspace_bytes, nullptr, &error));
  require(bert_copy(ids.data(), out.labels, ids.size() * 4, nullptr, &error));
  require(bert_wait(nullptr, &error));
  for (size_t i = 0; i < lengths.size(); ++i) {
    for (int32_t at = 0; at < lengths[i]; ++at) std::cout << ids[i * dims.s + at] << (at + 1 < lengths[i] ? ' ' : '\n');
  }
}
