// Generates texts: states and memory of a generation, its steps, and the reading of results. One generation at a time.
#include "generate.hpp"

#include <algorithm>
#include <cstring>

#include "fail.hpp"

namespace heddle::exported {

namespace {

// Longer than any text: nothing is repeated.
constexpr uint32_t longest_ngram = 1u << 30;

double value_of(Attribute attribute, const Request& request) {
  switch (attribute) {
    case Attribute::max_steps: return request.steps;
    case Attribute::diversity_rate: return static_cast<double>(request.diversity_rate);
    case Attribute::length_penalty: return static_cast<double>(request.length_penalty);
    case Attribute::early_stopping: return request.early_stopping;
    case Attribute::no_repeat_ngram_size: return request.ngram == 0 ? longest_ngram : request.ngram;
  }
  return 0;
}

// The weights of one program, out of those of all.
std::vector<heddle_weight> own(const Model& model, const std::vector<heddle_weight>& weights) {
  std::vector<heddle_weight> found;
  std::copy_if(weights.begin(), weights.end(), std::back_inserter(found), [&](const heddle_weight& weight) { return has_weight(model, weight.name); });
  return found;
}

bool is_long_table(const Family& family, const char* name) {
  const auto is = [&](const LongTable& table) { return std::strcmp(table.of_long, name) == 0; };
  return std::any_of(family.long_tables.begin(), family.long_tables.end(), is);
}

bool known(const Family& family, const char* name) {
  const auto has = [&](const Stepper& stepper) { return has_weight(stepper.model(), name); };
  return has_weight(family.reader.model(), name) || std::any_of(family.steppers.begin(), family.steppers.end(), has) || is_long_table(family, name);
}

// The weights of long texts, by the names that programs have for those of short texts.
std::vector<heddle_weight> of_long_texts(const Family& family, const std::vector<heddle_weight>& weights) {
  std::vector<heddle_weight> found;
  for (heddle_weight weight : weights) {
    bool kept = true;
    for (const LongTable& table : family.long_tables) {
      if (std::strcmp(table.of_short, weight.name) == 0) kept = false;
      if (std::strcmp(table.of_long, weight.name) == 0) weight.name = table.of_short;
    }
    if (kept) found.push_back(weight);
  }
  return found;
}

int32_t state_of(const Model& model, const char* name) {
  for (size_t i = 0; i < model.states.size(); ++i) {
    if (std::strcmp(model.states[i].name, name) == 0) return static_cast<int32_t>(i);
  }
  return -1;
}

}  // namespace

int32_t Generator::Memory::reach(uint64_t wanted, void* stream, heddle_error* error) {
  if (wanted <= bytes) return HEDDLE_OK;
  int32_t status = wait(stream, error);
  if (status == HEDDLE_OK) status = release(data, error);
  data = nullptr;
  bytes = 0;
  if (status == HEDDLE_OK) status = allocate(wanted, &data, error);
  if (status == HEDDLE_OK) bytes = wanted;
  return status;
}

int32_t Generator::create(const Family& family, const heddle_weight* weights, uint32_t count, Generator** generator, heddle_error* error) {
  return guarded(error, [&]() -> int32_t {
    *generator = nullptr;
    for (uint32_t i = 0; i < count; ++i) {
      const char* name = weights[i].name == nullptr ? "without a name" : weights[i].name;
      if (!known(family, name)) return refuse(error, HEDDLE_WEIGHT_UNKNOWN, "%s has no weight %s", family.name, name);
    }
    std::unique_ptr<Generator> made(new Generator(family));
    std::unique_ptr<Backend> backend;
    int32_t status = Backend::open(&backend, error);
    if (status != HEDDLE_OK) return status;
    made->backend_ = std::move(backend);
    const std::vector<heddle_weight> given(weights, weights + count);
    status = made->open(given, made->short_, error);
    if (status == HEDDLE_OK && family.short_positions > 0) status = made->open(of_long_texts(family, given), made->long_, error);
    if (status != HEDDLE_OK) return status;
    *generator = made.release();
    return HEDDLE_OK;
  });
}

int32_t Generator::open(const std::vector<heddle_weight>& weights, Programs& programs, heddle_error* error) {
  const auto opened = [&](const Model& model, std::unique_ptr<Program>& program) {
    const std::vector<heddle_weight> given = own(model, weights);
    Program* made = nullptr;
    const int32_t status = Program::create(model, backend_, given.data(), static_cast<uint32_t>(given.size()), &made, error);
    program.reset(made);
    return status;
  };
  int32_t status = opened(family_.reader.model(), programs.reader);
  for (const Stepper& stepper : family_.steppers) {
    if (status == HEDDLE_OK) status = opened(stepper.model(), programs.steppers.emplace_back());
  }
  return status;
}

Generator::~Generator() {
  heddle_error ignored = {};
  for (void* data : {memory_.data, workspace_.data, inputs_.data}) release(data, &ignored);
}

int32_t Generator::begin(const heddle_prompts* prompts, const heddle_generation* options, void* stream, heddle_error* error) {
  return guarded(error, [&]() -> int32_t {
    stepper_ = nullptr;
    if (prompts == nullptr || options == nullptr) return refuse(error, HEDDLE_INVALID, "prompts or options are null");
    Request request;
    int32_t status = check(family_, *prompts, *options, request, error);
    if (status == HEDDLE_OK) status = check_range(family_, request, error);
    return status == HEDDLE_OK ? start(request, stream, error) : status;
  });
}

// Reads the prompts of a checked generation.
int32_t Generator::start(const Request& request, void* stream, heddle_error* error) {
  stepper_ = nullptr;
  request_ = request;
  sizes_ = sizes_of(family_, request_);
  const Programs& programs = request_.is_long ? long_ : short_;
  reader_ = programs.reader.get();
  for (size_t i = 0; i < family_.steppers.size(); ++i) {
    if (family_.steppers[i].way != request_.way) continue;
    stepper_ = &family_.steppers[i];
    program_ = programs.steppers[i].get();
  }
  int32_t status = prepare(stream, error);
  if (status == HEDDLE_OK) status = read(stream, error);
  if (status != HEDDLE_OK) stepper_ = nullptr;
  return status;
}

// Allocates states, and sets them to their contents before the first step.
int32_t Generator::prepare(void* stream, heddle_error* error) {
  dims_ = sizes_.of(stepper_->dims);
  const auto bound = program_->bind(dims_.data(), error);
  if (bound == nullptr) return error->status;
  int32_t status = memory_.reach(bound->states, stream, error);
  if (status == HEDDLE_OK) status = workspace_.reach(bound->workspace, stream, error);
  if (status == HEDDLE_OK) status = program_->reset(dims_.data(), memory_.data, memory_.bytes, stream, error);
  if (status != HEDDLE_OK) return status;
  const Model& model = stepper_->model();
  states_.clear();
  for (const State& state : model.states) states_.push_back(static_cast<uint8_t*>(memory_.data) + bound->offsets[state.storage]);
  for (const Beginning& beginning : stepper_->beginnings) {
    const uint64_t bytes = bound->bytes[model.states[beginning.state].storage];
    const std::vector<int32_t> values = begin_with(beginning, bytes / sizeof(int32_t), family_, request_, sizes_);
    if (values.size() * sizeof(int32_t) != bytes)
      return refuse(error, HEDDLE_INVALID, "state %s has %llu bytes, it begins with %zu numbers", model.states[beginning.state].name,
                    static_cast<unsigned long long>(bytes), values.size());
    status = copy(states_[beginning.state], values.data(), bytes, stream, error);
    if (status != HEDDLE_OK) return status;
  }
  settings_.clear();
  for (const SetAttribute& set : stepper_->set_attributes) settings_.push_back({set.step, set.attr, value_of(set.attribute, request_)});
  taken_ = request_.chosen;
  if (taken_ == 0) return HEDDLE_OK;
  const auto chosen = static_cast<int32_t>(request_.chosen);
  return copy(states_[static_cast<size_t>(stepper_->result_states.step)], &chosen, sizeof chosen, stream, error);
}

int32_t Generator::read(void* stream, heddle_error* error) {
  const std::vector<Pass> passes = passes_of(family_, request_, sizes_);
  const Model& model = family_.reader.model();
  uint64_t ints = 0, workspace = 0;
  for (const Pass& pass : passes) {
    const auto bound = reader_->bind(pass.sizes.of(family_.reader.dims).data(), error);
    if (bound == nullptr) return error->status;
    workspace = std::max(workspace, bound->workspace);
    ints += (pass.values.size() + 63) / 64 * 64;
  }
  int32_t status = workspace_.reach(workspace, stream, error);
  if (status == HEDDLE_OK) status = inputs_.reach(ints * sizeof(int32_t), stream, error);
  if (status != HEDDLE_OK) return status;
  // Caches and the sources' keys and values are states of both programs.
  std::vector<void*> shared;
  for (const State& state : model.states) {
    const int32_t found = state_of(stepper_->model(), state.name);
    if (found < 0) return refuse(error, HEDDLE_INVALID, "no step has state %s", state.name);
    shared.push_back(states_[static_cast<size_t>(found)]);
  }
  auto* at = static_cast<int32_t*>(inputs_.data);
  for (const Pass& pass : passes) {
    status = copy(at, pass.values.data(), pass.values.size() * sizeof(int32_t), stream, error);
    if (status != HEDDLE_OK) return status;
    std::vector<const void*> inputs;
    for (const size_t first : pass.at) inputs.push_back(at + first);
    const std::vector<int64_t> dims = pass.sizes.of(family_.reader.dims);
    const Run run = {dims.data(), inputs.data(), nullptr, nullptr, 0, workspace_.data, workspace_.bytes, stream, &shared, nullptr};
    status = reader_->run(run, error);
    if (status != HEDDLE_OK) return status;
    at += (pass.values.size() + 63) / 64 * 64;
  }
  return HEDDLE_OK;
}

int32_t Generator::step(void* stream, heddle_error* error) {
  const Run run = {dims_.data(), nullptr, nullptr, memory_.data, memory_.bytes, workspace_.data, workspace_.bytes, stream, nullptr, &settings_};
  return program_->run(run, error);
}

int32_t Generator::advance(uint32_t steps, void* stream, heddle_error* error) {
  if (stepper_ == nullptr) return refuse(error, HEDDLE_ORDER, "no generation of %s has begun", family_.name);
  for (; steps > 0 && taken_ < request_.steps; --steps, ++taken_) {
    const int32_t status = step(stream, error);
    if (status != HEDDLE_OK) return status;
  }
  return HEDDLE_OK;
}

template <class T>
int32_t Generator::fetch(int32_t state, size_t from, size_t count, std::vector<T>& values, void* stream, heddle_error* error) {
  values.resize(count);
  const auto* data = static_cast<const T*>(states_[static_cast<size_t>(state)]) + from;
  const int32_t status = copy(values.data(), data, count * sizeof(T), stream, error);
  return status == HEDDLE_OK ? wait(stream, error) : status;
}

int32_t Generator::ended(int32_t* ended, void* stream, heddle_error* error) {
  return guarded(error, [&]() -> int32_t {
    if (stepper_ == nullptr) return refuse(error, HEDDLE_ORDER, "no generation of %s has begun", family_.name);
    const size_t count = request_.prompts.size() * (request_.way == Way::beams_hf ? 1 : request_.width);
    std::vector<int32_t> finished;
    const int32_t status = fetch(stepper_->result_states.finished, 0, count, finished, stream, error);
    if (status == HEDDLE_OK) *ended = std::all_of(finished.begin(), finished.end(), [](int32_t flag) { return flag != 0; });
    return status;
  });
}

int32_t Generator::fetch_results(StepResults& results, bool carries, void* stream, heddle_error* error) {
  int32_t over = 0;
  int32_t status = ended(&over, stream, error);
  if (status != HEDDLE_OK) return status;
  const size_t rows = request_.prompts.size() * request_.width;
  const size_t searches = request_.way == Way::beams_hf ? request_.prompts.size() : rows;
  const ResultStates& from = stepper_->result_states;
  // The device counts steps, since a graph of the caller may have replayed some.
  std::vector<int32_t> step;
  status = fetch(from.step, 0, 1, step, stream, error);
  if (status != HEDDLE_OK) return status;
  results.steps = static_cast<uint32_t>(std::clamp<int64_t>(step[0], 0, request_.steps));
  results.whole = over != 0 || results.steps == request_.steps;
  const auto get = [&](int32_t state, size_t count, auto& values) {
    if (status == HEDDLE_OK && state >= 0) status = fetch(state, 0, count, values, stream, error);
  };
  get(from.history, results.steps * rows, results.history);
  get(from.parents, results.steps * rows, results.parents);
  get(from.losses, results.steps * rows, results.losses);
  get(from.cumulative, rows, results.cumulative);
  get(from.pool_scores, rows, results.pool_scores);
  get(from.pool_steps, rows, results.pool_steps);
  get(from.pool_rows, rows, results.pool_rows);
  get(from.pool_words, rows, results.pool_words);
  if (carries) get(from.finished, searches, results.finished);
  return status;
}

int32_t Generator::collect(const heddle_texts* texts, void* stream, heddle_error* error) {
  return guarded(error, [&]() -> int32_t {
    if (stepper_ == nullptr) return refuse(error, HEDDLE_ORDER, "no generation of %s has begun", family_.name);
    if (texts == nullptr) return refuse(error, HEDDLE_POINTER, "texts is null");
    if (texts->token_log_probabilities != nullptr && stepper_->result_states.losses < 0)
      return refuse(error, HEDDLE_OPTION, "%s keeps no log-probabilities of tokens: export it with \"logprobs\": true in its config", family_.name);
    StepResults results;
    const int32_t status = fetch_results(results, false, stream, error);
    return status == HEDDLE_OK ? write_texts(request_, results, *texts, error) : status;
  });
}

int32_t Generator::stream_step(const heddle_generation& options, uint32_t at, std::vector<bool>& over, bool& stop, void* stream,
                               heddle_error* error) {
  const size_t rows = request_.prompts.size() * request_.width;
  const ResultStates& from = stepper_->result_states;
  std::vector<int32_t> words, parents;
  int32_t status = fetch(from.history, at * rows, rows, words, stream, error);
  if (status == HEDDLE_OK && from.parents >= 0) status = fetch(from.parents, at * rows, rows, parents, stream, error);
  if (status != HEDDLE_OK) return status;
  over.resize(rows);
  for (size_t row = 0; from.parents < 0 && row < rows; ++row) {
    const bool before = over[row];
    over[row] = before || std::find(request_.ends.begin(), request_.ends.end(), words[row]) != request_.ends.end();
    if (before) words[row] = -1;
  }
  // Texts that have ended by other tables have no row here.
  if (request_.shown_rows > 0) {
    std::vector<int32_t> all(request_.shown_rows, -1);
    for (size_t row = 0; row < rows; ++row) all[request_.shown[row]] = words[row];
    words = std::move(all);
  }
  const heddle_chosen chosen = {at, static_cast<uint32_t>(words.size()), words.data(), parents.empty() ? nullptr : parents.data()};
  stop = options.on_step(options.user, &chosen) != 0;
  return HEDDLE_OK;
}

}  // namespace heddle::exported
