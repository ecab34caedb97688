// An exported program: its steps and storages are tables that the export wrote, its sizes a function of dimensions. Binding to sizes happens once per
// set of sizes. A run resolves pointers and enqueues, and allocates no device memory.
#ifndef HEDDLE_EXPORT_PROGRAM_HPP
#define HEDDLE_EXPORT_PROGRAM_HPP

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backend.hpp"

namespace heddle::exported {

// A number of bytes or elements. A result outside of int64 becomes `overflow`, which persists.
struct Size {
  static constexpr int64_t overflow = INT64_MAX;
  int64_t value = 0;

  constexpr Size(int64_t size = 0) : value(size) {}
  friend Size operator+(Size a, Size b) {
    int64_t sum = 0;
    const bool lost = a.value == overflow || b.value == overflow || __builtin_add_overflow(a.value, b.value, &sum);
    return lost ? Size(overflow) : Size(sum);
  }
  friend Size operator*(Size a, Size b) {
    int64_t product = 0;
    const bool lost = a.value == overflow || b.value == overflow || __builtin_mul_overflow(a.value, b.value, &product);
    return lost ? Size(overflow) : Size(product);
  }
  friend Size operator-(Size a, Size b) {
    int64_t difference = 0;
    const bool lost = a.value == overflow || b.value == overflow || __builtin_sub_overflow(a.value, b.value, &difference);
    return lost ? Size(overflow) : Size(difference);
  }
  friend Size operator/(Size a, Size b) {
    return a.value == overflow || b.value == overflow || b.value == 0 ? Size(overflow) : Size(a.value / b.value);
  }
  friend Size operator%(Size a, Size b) {
    return a.value == overflow || b.value == overflow || b.value == 0 ? Size(overflow) : Size(a.value % b.value);
  }
  friend bool operator<(Size a, Size b) { return a.value < b.value; }
  friend bool operator>(Size a, Size b) { return a.value > b.value; }
};

// Location of a value. `index` is the number of the weight, state, input or output.
enum class Home { arena, weight, state, input, output };

struct Storage {
  Home home;
  uint32_t index;
  int32_t first, last;  // steps during which it holds a value
};

enum class Kind { kernel, matmul, copy };

// A kernel that replaces a library matmul, where it was measured to be faster: for one matrix of weights, [n, k], and some numbers of rows.
struct Choice {
  heddle_launcher launch;
  const char* architecture;
  int64_t n, k, from_rows, to_rows;
};

struct Step {
  Kind kind;
  const char* label;
  heddle_launcher launch;          // of a kernel
  std::vector<uint32_t> storages;  // of a kernel its buffers; of a matmul a, b and out; of a copy source and destination
  std::vector<double> attrs;
  uint32_t at, count;                    // its numbers: a kernel's dimensions, or 4 extents and 9 strides of a matmul
  std::vector<int32_t> dtypes;           // of a matmul
  int32_t bias, residual, relu;          // of a matmul: storages, or -1
  std::vector<Choice> choices;           // of a matmul: the first that fits replaces the library
};

// An attribute whose value depends on the sizes.
struct SizedAttr {
  uint32_t step, attr, number;
};

struct Tensor {
  std::string name;
  int32_t dtype;
  std::vector<int64_t> shape;
};

// A weight: given as a whole, or as parts that are concatenated.
struct Weight {
  Tensor whole;
  uint64_t bytes;
  std::vector<Tensor> parts;
};

struct State {
  const char* name;
  uint32_t storage;
  bool cleared;  // starts as zeros
};

// An output whose value lies elsewhere, and is copied after the last step.
struct Moved {
  uint32_t output, storage;
};

// Sizes computed for a set of dimensions.
struct Measure {
  std::vector<Size> bytes;    // of each storage
  std::vector<Size> numbers;  // of all steps
  std::vector<Size> most;     // upper bounds of dimensions; one per dimension, 0 for none
};

struct Model {
  const char* name;
  std::vector<const char*> dims;
  std::vector<Weight> weights;
  std::vector<const char*> inputs, outputs;
  std::vector<State> states;
  std::vector<Storage> storages;
  std::vector<Step> steps;
  std::vector<SizedAttr> attrs;
  std::vector<Moved> moved;
  // Kernels read inputs as constants: a run begins with a fence.
  bool fenced;
  void (*measure)(const int64_t* dims, Measure& measured);
};

// A model at one set of sizes.
struct Bound {
  std::vector<uint64_t> bytes, offsets;  // of storages: in the workspace, or among the states
  std::vector<int64_t> numbers;
  std::vector<std::vector<double>> attrs;  // of each step
  uint64_t workspace = 0, states = 0;
};

// An attribute that a run sets.
struct Setting {
  uint32_t step, attr;
  double value;
};

struct Run {
  const int64_t* dims;
  const void* const* inputs;
  void* const* outputs;
  void* states;
  uint64_t states_bytes;
  void* workspace;
  uint64_t workspace_bytes;
  void* stream;
  // For programs that share memory: the address of each state, instead of `states`.
  const std::vector<void*>* shared = nullptr;
  const std::vector<Setting>* settings = nullptr;
};

class Program {
 public:
  static int32_t create(const Model& model, const heddle_weight* weights, uint32_t count, Program** program, heddle_error* error);
  // Creates a program on a shared device; other programs may share its weights.
  static int32_t create(const Model& model, std::shared_ptr<Backend> backend, const heddle_weight* weights, uint32_t count, Program** program,
                        heddle_error* error);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // Sizes of a set of dimensions; null with the error filled if they are invalid.
  std::shared_ptr<const Bound> bind(const int64_t* dims, heddle_error* error);
  int32_t run(const Run& run, heddle_error* error);
  int32_t reset(const int64_t* dims, void* states, uint64_t states_bytes, void* stream, heddle_error* error);
  // Address of a state; null with the error filled if `bytes` differs from its size.
  uint8_t* state(const int64_t* dims, void* states, uint64_t states_bytes, uint32_t which, uint64_t bytes, heddle_error* error);

