// A generator: the programs of one way to generate texts, on one device, over the same weights and states. Its tables are written by the export: the
// sizes that a program takes, the contents of its states before the first step, and the attributes that a generation sets.
#ifndef HEDDLE_EXPORT_GENERATE_HPP
#define HEDDLE_EXPORT_GENERATE_HPP

#include <memory>
#include <vector>

#include "heddle/generate.h"
#include "program.hpp"

namespace heddle::exported {

// Quantities that dimensions count.
enum class Quantity { prompts, width, rows, places, steps, source, ends, forced_ends, pass_tokens, pass_sequences, pass_longest };

// Inputs of the program that reads prompts: for a source its ids and its length; for a pass over prompts the places of its tokens.
enum class Input { sources, source_lengths, ids, places, sequences, positions, starts, lengths, first, slots, writers };

// Contents of a state before the first step.
enum class Begin {
  fill,        // `value` everywhere
  first_beam,  // 0 of the first beam of a prompt, `value` of the others
  table,       // the row whose cache holds each place of a row's past
  words,       // input of the first step
  behind,      // tokens before that word
  longest,     // the largest of these
  lengths,     // of sources
  ends,
  banned,
  limit,
  temperature,
  top_k,
  top_p,
  min_p,
  seeds_low,
  seeds_high,
  minimum,  // tokens before an end id
  penalty,
  seen,  // flags of the words of a text
  text,  // its words so far
  forced_first,
  forced_last
};

struct Beginning {
  uint32_t state;
  Begin how;
  bool integer;
  double value;
};

// Attributes that a generation sets.
enum class Attribute { max_steps, diversity_rate, length_penalty, early_stopping, no_repeat_ngram_size };

struct SetAttribute {
  Attribute attribute;
  uint32_t step, attr;
};

enum class Way { greedy, sample, sample_narrowed, sample_top, beams, beams_diverse, beams_hf };

// States that results are read from; -1 if a program has none.
struct ResultStates {
  int32_t step, finished, history, parents, cumulative, pool_scores, pool_steps, pool_rows, pool_words, losses;
};

// A program of one step.
struct Stepper {
  Way way;
  const Model& (*model)();
  std::vector<Quantity> dims;
  std::vector<Beginning> beginnings;
  std::vector<SetAttribute> set_attributes;
  ResultStates result_states;
};

// The program that reads sources, or passes over prompts.
struct Reader {
  const Model& (*model)();
  std::vector<Quantity> dims;
  std::vector<Input> inputs;
};

// A weight of short texts, and that of long texts in its place.
struct LongTable {
  const char *of_short, *of_long;
};

struct Family {
  const char* name;
  bool sources;  // sources are read whole, and texts are generated anew; false: prompts are continued
  int32_t vocab, positions, start, pad;
  std::vector<int32_t> ends, banned;
  uint32_t most_top_k, most_beams, most_candidates;
  Reader reader;
  std::vector<Stepper> steppers;
  // Texts beyond these positions use other tables of the rotation; 0: all use the same.
  int32_t short_positions;
  std::vector<LongTable> long_tables;
};

// A checked generation: the caller's options with defaults filled in.
struct Request {
  Way way = Way::greedy;
  uint32_t steps = 0, width = 1, returned = 1, top_k = 0, chunk = 0;
  float temperature = 1, top_p = 1, min_p = 0, diversity_rate = 0, length_penalty = 0;
  int32_t early_stopping = 0;
  float penalty = 1;
  uint32_t ngram = 0, least = 0;
  int32_t forced_first = -1;  // -1: free
  std::vector<int32_t> forced_last;
  std::vector<uint64_t> seeds;
  std::vector<int32_t> ends;
  std::vector<std::vector<int32_t>> prompts;
  bool is_long = false;  // its texts use the tables of long texts
  // Of texts that go on by other tables: the number of their words so far, which their prompts hold; or the text of each beam of the one prompt.
  uint32_t chosen = 0;
  std::vector<std::vector<int32_t>> beam_texts;
  // Rows of a step that on_step gets, and the place of each row among them; 0: the rows of the generation.
  size_t shown_rows = 0;
  std::vector<size_t> shown;
};

// @returns HEDDLE_OK, or a status with the reason why the prompts or the options are refused
int32_t check(const Family& family, const heddle_prompts& prompts, const heddle_generation& options, Request& request, heddle_error* error);

// Expects texts of one range of positions, which they do not leave.
int32_t check_range(const Family& family, Request& request, heddle_error* error);

// Parts of a generation whose texts use the same tables and leave them together; none if there is one, which stays.
std::vector<std::vector<size_t>> ranges_of(const Family& family, const Request& request);

// Sizes of a generation: those of its rows, and of the current pass.
struct Sizes {
  int64_t prompts = 0, width = 0, places = 0, steps = 0, source = 0, ends = 0, forced_ends = 0;
  int64_t pass_tokens = 0, pass_sequences = 0, pass_longest = 0;
  std::vector<int64_t> of(const std::vector<Quantity>& dims) const;
};

Sizes sizes_of(const Family& family, const Request& request);

// The `count` elements of a state before the first step; floats as their bits.
std::vector<int32_t> begin_with(const Beginning& beginning, size_t count, const Family& family, const Request& request, const Sizes& sizes);

// One run of the program that reads prompts: its sizes, and its concatenated inputs, each at a multiple of 16 bytes.
struct Pass {
  Sizes sizes;
  std::vector<int32_t> values;
  std::vector<size_t> at;
};

std::vector<Pass> passes_of(const Family& family, const Request& request, const Sizes& sizes);

// Results of the steps, on the host.
struct StepResults {
  uint32_t steps = 0;
  bool whole = false;  // all steps were taken, or every row has ended
  std::vector<int32_t> history, parents, pool_steps, pool_rows, pool_words;
  std::vector<float> cumulative, pool_scores;
  std::vector<float> losses;  // of the words of the history, if the program keeps them
  std::vector<int32_t> finished;  // of a search that goes on by other tables
};

int32_t write_texts(const Request& request, const StepResults& results, const heddle_texts& texts, heddle_error* error);

class Generator {
 public:
  static int32_t create(const Family& family, const heddle_weight* weights, uint32_t count, Generator** generator, heddle_error* error);
  ~Generator();
  Generator(const Generator&) = delete;
  Generator& operator=(const Generator&) = delete;

