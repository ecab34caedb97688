// Whole generations, also of texts that outgrow the short tables of the rotation. As in Hugging Face's `generate`, and in Node, such a text is then read again whole by
// the long tables, and goes on. Texts that cross together run together; beams do by prompt, with their scores and their pool.
#include <algorithm>
#include <limits>
#include <map>

#include "fail.hpp"
#include "generate.hpp"
#include "heddle/gather_tree.h"

namespace heddle::exported {

namespace {

// Steps between two checks for ended texts, if no callback checks each step.
constexpr uint32_t steps_at_once = 8;

// Tokens that a text may have chosen when its tables change: the one after the last short position is still chosen by the short ones.
uint32_t limit_of(const Family& family, size_t length, uint32_t steps) {
  const auto most = static_cast<size_t>(family.short_positions);
  return length > most ? steps : static_cast<uint32_t>(std::min<size_t>(steps, most - length + 1));
}

bool has_ended(const Request& request, const std::vector<int32_t>& words) {
  return std::any_of(words.begin(), words.end(), [&](int32_t word) {
    return word < 0 || std::find(request.ends.begin(), request.ends.end(), word) != request.ends.end();
  });
}

// The generation of some of the prompts.
Request part_of(const Request& whole, const std::vector<size_t>& prompts) {
  Request part = whole;
  part.prompts.clear();
  if (whole.seeds.size() > 1) part.seeds.clear();
  for (const size_t prompt : prompts) {
    part.prompts.push_back(whole.prompts[prompt]);
    if (whole.seeds.size() > 1) part.seeds.push_back(whole.seeds[prompt]);
  }
  return part;
}

// Destinations from one prompt on.
heddle_texts from_prompt(const heddle_texts& texts, const Request& request, size_t prompt) {
  const size_t first = prompt * request.returned;
  heddle_texts found = texts;
  found.ids += first * texts.room;
  found.lengths += first;
  if (found.finishes != nullptr) found.finishes += first;
  if (found.log_probabilities != nullptr) found.log_probabilities += first;
  if (found.scores != nullptr) found.scores += first;
  if (found.token_log_probabilities != nullptr) found.token_log_probabilities += first * texts.room;
  return found;
}

}  // namespace

// Parts of a generation that run together: prompts with the same tables that change after as many tokens. Empty for one run over all.
std::vector<std::vector<size_t>> ranges_of(const Family& family, const Request& request) {
  std::vector<std::vector<size_t>> parts;
  if (family.short_positions == 0) return parts;
  const bool beams = request.way == Way::beams || request.way == Way::beams_diverse || request.way == Way::beams_hf;
  std::map<std::pair<bool, uint32_t>, size_t> known;
  bool crosses = false;
  for (size_t prompt = 0; prompt < request.prompts.size(); ++prompt) {
    const size_t length = request.prompts[prompt].size();
    const bool is_long = length > static_cast<size_t>(family.short_positions);
    const uint32_t limit = limit_of(family, length, request.steps);
    crosses = crosses || limit < request.steps;
    const auto [at, is_new] = known.try_emplace({is_long, limit}, parts.size());
    // Beams that cross go on in states of their own prompt.
    if (is_new || (beams && limit < request.steps)) parts.emplace_back();
    parts[is_new || !beams || limit == request.steps ? at->second : parts.size() - 1].push_back(prompt);
  }
  return parts.size() == 1 && !crosses ? std::vector<std::vector<size_t>>() : parts;
}

int32_t Generator::run_ranges(const std::vector<std::vector<size_t>>& parts, const Request& whole, const heddle_generation& options,
                              const heddle_texts& texts, void* stream, heddle_error* error) {
  if (options.on_step != nullptr && parts.size() > 1)
    return refuse(error, HEDDLE_OPTION,
                  "on_step gets the words of all prompts, but these use different tables of the rotation, or change them at different steps: generate them apart");
  if (texts.ids == nullptr || texts.lengths == nullptr) return refuse(error, HEDDLE_POINTER, "results have no ids or no lengths");
  for (const std::vector<size_t>& part : parts) {
    Request request = part_of(whole, part);
    StepResults results;
    bool stop = false;
    int32_t status = run_range(request, results, options, stop, stream, error);
    if (status == HEDDLE_OK && texts.token_log_probabilities != nullptr && stepper_->result_states.losses < 0)
      return refuse(error, HEDDLE_OPTION, "%s keeps no log-probabilities of tokens: export it with \"logprobs\": true in its config", family_.name);
    const size_t rows = request.prompts.size() * request.width;
    for (size_t i = 0; i < part.size() && status == HEDDLE_OK; ++i) {
      const Request own = part_of(whole, {part[i]});
      StepResults of_prompt = results;
      const size_t first = i * request.width;
      const auto taken = [&](const auto& values, auto& to) {
        to.clear();
        for (size_t row = 0; row < values.size(); row += rows)
          to.insert(to.end(), values.begin() + static_cast<std::ptrdiff_t>(row + first), values.begin() + static_cast<std::ptrdiff_t>(row + first + request.width));
      };
      taken(results.history, of_prompt.history);
      taken(results.parents, of_prompt.parents);
      taken(results.losses, of_prompt.losses);
      taken(results.cumulative, of_prompt.cumulative);
      taken(results.pool_scores, of_prompt.pool_scores);
      taken(results.pool_steps, of_prompt.pool_steps);
      taken(results.pool_rows, of_prompt.pool_rows);
      taken(results.pool_words, of_prompt.pool_words);
      for (int32_t& parent : of_prompt.parents) parent -= static_cast<int32_t>(first);
      for (int32_t& row : of_prompt.pool_rows) row -= static_cast<int32_t>(first);
      status = write_texts(own, of_prompt, from_prompt(texts, whole, part[i]), error);
    }
    if (status != HEDDLE_OK) return status;
    if (stop) break;
  }
  stepper_ = nullptr;
  return HEDDLE_OK;
}

// Runs prompts whose tables change together, first by the tables that they begin with.
int32_t Generator::run_range(Request& request, StepResults& results, const heddle_generation& options, bool& stop, void* stream, heddle_error* error) {
  const auto most = static_cast<size_t>(family_.short_positions);
  const bool beams = request.width > 1 || request.way == Way::beams || request.way == Way::beams_diverse || request.way == Way::beams_hf;
  request.is_long = request.prompts[0].size() > most;
  const uint32_t limit = limit_of(family_, request.prompts[0].size(), request.steps);
  std::vector<bool> over;
  int32_t status = start(request, stream, error);
  if (status == HEDDLE_OK) status = take_steps(limit, options, over, stop, stream, error);
  if (status == HEDDLE_OK) status = fetch_results(results, true, stream, error);
  int32_t done = 0;
  if (status == HEDDLE_OK) status = ended(&done, stream, error);
  if (status != HEDDLE_OK || stop || limit == request.steps || done != 0) return status;
  return beams ? go_on_beams(request, results, options, stop, stream, error) : go_on_texts(request, results, options, over, stop, stream, error);
}

// Texts that have not ended go on together.
int32_t Generator::go_on_texts(const Request& request, StepResults& results, const heddle_generation& options, std::vector<bool>& over, bool& stop,
                               void* stream, heddle_error* error) {
  const size_t rows = request.prompts.size();
  const uint32_t chosen = results.steps;
  std::vector<size_t> going;
  std::vector<std::vector<int32_t>> texts;
  for (size_t row = 0; row < rows; ++row) {
    std::vector<int32_t> words;
    for (uint32_t step = 0; step < chosen; ++step) words.push_back(results.history[step * rows + row]);
    if (has_ended(request, words)) continue;
    going.push_back(row);
    texts.push_back(request.prompts[row]);
    texts.back().insert(texts.back().end(), words.begin(), words.end());
  }
  Request rest = part_of(request, going);
  rest.prompts = std::move(texts);
  rest.chosen = chosen;
  rest.is_long = true;
  rest.shown = going;
  rest.shown_rows = rows;
  over.assign(going.size(), false);
  StepResults later;
  int32_t status = start(rest, stream, error);
  if (status == HEDDLE_OK) status = take_steps(rest.steps, options, over, stop, stream, error);
  if (status == HEDDLE_OK) status = fetch_results(later, false, stream, error);
  if (status != HEDDLE_OK) return status;
  // Ended texts have no more words.
  results.history.resize(later.steps * rows, -1);
  if (!later.losses.empty()) results.losses.resize(later.steps * rows, std::numeric_limits<float>::quiet_NaN());
  for (uint32_t step = chosen; step < later.steps; ++step) {
    for (size_t i = 0; i < going.size(); ++i) {
      results.history[step * rows + going[i]] = later.history[step * going.size() + i];
      if (!later.losses.empty()) results.losses[step * rows + going[i]] = later.losses[step * going.size() + i];
    }
  }
  results.steps = later.steps;
  results.whole = later.whole;
  return HEDDLE_OK;
}

// The beams of a prompt go on with the text of each in its own row.
int32_t Generator::go_on_beams(const Request& request, StepResults& results, const heddle_generation& options, bool& stop, void* stream, heddle_error* error) {
  Request rest = request;
  rest.chosen = results.steps;
  rest.is_long = true;
  std::vector<int32_t> words(results.steps);
  for (uint32_t row = 0; row < request.width; ++row) {
    if (heddle_trace_row(results.history.data(), results.parents.data(), results.steps, request.width, request.width, row, words.data()) != 0)
      return refuse(error, HEDDLE_NUMBERS, "beam %u continues a beam of another prompt", row);
    // As in Node, a beam that chose no word is a search without numbers.
    if (std::any_of(words.begin(), words.end(), [](int32_t word) { return word < 0; }))
      return refuse(error, HEDDLE_NUMBERS, "the logits of beam %u are not numbers, so no word can be chosen", row);
    rest.beam_texts.push_back(request.prompts[0]);
    rest.beam_texts.back().insert(rest.beam_texts.back().end(), words.begin(), words.end());
  }
  int32_t status = start(rest, stream, error);
  if (status != HEDDLE_OK) return status;
  const ResultStates& to = stepper_->result_states;
  const auto put = [&](int32_t state, const auto& values) {
    if (status == HEDDLE_OK && state >= 0 && !values.empty())
      status = copy(states_[static_cast<size_t>(state)], values.data(), values.size() * sizeof values[0], stream, error);
  };
  put(to.finished, results.finished);
  put(to.cumulative, results.cumulative);
  put(to.history, results.history);
  put(to.parents, results.parents);
  put(to.losses, results.losses);
  put(to.pool_scores, results.pool_scores);
  put(to.pool_steps, results.pool_steps);
  put(to.pool_rows, results.pool_rows);
  put(to.pool_words, results.pool_words);
  std::vector<bool> over;
  if (status == HEDDLE_OK) status = take_steps(rest.steps, options, over, stop, stream, error);
  return status == HEDDLE_OK ? fetch_results(results, false, stream, error) : status;
}

int32_t Generator::take_steps(uint32_t limit, const heddle_generation& options, std::vector<bool>& over, bool& stop, void* stream, heddle_error* error) {
  const bool watched = options.on_step != nullptr;
  int32_t done = 0;
  while (done == 0 && !stop && taken_ < limit) {
    int32_t status = advance(watched ? 1 : std::min(steps_at_once, limit - taken_), stream, error);
    if (status == HEDDLE_OK && watched) status = stream_step(options, taken_ - 1, over, stop, stream, error);
    if (status == HEDDLE_OK) status = ended(&done, stream, error);
    if (status != HEDDLE_OK) return status;
  }
  return HEDDLE_OK;
}

int32_t Generator::generate(const heddle_prompts* prompts, const heddle_generation* options, const heddle_texts* texts, void* stream,
                            heddle_error* error) {
  return guarded(error, [&]() -> int32_t {
    stepper_ = nullptr;
    if (prompts == nullptr || options == nullptr) return refuse(error, HEDDLE_INVALID, "prompts or options are null");
    Request request;
    int32_t status = check(family_, *prompts, *options, request, error);
    if (status != HEDDLE_OK) return status;
    const auto ranges = ranges_of(family_, request);
    if (!ranges.empty() && texts == nullptr) return refuse(error, HEDDLE_POINTER, "texts is null");
    if (!ranges.empty()) return run_ranges(ranges, request, *options, *texts, stream, error);
    status = check_range(family_, request, error);
    if (status == HEDDLE_OK) status = start(request, stream, error);
    std::vector<bool> over;
    bool stop = false;
    if (status == HEDDLE_OK) status = take_steps(request.steps, *options, over, stop, stream, error);
    return status == HEDDLE_OK ? collect(texts, stream, error) : status;
  });
}

}  // namespace heddle::exported
