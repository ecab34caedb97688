// Binds an exported program to sizes, and runs it.
#include "program.hpp"

#include <algorithm>
#include <cstring>

#include "fail.hpp"

namespace heddle::exported {

namespace {

constexpr uint64_t state_alignment = 256;
constexpr size_t most_bound = 256;

// Byte pattern of unwritten values: NaN in floats, -1 in integers.
constexpr uint8_t unwritten = 0xff;

// Strides of one operand. A dimension of extent 1 gets the stride of a dense matrix.
void settle(int64_t batch, int64_t first, int64_t second, int64_t* strides) {
  if (batch == 1) strides[0] = 0;
  int64_t& x = strides[1];
  int64_t& y = strides[2];
  if (first == 1) x = 0;
  if (second == 1) y = x == 1 && first > 1 ? first : 1;
  if (first == 1) x = y == 1 ? second : 1;
}

// The kernel to launch instead of the library; null for none. The CPU device uses those of every architecture, as the runtime does.
const Choice* choose(const std::vector<Choice>& choices, const std::string& architecture, int64_t m, int64_t n, int64_t k) {
  const auto found = std::find_if(choices.begin(), choices.end(), [&](const Choice& choice) {
    const bool here = architecture == "simt" || architecture == choice.architecture;
    return here && choice.n == n && choice.k == k && choice.from_rows <= m && m <= choice.to_rows;
  });
  return found == choices.end() ? nullptr : &*found;
}

bool is_placed(const void* data) { return data != nullptr && reinterpret_cast<uintptr_t>(data) % 16 == 0; }

}  // namespace

int32_t Program::create(const Model& model, const heddle_weight* weights, uint32_t count, Program** program, heddle_error* error) {
  return guarded(error, [&] {
    std::unique_ptr<Backend> backend;
    const int32_t status = Backend::open(&backend, error);
    return status == HEDDLE_OK ? create(model, std::move(backend), weights, count, program, error) : status;
  });
}

int32_t Program::create(const Model& model, std::shared_ptr<Backend> backend, const heddle_weight* weights, uint32_t count, Program** program,
                        heddle_error* error) {
  return guarded(error, [&] {
    *program = nullptr;
    std::unique_ptr<Program> made(new Program(model));
    made->backend_ = std::move(backend);
    const int32_t status = made->take(weights, count, error);
    if (status == HEDDLE_OK) *program = made.release();
    return status;
  });
}

Program::~Program() {
  heddle_error ignored = {};
  for (void* memory : owned_) release(memory, &ignored);
}

std::shared_ptr<const Bound> Program::bind(const int64_t* dims, heddle_error* error) {
  std::shared_ptr<const Bound> bound;
  guarded(error, [&]() -> int32_t {
    bound = measure(dims, error);
    return bound == nullptr ? error->status : HEDDLE_OK;
  });
  return bound;
}

std::shared_ptr<const Bound> Program::measure(const int64_t* dims, heddle_error* error) {
  const std::vector<int64_t> key(dims, dims + model_.dims.size());
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = bound_.find(key);
  if (found != bound_.end()) return found->second;
  for (size_t i = 0; i < key.size(); ++i) {
    if (key[i] >= 1 && key[i] <= INT32_MAX) continue;
    refuse(error, HEDDLE_DIMS, "%s: dimension %s is %lld, expected 1 to 2147483647", model_.name, model_.dims[i],
           static_cast<long long>(key[i]));
    return nullptr;
  }
  Measure measured;
  model_.measure(dims, measured);
  for (size_t i = 0; i < measured.most.size(); ++i) {
    const int64_t most = measured.most[i].value;
    if (most == 0 || key[i] <= most) continue;
    refuse(error, HEDDLE_DIMS, "%s: dimension %s is %lld, expected at most %lld at these sizes", model_.name, model_.dims[i],
           static_cast<long long>(key[i]), static_cast<long long>(most));
    return nullptr;
  }
  auto bound = std::make_shared<Bound>();
  Size total = 0;
  for (const Size bytes : measured.bytes) {
    total = total + bytes;
    bound->bytes.push_back(static_cast<uint64_t>(bytes.value));
  }
  for (const Size number : measured.numbers) {
    total = total + number;
    bound->numbers.push_back(number.value);
  }
  if (total.value == Size::overflow) {
    refuse(error, HEDDLE_DIMS, "%s: these dimensions are too large: sizes do not fit 63 bits", model_.name);
    return nullptr;
  }
  bound->offsets.resize(model_.storages.size());
  bound->workspace = place(model_.storages, *bound);
  for (size_t which = 0; which < model_.states.size(); ++which) {
    for (size_t i = 0; i < model_.storages.size(); ++i) {
      if (model_.storages[i].home == Home::state && model_.storages[i].index == which) bound->offsets[i] = bound->states;
    }
    const uint64_t bytes = bound->bytes[model_.states[which].storage];
    bound->states += (bytes + state_alignment - 1) / state_alignment * state_alignment;
  }
  for (const Step& step : model_.steps) bound->attrs.push_back(step.attrs);
  for (const SizedAttr& sized : model_.attrs) {
    bound->attrs[sized.step][sized.attr] = static_cast<double>(bound->numbers[sized.number]);
  }
  if (bound_.size() >= most_bound) bound_.clear();
  bound_[key] = bound;
  return bound;
}

heddle_constancy Program::constancy(size_t at, const Bound& bound, const std::vector<heddle_slice>& slices, uint32_t storage) const {
  // Weights, and inputs after a fence: any other memory may have been written by a launch that is not complete.
  const Home home = model_.storages[storage].home;
  if (home == Home::weight || (model_.fenced && home == Home::input)) return HEDDLE_CONSTANT;
  if (at == 0 || model_.steps[at - 1].kind != Kind::kernel) return HEDDLE_CHANGING;
  // The previous kernel may write any of its buffers. A kernel without elements is not launched, so another one precedes.
  const Step& before = model_.steps[at - 1];
  const int64_t* extents = bound.numbers.data() + before.at;
  if (std::any_of(extents, extents + before.count, [](int64_t extent) { return extent <= 0; })) return HEDDLE_CHANGING;
  const auto begin = [&](uint32_t which) { return reinterpret_cast<uintptr_t>(slices[which].data); };
  const auto meets = [&](uint32_t other) {
    return begin(other) < begin(storage) + slices[storage].bytes && begin(storage) < begin(other) + slices[other].bytes;
  };
  return std::any_of(before.storages.begin(), before.storages.end(), meets) ? HEDDLE_CHANGING : HEDDLE_SETTLED;
}

int32_t Program::enqueue(size_t at, const Bound& bound, const std::vector<heddle_slice>& slices, const Run& run, void* stream,
                         heddle_error* error) {
  const Step& step = model_.steps[at];
  const int64_t* numbers = bound.numbers.data() + step.at;
  const auto slice = [&](uint32_t which) { return slices[step.storages[which]]; };
  if (step.kind == Kind::copy) return copy(slice(1).data, slice(0).data, slice(1).bytes, stream, error);
  if (step.kind == Kind::kernel) return launch(at, step.launch, numbers, step.count, bound, slices, run, stream, error);
  return multiply(at, bound, slices, run, stream, error);
}

int32_t Program::launch(size_t at, heddle_launcher launcher, const int64_t* dims, uint32_t count, const Bound& bound,
                        const std::vector<heddle_slice>& slices, const Run& run, void* stream, heddle_error* error) {
  const Step& step = model_.steps[at];
  std::vector<heddle_slice> buffers;
  std::vector<uint8_t> constants;
  for (const uint32_t storage : step.storages) {
    buffers.push_back(slices[storage]);
    constants.push_back(static_cast<uint8_t>(constancy(at, bound, slices, storage)));
  }
  std::vector<double> attrs = bound.attrs[at];
  if (run.settings != nullptr) {
    for (const Setting& setting : *run.settings) {
      if (setting.step == at) attrs[setting.attr] = setting.value;
    }
  }
  const heddle_launch launch = {backend_->queue(stream),
                                buffers.data(),
                                dims,
                                attrs.data(),
                                static_cast<uint32_t>(buffers.size()),
                                count,
                                static_cast<uint32_t>(step.attrs.size()),
                                constants.data()};
  return launcher(&launch, error);
}

int32_t Program::multiply(size_t at, const Bound& bound, const std::vector<heddle_slice>& slices, const Run& run, void* stream,
                          heddle_error* error) {
  const Step& step = model_.steps[at];
  const int64_t* numbers = bound.numbers.data() + step.at;
  int64_t a[3], b[3], out[3];
  std::copy(numbers + 4, numbers + 7, a);
  std::copy(numbers + 7, numbers + 10, b);
  std::copy(numbers + 10, numbers + 13, out);
  const int64_t batch = numbers[0], m = numbers[1], n = numbers[2], k = numbers[3];
  settle(batch, m, k, a);
  settle(batch, n, k, b);
  settle(batch, m, n, out);
  const bool plain = batch == 1 && a[1] == k && b[1] == k && out[1] == n && a[2] == 1 && b[2] == 1 && out[2] == 1;
  const Choice* choice = plain ? choose(step.choices, backend_->architecture(), m, n, k) : nullptr;
  if (choice != nullptr) return launch(at, choice->launch, numbers + 1, 3, bound, slices, run, stream, error);
  const auto slice = [&](uint32_t which) { return slices[step.storages[which]]; };
  const auto added = [&](int32_t which) { return which < 0 ? heddle_slice{} : slices[static_cast<size_t>(which)]; };
  heddle_matmul matmul = {};
  matmul.a = slice(0);
  matmul.b = slice(1);
  matmul.out = slice(2);
  matmul.bias = added(step.bias);
  matmul.residual = added(step.residual);
  matmul.dtype_a = step.dtypes[0];
  matmul.dtype_b = step.dtypes[1];
  matmul.dtype_out = step.dtypes[2];
  matmul.relu = step.relu;
  matmul.batch = batch;
  matmul.m = m;
  matmul.n = n;
  matmul.k = k;
  matmul.a_batch = a[0], matmul.a_m = a[1], matmul.a_k = a[2];
  matmul.b_batch = b[0], matmul.b_n = b[1], matmul.b_k = b[2];
  matmul.out_batch = out[0], matmul.out_m = out[1], matmul.out_n = out[2];
  return backend_->matmul(matmul, stream, error);
}

int32_t Program::run(const Run& run, heddle_error* error) {
  return guarded(error, [&]() -> int32_t {
    const std::shared_ptr<const Bound> bound = bind(run.dims, error);
    if (bound == nullptr) return error->status;
    if (bound->workspace > run.workspace_bytes) {
      return refuse(error, HEDDLE_WORKSPACE, "%s needs a workspace of %llu bytes at these sizes, got %llu", model_.name,
                    static_cast<unsigned long long>(bound->workspace), static_cast<unsigned long long>(run.workspace_bytes));
    }
    for (size_t i = 0; i < model_.inputs.size(); ++i) {
      if (!is_placed(run.inputs[i])) {
        return refuse(error, HEDDLE_POINTER, "input %s lies at %p, expected a multiple of 16", model_.inputs[i], run.inputs[i]);
      }
    }
    for (size_t i = 0; i < model_.outputs.size(); ++i) {
      if (!is_placed(run.outputs[i])) {
        return refuse(error, HEDDLE_POINTER, "output %s lies at %p, expected a multiple of 16", model_.outputs[i], run.outputs[i]);
      }
    }
    if (bound->workspace > 0 && !is_placed(run.workspace)) {
      return refuse(error, HEDDLE_POINTER, "the workspace lies at %p, expected a multiple of 16", run.workspace);
    }
    const int32_t kept = run.shared != nullptr ? HEDDLE_OK : check_states(*bound, run.states, run.states_bytes, error);
    if (kept != HEDDLE_OK) return kept;
    std::vector<heddle_slice> slices;
    for (size_t i = 0; i < model_.storages.size(); ++i) {
      const Storage& storage = model_.storages[i];
      // Slices have no const; kernels declare which arguments they write.
      void* data = nullptr;
      switch (storage.home) {
        case Home::arena: data = static_cast<uint8_t*>(run.workspace) + bound->offsets[i]; break;
        case Home::weight: data = const_cast<void*>(weights_[storage.index]); break;
        case Home::state:
          data = run.shared != nullptr ? (*run.shared)[storage.index] : static_cast<uint8_t*>(run.states) + bound->offsets[i];
          break;
        case Home::input: data = const_cast<void*>(run.inputs[storage.index]); break;
        case Home::output: data = run.outputs[storage.index]; break;
      }
      slices.push_back({data, bound->bytes[i]});
    }
    const Launching launching;
    return backend_->run(
        key_of(run), run.stream, [&](void* stream, heddle_error* failed) { return enqueue(*bound, slices, run, stream, failed); }, error);
  });
}

RunKey Program::key_of(const Run& run) const {
  RunKey key(run.dims, run.dims + model_.dims.size());
  // Several programs may share a device.
  key.push_back(static_cast<int64_t>(reinterpret_cast<intptr_t>(this)));
  const auto add = [&](const void* data) { key.push_back(static_cast<int64_t>(reinterpret_cast<intptr_t>(data))); };
  std::for_each(run.inputs, run.inputs + model_.inputs.size(), add);
  std::for_each(run.outputs, run.outputs + model_.outputs.size(), add);
  add(run.states);
  add(run.workspace);
  if (run.shared != nullptr) std::for_each(run.shared->begin(), run.shared->end(), add);
  if (run.settings != nullptr) {
    for (const Setting& setting : *run.settings) {
      int64_t bits = 0;
      std::memcpy(&bits, &setting.value, sizeof bits);
      key.push_back(bits);
    }
  }
  return key;
}

int32_t Program::enqueue(const Bound& bound, const std::vector<heddle_slice>& slices, const Run& run, void* stream, heddle_error* error) {
  if (model_.fenced) {
    const int32_t status = backend_->fence(stream, error);
    if (status != HEDDLE_OK) return status;
  }
  for (size_t i = 0; i < model_.steps.size(); ++i) {
    const int32_t status = enqueue(i, bound, slices, run, stream, error);
    if (status == HEDDLE_OK) continue;
    const heddle_error before = *error;
    return refuse(error, status, "%s: %.900s", model_.steps[i].label, before.message);
  }
  for (const Moved& moved : model_.moved) {
    const heddle_slice from = slices[moved.storage];
    const int32_t status = copy(run.outputs[moved.output], from.data, from.bytes, stream, error);
    if (status != HEDDLE_OK) return status;
  }
  return HEDDLE_OK;
}

int32_t Program::check_states(const Bound& bound, const void* states, uint64_t bytes, heddle_error* error) const {
  if (bound.states > bytes) {
    return refuse(error, HEDDLE_WORKSPACE, "the states of %s take %llu bytes at these sizes, got %llu", model_.name,
                  static_cast<unsigned long long>(bound.states), static_cast<unsigned long long>(bytes));
  }
  if (bound.states == 0 || is_placed(states)) return HEDDLE_OK;
  return refuse(error, HEDDLE_POINTER, "the states lie at %p, expected a multiple of 16", states);
}

int32_t Program::reset(const int64_t* dims, void* states, uint64_t states_bytes, void* stream, heddle_error* error) {
  return guarded(error, [&]() -> int32_t {
    const std::shared_ptr<const Bound> bound = bind(dims, error);
    if (bound == nullptr) return error->status;
    const int32_t kept = check_states(*bound, states, states_bytes, error);
    if (kept != HEDDLE_OK) return kept;
    for (const State& state : model_.states) {
      uint8_t* data = static_cast<uint8_t*>(states) + bound->offsets[state.storage];
      const int32_t status = fill(data, state.cleared ? 0 : unwritten, bound->bytes[state.storage], stream, error);
      if (status != HEDDLE_OK) return status;
    }
    return HEDDLE_OK;
  });
}

uint8_t* Program::state(const int64_t* dims, void* states, uint64_t states_bytes, uint32_t which, uint64_t bytes, heddle_error* error) {
  const std::shared_ptr<const Bound> bound = bind(dims, error);
  if (bound == nullptr) return nullptr;
  if (which >= model_.states.size()) {
    refuse(error, HEDDLE_INVALID, "%s has %zu states, got state number %u", model_.name, model_.states.size(), which);
    return nullptr;
  }
  const State& state = model_.states[which];
  if (bound->bytes[state.storage] != bytes) {
    refuse(error, HEDDLE_INVALID, "state %s has %llu bytes at these sizes, got %llu", state.name,
           static_cast<unsigned long long>(bound->bytes[state.storage]), static_cast<unsigned long long>(bytes));
    return nullptr;
  }
  if (check_states(*bound, states, states_bytes, error) != HEDDLE_OK) return nullptr;
  return static_cast<uint8_t*>(states) + bound->offsets[state.storage];
}

}  // namespace heddle::exported
