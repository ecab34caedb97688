// Checks a caller's options against the model and the programs of an export.
#include <algorithm>
#include <cmath>

#include "fail.hpp"
#include "generate.hpp"

namespace heddle::exported {

namespace {

constexpr uint32_t usual_tokens = 128, usual_chunk = 2048, most_beams = 64, most_ranked = 64;
constexpr uint32_t most_repeated = 1u << 30;
constexpr float least_factor = 1e-6f, largest_factor = 1e6f;
// Limit on the exponent bits of a length to the power of its penalty.
constexpr double most_power_bits = 96;

int32_t check_prompts(const Family& family, const heddle_prompts& given, Request& request, heddle_error* error) {
  if (given.count == 0 || given.ids == nullptr || given.lengths == nullptr) return refuse(error, HEDDLE_PROMPT, "there are no prompts");
  const int32_t* ids = given.ids;
  for (uint32_t i = 0; i < given.count; ++i) {
    const uint32_t length = given.lengths[i];
    if (length == 0) return refuse(error, HEDDLE_PROMPT, "prompt %u has no tokens", i);
    if (length > static_cast<uint32_t>(family.positions))
      return refuse(error, HEDDLE_PROMPT, "prompt %u has %u tokens, the model has %d positions", i, length, family.positions);
    for (uint32_t at = 0; at < length; ++at) {
      if (ids[at] >= 0 && ids[at] < family.vocab) continue;
      return refuse(error, HEDDLE_PROMPT, "token %u of prompt %u is %d, expected 0 to %d", at, i, ids[at], family.vocab - 1);
    }
    request.prompts.emplace_back(ids, ids + length);
    ids += length;
  }
  return HEDDLE_OK;
}

int32_t check_ends(const Family& family, const heddle_generation& given, Request& request, heddle_error* error) {
  request.ends = given.end_ids == nullptr ? family.ends : std::vector<int32_t>(given.end_ids, given.end_ids + given.end_count);
  if (given.end_ids == nullptr && given.end_count != 0) return refuse(error, HEDDLE_OPTION, "end_count is %u, and end_ids is null", given.end_count);
  for (const int32_t id : request.ends) {
    if (id < 0 || id >= family.vocab) return refuse(error, HEDDLE_OPTION, "end id %d, expected 0 to %d", id, family.vocab - 1);
  }
  if (request.ends.empty() && given.max_new_tokens == 0)
    return refuse(error, HEDDLE_OPTION, "nothing ends a text: there are no end ids, and max_new_tokens is 0");
  return HEDDLE_OK;
}

int32_t check_length(const Family& family, uint32_t wanted, Request& request, heddle_error* error) {
  size_t longest = 0;
  for (const auto& prompt : request.prompts) longest = std::max(longest, prompt.size());
  const int64_t room = family.positions - (family.sources ? 0 : static_cast<int64_t>(longest));
  request.steps = wanted != 0 ? wanted : static_cast<uint32_t>(std::min<int64_t>(usual_tokens, std::max<int64_t>(room, 1)));
  if (request.steps <= room) return HEDDLE_OK;
  return refuse(error, HEDDLE_PROMPT, "a text of %zu tokens may get %u more, expected at most %lld of the model's %d positions", longest,
                request.steps, static_cast<long long>(std::max<int64_t>(room, 0)), family.positions);
}

// The first given option that does not go with a choice; null if there is none.
const char* draws(const heddle_generation& given) {
  if (given.temperature != 0) return "temperature";
  if (given.top_k != 0) return "top_k";
  if (given.top_p != 0) return "top_p";
  if (given.min_p != 0) return "min_p";
  return given.seeds != nullptr || given.seed_count != 0 ? "seeds" : nullptr;
}

const char* searches(const heddle_generation& given) {
  if (given.beams > 1) return "beams";
  if (given.returned > 1) return "returned";
  if (given.rule != HEDDLE_PLAIN) return "rule";
  if (given.diversity_rate != 0) return "diversity_rate";
  if (given.length_penalty != 0) return "length_penalty";
  return given.early_stopping != HEDDLE_STOP_LIKELY ? "early_stopping" : nullptr;
}

int32_t check_draws(const Family& family, const heddle_generation& given, Request& request, heddle_error* error) {
  request.temperature = given.temperature == 0 ? 1 : given.temperature;
  if (!(request.temperature >= least_factor && request.temperature <= largest_factor))
    return refuse(error, HEDDLE_OPTION, "temperature is %g, expected 1e-6 to 1e6", static_cast<double>(given.temperature));
  request.top_p = given.top_p == 0 ? 1 : given.top_p;
  request.min_p = given.min_p;
  if (!(request.top_p > 0 && request.top_p <= 1)) {
    return refuse(error, HEDDLE_OPTION, "top_p is %g, expected 0 to 1", static_cast<double>(given.top_p));
  }
  if (!(request.min_p >= 0 && request.min_p <= 1)) {
    return refuse(error, HEDDLE_OPTION, "min_p is %g, expected 0 to 1", static_cast<double>(given.min_p));
  }
  request.top_k = given.top_k;
  if (given.top_k > static_cast<uint32_t>(family.vocab))
    return refuse(error, HEDDLE_OPTION, "top_k is %u, expected at most the %d words of the model", given.top_k, family.vocab);
  if (given.top_k > family.most_top_k && given.top_k <= most_ranked)
    return refuse(error, HEDDLE_OPTION, "top_k is %u, the programs of this export rank %u: export with a larger topK", given.top_k, family.most_top_k);
  request.seeds.assign(1, 0);
  if (given.seeds != nullptr) request.seeds.assign(given.seeds, given.seeds + given.seed_count);
  if (request.seeds.size() != 1 && request.seeds.size() != request.prompts.size())
    return refuse(error, HEDDLE_OPTION, "there are %zu seeds, expected one, or one for each of %zu prompts", request.seeds.size(),
                  request.prompts.size());
  const bool narrowed = request.top_k != 0 || request.top_p != 1 || request.min_p != 0;
  request.way = request.top_k != 0 && request.top_k <= most_ranked ? Way::sample_top : narrowed && !family.sources ? Way::sample_narrowed : Way::sample;
  return HEDDLE_OK;
}

int32_t check_beams(const Family& family, const heddle_generation& given, Request& request, heddle_error* error) {
  request.width = std::max(given.beams, 1u);
  request.returned = std::max(given.returned, 1u);
  const uint32_t most = std::min({most_beams, static_cast<uint32_t>(family.vocab) / 2, family.most_beams});
  if (request.width > most)
    return refuse(error, HEDDLE_OPTION, "%u beams, expected at most %u: of an export with more, or half of the vocabulary", request.width, most);
  if (request.returned > request.width) return refuse(error, HEDDLE_OPTION, "%u texts are returned of %u beams", request.returned, request.width);
  if (given.rule != HEDDLE_PLAIN && given.rule != HEDDLE_HF) return refuse(error, HEDDLE_OPTION, "rule is %d, expected 0 or 1", given.rule);
  const bool hf = given.rule == HEDDLE_HF;
  if (!hf && (given.length_penalty != 0 || given.early_stopping != HEDDLE_STOP_LIKELY))
    return refuse(error, HEDDLE_OPTION, "length_penalty and early_stopping apply to the HF rule only");
  if (hf && given.diversity_rate != 0) return refuse(error, HEDDLE_OPTION, "diversity_rate applies to the plain rule only");
  const size_t candidates = std::max<size_t>(2, 1 + std::max<size_t>(request.ends.size(), 1)) * request.width;
  if (hf && candidates > family.most_candidates)
    return refuse(error, HEDDLE_OPTION, "%u beams of the HF rule and %zu end ids need %zu candidates, this export has %u", request.width,
                  request.ends.size(), candidates, family.most_candidates);
  if (!(std::abs(given.diversity_rate) <= largest_factor))
    return refuse(error, HEDDLE_OPTION, "diversity_rate is %g, expected -1e6 to 1e6", static_cast<double>(given.diversity_rate));
  const double steepest = std::floor(most_power_bits / std::log2(request.steps + 1.0));
  if (!(std::abs(given.length_penalty) <= steepest))
    return refuse(error, HEDDLE_OPTION, "length_penalty is %g, expected -%g to %g", static_cast<double>(given.length_penalty), steepest, steepest);
  if (given.early_stopping < HEDDLE_STOP_LIKELY || given.early_stopping > HEDDLE_STOP_NEVER)
    return refuse(error, HEDDLE_OPTION, "early_stopping is %d, expected 0, 1 or 2", given.early_stopping);
  request.diversity_rate = given.diversity_rate;
  request.length_penalty = given.length_penalty;
  request.early_stopping = given.early_stopping;
  request.way = hf ? Way::beams_hf : given.diversity_rate == 0 ? Way::beams : Way::beams_diverse;
  return HEDDLE_OK;
}

// Logits processors, each of which needs a part of the program.
int32_t check_processors(const Family& family, const heddle_generation& given, Request& request, heddle_error* error) {
  request.penalty = given.repetition_penalty == 0 ? 1 : given.repetition_penalty;
  if (!(request.penalty >= least_factor && request.penalty <= largest_factor))
    return refuse(error, HEDDLE_OPTION, "repetition_penalty is %g, expected 1e-6 to 1e6", static_cast<double>(given.repetition_penalty));
  request.ngram = given.no_repeat_ngram_size;
  if (request.ngram > most_repeated)
    return refuse(error, HEDDLE_OPTION, "no_repeat_ngram_size is %u, expected at most %u", request.ngram, most_repeated);
  request.least = given.min_new_tokens;
  if (request.least > request.steps)
    return refuse(error, HEDDLE_OPTION, "min_new_tokens is %u, expected at most the %u tokens of a text", request.least, request.steps);
  if (given.forced_last == nullptr && given.forced_last_count != 0)
    return refuse(error, HEDDLE_OPTION, "forced_last_count is %u, and forced_last is null", given.forced_last_count);
  if (given.forced_last != nullptr) request.forced_last.assign(given.forced_last, given.forced_last + given.forced_last_count);
  if (given.forced_first != nullptr) request.forced_first = *given.forced_first;
  std::vector<int32_t> forced = request.forced_last;
  if (given.forced_first != nullptr) forced.push_back(request.forced_first);
  for (const int32_t id : forced) {
    if (id < 0 || id >= family.vocab) return refuse(error, HEDDLE_OPTION, "forced id %d, expected 0 to %d", id, family.vocab - 1);
  }
  return HEDDLE_OK;
}

// The first processor of a request that a program does not have; null if it has all.
const char* lacking(const Stepper& stepper, const Request& request) {
  const auto begins = [&](Begin how) {
    return std::any_of(stepper.beginnings.begin(), stepper.beginnings.end(), [&](const Beginning& each) { return each.how == how; });
  };
  if (request.penalty != 1 && !begins(Begin::penalty)) return "repetition_penalty needs \"penalised\"";
  if (request.ngram != 0 && !begins(Begin::text)) return "no_repeat_ngram_size needs \"ngrams\"";
  if (request.least != 0 && !begins(Begin::minimum)) return "min_new_tokens needs \"minimum\"";
  if ((request.forced_first >= 0 || !request.forced_last.empty()) && !begins(Begin::forced_first)) return "forced words need \"forced\"";
  return nullptr;
}

}  // namespace

int32_t check(const Family& family, const heddle_prompts& prompts, const heddle_generation& options, Request& request, heddle_error* error) {
  int32_t status = check_prompts(family, prompts, request, error);
  if (status == HEDDLE_OK) status = check_ends(family, options, request, error);
  if (status == HEDDLE_OK) status = check_length(family, options.max_new_tokens, request, error);
  if (status != HEDDLE_OK) return status;
  request.chunk = options.chunk == 0 ? usual_chunk : options.chunk;
  if (options.choice < HEDDLE_GREEDY || options.choice > HEDDLE_BEAMS)
    return refuse(error, HEDDLE_OPTION, "choice is %d, expected 0, 1 or 2", options.choice);
  const char* wrong = options.choice == HEDDLE_SAMPLE ? searches(options) : options.choice == HEDDLE_BEAMS ? draws(options) : nullptr;
  if (options.choice == HEDDLE_GREEDY) wrong = draws(options) != nullptr ? draws(options) : searches(options);
  if (wrong != nullptr) return refuse(error, HEDDLE_OPTION, "%s does not go with choice %d", wrong, options.choice);
  if (options.choice == HEDDLE_SAMPLE) status = check_draws(family, options, request, error);
  if (options.choice == HEDDLE_BEAMS) status = check_beams(family, options, request, error);
  if (status != HEDDLE_OK) return status;
  status = check_processors(family, options, request, error);
  if (status != HEDDLE_OK) return status;
  const auto of = [&](const Stepper& stepper) { return stepper.way == request.way; };
  const auto found = std::find_if(family.steppers.begin(), family.steppers.end(), of);
  if (found != family.steppers.end()) {
    const char* processor = lacking(*found, request);
    if (processor == nullptr) return HEDDLE_OK;
    return refuse(error, HEDDLE_OPTION, "%s in the processors of this export: export with it", processor);
  }
  return refuse(error, HEDDLE_OPTION, "this export has no program for this choice of words: export with it");
}

int32_t check_range(const Family& family, Request& request, heddle_error* error) {
  if (family.short_positions == 0) return HEDDLE_OK;
  const auto most = static_cast<size_t>(family.short_positions);
  const auto is_long = [&](const std::vector<int32_t>& prompt) { return prompt.size() > most; };
  request.is_long = is_long(request.prompts[0]);
  for (size_t i = 0; i < request.prompts.size(); ++i) {
    const size_t length = request.prompts[i].size();
    if (is_long(request.prompts[i]) != request.is_long)
      return refuse(error, HEDDLE_PROMPT, "prompts 0 and %zu use different tables of the rotation, since one has more than %zu tokens: generate them apart, or whole by generate",
                    i, most);
    // A token is chosen from those before it.
    if (!request.is_long && request.steps > most - length + 1)
      return refuse(error, HEDDLE_PROMPT,
                    "prompt %zu has %zu tokens, and %u more reach the tables for texts of more than %zu: take at most %zu steps, or let generate go on",
                    i, length, request.steps, most, most - length + 1);
  }
  return HEDDLE_OK;
}

}  // namespace heddle::exported
