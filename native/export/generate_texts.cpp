// Converts the results of steps on the device to texts: words up to an end id, or those on the paths of beams.
#include <algorithm>
#include <cmath>
#include <limits>

#include "fail.hpp"
#include "generate.hpp"
#include "heddle/gather_tree.h"

namespace heddle::exported {

namespace {

struct Text {
  std::vector<int32_t> ids;
  std::vector<size_t> path;  // the row of each id
  bool ended = false;
  float log_probability = std::numeric_limits<float>::quiet_NaN(), score = std::numeric_limits<float>::quiet_NaN();
};

// Cuts a text at its first end id.
int32_t cut(const Request& request, size_t prompt, Text& text, heddle_error* error) {
  for (size_t i = 0; i < text.ids.size(); ++i) {
    if (text.ids[i] < 0)
      return refuse(error, HEDDLE_NUMBERS, "prompt %zu: the logits of token %zu are not numbers, so no word can be chosen", prompt, i + 1);
    if (std::find(request.ends.begin(), request.ends.end(), text.ids[i]) == request.ends.end()) continue;
    text.ids.resize(i);
    text.ended = true;
    break;
  }
  return HEDDLE_OK;
}

// Words on the path to a row after some steps, and that path.
int32_t trace(const Request& request, const StepResults& results, uint32_t steps, size_t row, Text& text, heddle_error* error) {
  const auto rows = static_cast<uint32_t>(request.prompts.size() * request.width);
  text.ids.resize(steps);
  text.path.resize(steps);
  const auto last = static_cast<uint32_t>(row);
  if (heddle_trace_row(results.history.data(), results.parents.data(), steps, rows, request.width, last, text.ids.data()) == 0) {
    size_t at = row;
    for (size_t step = steps; step-- > 0; at = static_cast<size_t>(results.parents[step * rows + at])) text.path[step] = at;
    return HEDDLE_OK;
  }
  return refuse(error, HEDDLE_NUMBERS, "beam %zu of prompt %zu continues a beam of another prompt", row % request.width, row / request.width);
}

// The row that a step gave to a word after a row. It has none for an end id, which leaves the beams.
size_t row_of(const StepResults& results, size_t rows, size_t step, int32_t parent, int32_t word) {
  size_t row = 0;
  const size_t first = step * rows;
  while (row < rows && (results.parents[first + row] != parent || results.history[first + row] != word)) ++row;
  return row;
}

int32_t unfinite(heddle_error* error, size_t prompt, uint32_t beam) {
  return refuse(error, HEDDLE_NUMBERS, "prompt %zu: the score of beam %u is not a number", prompt, beam);
}

int32_t plain_beams(const Request& request, const StepResults& results, std::vector<Text>& found, heddle_error* error) {
  for (size_t prompt = 0; prompt < request.prompts.size(); ++prompt) {
    for (uint32_t beam = 0; beam < request.returned; ++beam) {
      const size_t row = prompt * request.width + beam;
      Text text;
      const int32_t status = trace(request, results, results.steps, row, text, error);
      if (status != HEDDLE_OK) return status;
      text.score = text.log_probability = results.cumulative[row];
      if (!std::isfinite(text.score)) return unfinite(error, prompt, beam);
      const int32_t wrong = cut(request, prompt, text, error);
      if (wrong != HEDDLE_OK) return wrong;
      found.push_back(std::move(text));
    }
  }
  return HEDDLE_OK;
}

int32_t pooled_beams(const Request& request, const StepResults& results, std::vector<Text>& found, heddle_error* error) {
  const size_t rows = request.prompts.size() * request.width;
  for (size_t prompt = 0; prompt < request.prompts.size(); ++prompt) {
    for (uint32_t beam = 0; beam < request.returned; ++beam) {
      const size_t at = prompt * request.width + beam;
      const int32_t step = results.pool_steps[at], row = results.pool_rows[at];
      Text text;
      // An empty place: the generation was stopped early.
      if (step < 0 || static_cast<uint32_t>(step) >= results.steps || row < 0 || static_cast<size_t>(row) >= rows) {
        if (results.whole) return unfinite(error, prompt, beam);
        found.push_back(std::move(text));
        continue;
      }
      const int32_t status = trace(request, results, static_cast<uint32_t>(step), static_cast<size_t>(row), text, error);
      if (status != HEDDLE_OK) return status;
      text.ids.push_back(results.pool_words[at]);
      text.path.push_back(row_of(results, rows, static_cast<size_t>(step), row, results.pool_words[at]));
      text.score = results.pool_scores[at];
      if (!std::isfinite(text.score)) return unfinite(error, prompt, beam);
      text.log_probability = static_cast<float>(static_cast<double>(text.score) * std::pow(step + 1.0, static_cast<double>(request.length_penalty)));
      const int32_t wrong = cut(request, prompt, text, error);
      if (wrong != HEDDLE_OK) return wrong;
      found.push_back(std::move(text));
    }
  }
  return HEDDLE_OK;
}

int32_t followed(const Request& request, const StepResults& results, std::vector<Text>& found, heddle_error* error) {
  const size_t rows = request.prompts.size();
  for (size_t row = 0; row < rows; ++row) {
    Text text;
    for (uint32_t step = 0; step < results.steps; ++step) text.ids.push_back(results.history[step * rows + row]);
    text.path.assign(results.steps, row);
    const int32_t wrong = cut(request, row, text, error);
    if (wrong != HEDDLE_OK) return wrong;
    found.push_back(std::move(text));
  }
  return HEDDLE_OK;
}

// Log-probabilities of the ids of a text; NaN after them.
void write_log_probabilities(const Request& request, const StepResults& results, const Text& text, float* to, uint32_t room) {
  const size_t rows = request.prompts.size() * request.width;
  for (size_t step = 0; step < room; ++step) {
    const bool has = step < text.ids.size() && text.path[step] < rows;
    to[step] = has ? -results.losses[step * rows + text.path[step]] : std::numeric_limits<float>::quiet_NaN();
  }
}

}  // namespace

int32_t write_texts(const Request& request, const StepResults& results, const heddle_texts& texts, heddle_error* error) {
  if (texts.ids == nullptr || texts.lengths == nullptr) return refuse(error, HEDDLE_POINTER, "results have no ids or no lengths");
  if (texts.room < request.steps)
    return refuse(error, HEDDLE_OPTION, "there is room for %u ids of a text, which may get %u", texts.room, request.steps);
  std::vector<Text> found;
  const bool beams = request.way == Way::beams || request.way == Way::beams_diverse;
  const int32_t status = beams                         ? plain_beams(request, results, found, error)
                         : request.way == Way::beams_hf ? pooled_beams(request, results, found, error)
                                                       : followed(request, results, found, error);
  if (status != HEDDLE_OK) return status;
  for (size_t i = 0; i < found.size(); ++i) {
    const Text& text = found[i];
    int32_t* ids = texts.ids + i * texts.room;
    std::fill(std::copy(text.ids.begin(), text.ids.end(), ids), ids + texts.room, -1);
    texts.lengths[i] = static_cast<uint32_t>(text.ids.size());
    if (texts.finishes != nullptr) texts.finishes[i] = text.ended ? HEDDLE_END : text.ids.size() == request.steps ? HEDDLE_LIMIT : HEDDLE_STOPPED;
    if (texts.log_probabilities != nullptr) texts.log_probabilities[i] = text.log_probability;
    if (texts.scores != nullptr) texts.scores[i] = text.score;
    if (texts.token_log_probabilities != nullptr) write_log_probabilities(request, results, text, texts.token_log_probabilities + i * texts.room, texts.room);
  }
  return HEDDLE_OK;
}

}  // namespace heddle::exported