 private:
  explicit Program(const Model& model) : model_(model) {}
  std::shared_ptr<const Bound> measure(const int64_t* dims, heddle_error* error);
  int32_t take(const heddle_weight* weights, uint32_t count, heddle_error* error);
  int32_t stack(const Weight& weight, const heddle_weight* given, uint32_t count, const void** data, heddle_error* error);
  int32_t check_states(const Bound& bound, const void* states, uint64_t bytes, heddle_error* error) const;
  // Constancy of a storage while step `at` waits or runs.
  heddle_constancy constancy(size_t at, const Bound& bound, const std::vector<heddle_slice>& slices, uint32_t storage) const;
  RunKey key_of(const Run& run) const;
  // Enqueues one step, or a whole run.
  int32_t enqueue(size_t at, const Bound& bound, const std::vector<heddle_slice>& slices, const Run& run, void* stream, heddle_error* error);
  int32_t launch(size_t at, heddle_launcher launcher, const int64_t* dims, uint32_t count, const Bound& bound,
                 const std::vector<heddle_slice>& slices, const Run& run, void* stream, heddle_error* error);
  int32_t multiply(size_t at, const Bound& bound, const std::vector<heddle_slice>& slices, const Run& run, void* stream, heddle_error* error);
  int32_t enqueue(const Bound& bound, const std::vector<heddle_slice>& slices, const Run& run, void* stream, heddle_error* error);

  const Model& model_;
  std::shared_ptr<Backend> backend_;
  std::vector<const void*> weights_;
  std::vector<void*> owned_;
  std::mutex mutex_;  // guards the members below
  std::map<std::vector<int64_t>, std::shared_ptr<const Bound>> bound_;
};

// True if a model has a weight with a name, as a whole or as a part.
bool has_weight(const Model& model, const char* name);

// Places storages in the workspace so that those with disjoint lifetimes share memory; returns the size of the workspace.
uint64_t place(const std::vector<Storage>& storages, Bound& bound);

}  // namespace heddle::exported

#endif
