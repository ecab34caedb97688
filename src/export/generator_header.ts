/** C header of an exported generator, and a thin C++ class over it. */
import type { LoweredGenerator } from './generator.js'

/** Number of list items that a comment shows. */
const shown = 8

const listText = (values: readonly number[]): string =>
  values.length === 0 ? 'none' : `${values.slice(0, shown).join(', ')}${values.length > shown ? ', ...' : ''}`

export function generatorHeader({ parts, plan, dtype, steppers }: LoweredGenerator): string {
  const { name } = parts
  const guard = `HEDDLE_GENERATOR_${name.toUpperCase()}_H`
  const reads = parts.sources
    ? 'Prompts are sources: each is read whole, and a text is generated anew.'
    : 'Prompts are continued: a text is what comes behind its prompt. They may have any lengths.'
  return `/*
 * Texts by ${name} under plan ${plan} in ${dtype}, made by \`heddle export\`. ${reads}
 * ${parts.vocab} words, ${parts.positions} positions; ids that end a text: ${listText(parts.ends)}.
 * Ways to choose words: ${steppers.map(({ way }) => way).join(', ')}; at most ${parts.mostBeams} beams, a top_k of few words up to ${parts.mostTopK}.
 *
 * Every fallible function returns 0, or fills *error and returns its status: one of heddle_status, heddle_export_status or heddle_generate_status.
 * Weights are device memory, aligned to 16 bytes, and stay the caller's; states and workspace are the generator's. stream is a cudaStream_t, and
 * ignored on simt; null is the default stream. One generation of a generator at a time; several generators may share weights and threads.
 */
#ifndef ${guard}
#define ${guard}

#include "heddle/generate.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ${name}_generator ${name}_generator;

int32_t ${name}_create(const heddle_weight* weights, uint32_t count, ${name}_generator** generator, heddle_error* error);
void ${name}_destroy(${name}_generator* generator);

/* Generates texts of all prompts, and waits for them. */
int32_t ${name}_generate(${name}_generator* generator, const heddle_prompts* prompts, const heddle_generation* generation,
                 const heddle_texts* texts, void* stream, heddle_error* error);

/* The same in parts. begin takes memory where it has too little, sets states to what they hold before the first step, and reads the prompts. */
int32_t ${name}_begin(${name}_generator* generator, const heddle_prompts* prompts, const heddle_generation* generation, void* stream, heddle_error* error);
/* Enqueues steps, max_new_tokens in all at most. It takes no memory and waits for nothing, so that a graph can hold it. */
int32_t ${name}_advance(${name}_generator* generator, uint32_t steps, void* stream, heddle_error* error);
/* Waits, and says whether every text has ended. */
int32_t ${name}_ended(${name}_generator* generator, int32_t* ended, void* stream, heddle_error* error);
/* Waits, and writes the texts so far. */
int32_t ${name}_collect(${name}_generator* generator, const heddle_texts* texts, void* stream, heddle_error* error);

/* Device memory, for callers that have no other way to it. Copies are between any two of host and device, in the stream's order. */
int32_t ${name}_allocate(uint64_t bytes, void** data, heddle_error* error);
int32_t ${name}_release(void* data, heddle_error* error);
int32_t ${name}_copy(void* to, const void* from, uint64_t bytes, void* stream, heddle_error* error);
int32_t ${name}_wait(void* stream, heddle_error* error);

/* What the library was built for: "cuda" or "simt". */
const char* ${name}_target(void);

#ifdef __cplusplus
}
#endif

#endif
`
}