  int32_t begin(const heddle_prompts* prompts, const heddle_generation* options, void* stream, heddle_error* error);
  int32_t advance(uint32_t steps, void* stream, heddle_error* error);
  int32_t ended(int32_t* ended, void* stream, heddle_error* error);
  int32_t collect(const heddle_texts* texts, void* stream, heddle_error* error);
  int32_t generate(const heddle_prompts* prompts, const heddle_generation* options, const heddle_texts* texts, void* stream, heddle_error* error);

 private:
  // Device memory that grows.
  struct Memory {
    void* data = nullptr;
    uint64_t bytes = 0;
    int32_t reach(uint64_t wanted, void* stream, heddle_error* error);
  };
  explicit Generator(const Family& family) : family_(family) {}
  int32_t start(const Request& request, void* stream, heddle_error* error);
  int32_t take_steps(uint32_t limit, const heddle_generation& options, std::vector<bool>& over, bool& stop, void* stream, heddle_error* error);
  int32_t fetch_results(StepResults& results, bool carries, void* stream, heddle_error* error);
  int32_t run_ranges(const std::vector<std::vector<size_t>>& parts, const Request& whole, const heddle_generation& options, const heddle_texts& texts,
                     void* stream, heddle_error* error);
  int32_t run_range(Request& request, StepResults& results, const heddle_generation& options, bool& stop, void* stream, heddle_error* error);
  int32_t go_on_texts(const Request& request, StepResults& results, const heddle_generation& options, std::vector<bool>& over, bool& stop, void* stream,
                      heddle_error* error);
  int32_t go_on_beams(const Request& request, StepResults& results, const heddle_generation& options, bool& stop, void* stream, heddle_error* error);
  int32_t prepare(void* stream, heddle_error* error);
  int32_t read(void* stream, heddle_error* error);
  int32_t step(void* stream, heddle_error* error);
  int32_t stream_step(const heddle_generation& options, uint32_t at, std::vector<bool>& over, bool& stop, void* stream, heddle_error* error);
  template <class T>
  int32_t fetch(int32_t state, size_t from, size_t count, std::vector<T>& values, void* stream, heddle_error* error);

  const Family& family_;
  std::shared_ptr<Backend> backend_;
  // The programs over the weights of texts of one range.
  struct Programs {
    std::unique_ptr<Program> reader;
    std::vector<std::unique_ptr<Program>> steppers;
  };
  int32_t open(const std::vector<heddle_weight>& weights, Programs& programs, heddle_error* error);
  Programs short_, long_;
  // Of the current generation.
  const Stepper* stepper_ = nullptr;
  Program* program_ = nullptr;
  Program* reader_ = nullptr;
  Request request_;
  Sizes sizes_;
  std::vector<int64_t> dims_;
  std::vector<Setting> settings_;
  std::vector<void*> states_;  // of the stepper
  uint32_t taken_ = 0;
  Memory memory_, workspace_, inputs_;
};

}  // namespace heddle::exported

#endif