export function generatorWrapper({ parts: { name } }: LoweredGenerator): string {
  const guard = `HEDDLE_GENERATOR_${name.toUpperCase()}_HPP`
  return `// The generator in C++: weights from their file, prompts and texts as vectors, errors as exceptions. Header only, over ${name}.h.
#ifndef ${guard}
#define ${guard}

#include <algorithm>
#include <functional>

#include "${name}.h"
#include "heddle/tensors.hpp"

namespace ${name} {

// Options of a generation, as heddle_generation has them; all zero, it follows the likeliest words.
struct Options : heddle_generation {
  Options() : heddle_generation{} {}
  std::vector<uint64_t> draw_seeds;  // one, or one for each prompt
  // Sees the words of each step; false ends the generation there.
  std::function<bool(const heddle_chosen&)> on_words;
};

struct Text {
  std::vector<int32_t> ids;  // without an end id
  heddle_finish finish;
  float log_probability, score;  // of beams; NaN without
};

class Generator {
 public:
  // Reads the weights of the export and copies them to the device.
  explicit Generator(const std::string& weights) {
    const example::Tensors tensors = example::read(weights);
    std::vector<heddle_weight> given;
    for (const auto& [key, tensor] : tensors) {
      void* data = nullptr;
      require(${name}_allocate(tensor.data.size(), &data, &error_));
      held_.push_back(data);
      require(${name}_copy(data, tensor.data.data(), tensor.data.size(), nullptr, &error_));
      given.push_back({key.c_str(), data, tensor.dtype, static_cast<uint32_t>(tensor.shape.size()), tensor.shape.data()});
    }
    require(${name}_wait(nullptr, &error_));
    require(${name}_create(given.data(), static_cast<uint32_t>(given.size()), &generator_, &error_));
  }
  ~Generator() { free(); }
  Generator(const Generator&) = delete;
  Generator& operator=(const Generator&) = delete;

  // The texts of each prompt, best first where beams were asked for. @throws std::runtime_error
  std::vector<std::vector<Text>> generate(const std::vector<std::vector<int32_t>>& prompts, const Options& options = {}, void* stream = nullptr) {
    std::vector<int32_t> ids;
    std::vector<uint32_t> lengths;
    for (const auto& prompt : prompts) {
      ids.insert(ids.end(), prompt.begin(), prompt.end());
      lengths.push_back(static_cast<uint32_t>(prompt.size()));
    }
    heddle_generation asked = options;
    if (!options.draw_seeds.empty()) {
      asked.seeds = options.draw_seeds.data();
      asked.seed_count = static_cast<uint32_t>(options.draw_seeds.size());
    }
    if (options.on_words) {
      asked.user = const_cast<Options*>(&options);
      asked.on_step = [](void* user, const heddle_chosen* chosen) { return static_cast<Options*>(user)->on_words(*chosen) ? 0 : 1; };
    }
    const uint32_t each = asked.returned == 0 ? 1 : asked.returned;
    const uint32_t room = asked.max_new_tokens == 0 ? usual_tokens : asked.max_new_tokens;
    const size_t count = prompts.size() * each;
    std::vector<int32_t> words(count * room), finishes(count);
    std::vector<uint32_t> found(count);
    std::vector<float> sums(count), scores(count);
    const heddle_prompts given = {ids.data(), lengths.data(), static_cast<uint32_t>(prompts.size())};
    const heddle_texts results = {room, words.data(), found.data(), finishes.data(), sums.data(), scores.data()};
    require(${name}_generate(generator_, &given, &asked, &results, stream, &error_));
    std::vector<std::vector<Text>> texts(prompts.size());
    for (size_t i = 0; i < count; ++i) {
      const auto first = words.begin() + static_cast<std::ptrdiff_t>(i * room);
      texts[i / each].push_back({{first, first + found[i]}, static_cast<heddle_finish>(finishes[i]), sums[i], scores[i]});
    }
    return texts;
  }

  // For calls in parts.
  ${name}_generator* get() const { return generator_; }

 private:
  static constexpr uint32_t usual_tokens = 128;
  void require(int32_t status) {
    if (status == HEDDLE_OK) return;
    const std::string message = "status " + std::to_string(status) + ": " + error_.message;
    if (generator_ == nullptr) free();
    throw std::runtime_error(message);
  }
  void free() {
    heddle_error ignored = {};
    ${name}_destroy(generator_);
    for (void* data : held_) ${name}_release(data, &ignored);
    held_.clear();
    generator_ = nullptr;
  }

  ${name}_generator* generator_ = nullptr;
  std::vector<void*> held_;
  heddle_error error_ = {};
};

}  // namespace ${name}

#endif
`
}
