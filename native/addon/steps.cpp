// Reads the steps of a program: every value is checked here once, so that running a step checks nothing.
#include <algorithm>
#include <array>

#include "constants.hpp"
#include "host.hpp"

namespace heddle {

namespace {

constexpr uint32_t most_steps = 1u << 20;
constexpr uint32_t most_arguments = 256;
constexpr std::array<uint64_t, 11> dtype_bytes = {4, 2, 2, 4, 1, 1, 1, 1, 2, 4, 8};

template <class Value, class Read>
std::vector<Value> read_list(const Napi::Value& value, const std::string& what, uint32_t count, Read read) {
  const Napi::Array array = read_array(value, what, most_arguments);
  if (array.Length() != count) {
    invalid(what + ": expected " + std::to_string(count) + " entries, got " + std::to_string(array.Length()));
  }
  std::vector<Value> values;
  for (uint32_t i = 0; i < count; ++i) values.push_back(read(array.Get(i), what + "[" + std::to_string(i) + "]"));
  return values;
}

std::vector<int64_t> read_whole_list(const Napi::Value& value, const std::string& what, uint32_t count) {
  return read_list<int64_t>(value, what, count, [](const Napi::Value& entry, const std::string& name) {
    return static_cast<int64_t>(read_whole(entry, name, 0, max_safe_integer));
  });
}

Step read_kernel(const Napi::Object& object, const std::string& label, const Device& device, ConstantFinder& finder) {
  const auto face = unwrap<LibraryFace>(object.Get("library"), label + ".library", "a kernel library of this addon");
  if (face->library->device() != &device) invalid(label + ".library: it was loaded for another device");
  const std::string key = read_text(object.Get("key"), label + ".key");
  const heddle_kernel* kernel = face->library->find(key);
  if (kernel == nullptr) invalid(label + ".key: the kernel library has no kernel \"" + key + '"');

  auto slices = read_list<Slice>(object.Get("buffers"), label + ".buffers", kernel->buffer_count,
                                 [&](const Napi::Value& entry, const std::string& name) {
                                   return read_slice(entry, name, device);
                                 });
  auto dims = read_whole_list(object.Get("dims"), label + ".dims", kernel->dim_count);
  auto attrs = read_list<double>(object.Get("attrs"), label + ".attrs", kernel->attr_count, read_number);
  std::vector<heddle_slice> raw;
  for (const Slice& slice : slices) raw.push_back(slice.raw());
  finder.begin_step(std::all_of(dims.begin(), dims.end(), [](int64_t extent) { return extent > 0; }));
  // A library without access letters may write every buffer.
  for (size_t i = 0; i < slices.size(); ++i) {
    if (kernel->access == nullptr || kernel->access[i] != 'r') finder.write(slices[i]);
  }
  std::vector<bool> changing(slices.size(), false);
  if (object.Has("changing")) {
    changing = read_list<bool>(object.Get("changing"), label + ".changing", kernel->buffer_count,
                               [](const Napi::Value& entry, const std::string& name) { return read_whole(entry, name, 0, 1) == 1; });
  }
  auto constants = finder.launch(slices, std::move(changing));

  const auto enqueue = [library = face->library, launcher = kernel->launch, slices = std::move(slices), raw = std::move(raw),
                        dims = std::move(dims), attrs = std::move(attrs),
                        constants = std::move(constants)](const Device& on, heddle_error* error) {
    const heddle_launch launch = {on.api().queue_native(on.queue()),
                                  raw.data(),
                                  dims.data(),
                                  attrs.data(),
                                  static_cast<uint32_t>(raw.size()),
                                  static_cast<uint32_t>(dims.size()),
                                  static_cast<uint32_t>(attrs.size()),
                                  constants->data()};
    return launcher(&launch, error);
  };
  return {label, enqueue};
}

// A matmul operand: its range of memory, and the strides of its (batch, rows, columns) elements.
struct Operand {
  const char* name;
  const Slice& slice;
  uint64_t element_bytes;
  std::array<int64_t, 3> extents;
  std::vector<int64_t> strides;
};

void check_operand(const Operand& operand, const std::string& label) {
  const std::string what = label + "." + operand.name;
  __extension__ using Wide = __int128;
  Wide last = 0;
  bool empty = false;
  for (size_t i = 0; i < 3; ++i) {
    empty = empty || operand.extents[i] == 0;
    last += static_cast<Wide>(operand.extents[i] - 1) * operand.strides[i];
  }
  if (operand.strides[1] != 1 && operand.strides[2] != 1) invalid(what + ": one of its two inner strides must be 1");
  if (operand.slice.offset % operand.element_bytes != 0) {
    invalid(what + ": offset " + std::to_string(operand.slice.offset) + " is not a multiple of its element's " +
            std::to_string(operand.element_bytes) + " bytes");
  }
  if (!empty && (last + 1) * operand.element_bytes > operand.slice.bytes) {
    invalid(what + ": its extents and strides reach beyond its " + std::to_string(operand.slice.bytes) + " bytes");
  }
}

// Reads `{ bias?, residual?, relu }` into a matmul whose other fields are set; returns the slices that it refers to.
std::vector<Slice> read_epilogue(const Napi::Value& value, const std::string& label, const Device& device, heddle_matmul* p) {
  std::vector<Slice> slices;
  if (value.IsUndefined()) return slices;
  const Napi::Object object = read_object(value, label + ".epilogue");
  p->relu = read_boolean(object.Get("relu"), label + ".relu");
  const bool to_float = p->dtype_out == HEDDLE_F32 || p->dtype_out == HEDDLE_F16 || p->dtype_out == HEDDLE_BF16;
  if (!to_float) invalid(label + ".epilogue: the result is not a float");
  const uint64_t element = dtype_bytes[p->dtype_out];
  const auto read = [&](const char* name, const std::array<int64_t, 3>& extents, const std::vector<int64_t>& strides) {
    const Napi::Value entry = object.Get(name);
    if (entry.IsUndefined()) return heddle_slice{};
    slices.push_back(read_slice(entry, label + "." + name, device));
    check_operand({name, slices.back(), element, extents, strides}, label);
    return slices.back().raw();
  };
  p->bias = read("bias", {1, 1, p->n}, {p->n, p->n, 1});
  p->residual = read("residual", {p->batch, p->m, p->n}, {p->out_batch, p->out_m, p->out_n});
  return slices;
}

// Reads the bytes of an algorithm; empty if omitted.
std::vector<uint8_t> read_algorithm(const Napi::Value& value, const std::string& label) {
  if (value.IsUndefined()) return {};
  const Bytes bytes = read_bytes(value, label + ".algorithm");
  if (bytes.size != HEDDLE_ALGORITHM_BYTES) {
    invalid(label + ".algorithm: expected " + std::to_string(HEDDLE_ALGORITHM_BYTES) + " bytes, got " + std::to_string(bytes.size));
  }
  return std::vector<uint8_t>(bytes.data, bytes.data + bytes.size);
}

MatmulStep read_matmul(const Napi::Object& object, const std::string& label, const Device& device) {
  const Slice a = read_slice(object.Get("a"), label + ".a", device);
  const Slice b = read_slice(object.Get("b"), label + ".b", device);
  const Slice out = read_slice(object.Get("out"), label + ".out", device);
  const auto dtypes =
      read_list<int32_t>(object.Get("dtypes"), label + ".dtypes", 3, [](const Napi::Value& entry, const std::string& name) {
        return static_cast<int32_t>(read_whole(entry, name, 0, dtype_bytes.size() - 1));
      });
  const bool allow_tf32 = read_boolean(object.Get("allowTf32"), label + ".allowTf32");
  const std::vector<int64_t> extents = read_whole_list(object.Get("extents"), label + ".extents", 4);
  const auto strides = read_list<std::vector<int64_t>>(
      object.Get("strides"), label + ".strides", 3,
      [](const Napi::Value& entry, const std::string& name) { return read_whole_list(entry, name, 3); });

  const int64_t batch = extents[0], m = extents[1], n = extents[2], k = extents[3];
  check_operand({"a", a, dtype_bytes[dtypes[0]], {batch, m, k}, strides[0]}, label);
  check_operand({"b", b, dtype_bytes[dtypes[1]], {batch, n, k}, strides[1]}, label);
  check_operand({"out", out, dtype_bytes[dtypes[2]], {batch, m, n}, strides[2]}, label);

  heddle_matmul matmul = {};
  matmul.a = a.raw();
  matmul.b = b.raw();
  matmul.out = out.raw();
  matmul.dtype_a = dtypes[0];
  matmul.dtype_b = dtypes[1];
  matmul.dtype_out = dtypes[2];
  matmul.allow_tf32 = allow_tf32;
  matmul.batch = batch;
  matmul.m = m;
  matmul.n = n;
  matmul.k = k;
  matmul.a_batch = strides[0][0];
  matmul.a_m = strides[0][1];
  matmul.a_k = strides[0][2];
  matmul.b_batch = strides[1][0];
  matmul.b_n = strides[1][1];
  matmul.b_k = strides[1][2];
  matmul.out_batch = strides[2][0];
  matmul.out_m = strides[2][1];
  matmul.out_n = strides[2][2];
  std::vector<Slice> slices = read_epilogue(object.Get("epilogue"), label, device, &matmul);
  slices.insert(slices.end(), {a, b, out});
  return {label, matmul, std::move(slices), read_algorithm(object.Get("algorithm"), label)};
}

Step matmul_step(MatmulStep read, ConstantFinder& finder) {
  finder.begin_step(false);
  finder.write(read.slices.back());
  const std::string label = read.label;
  const auto enqueue = [read = std::move(read)](const Device& on, heddle_error* error) {
    if (read.algorithm.empty()) return on.api().matmul(on.queue(), &read.matmul, error);
    return on.algorithms().matmul(on.queue(), &read.matmul, read.algorithm.data(), error);
  };
  return {label, enqueue};
}

Step read_fill(const Napi::Object& object, const std::string& label, const Device& device, ConstantFinder& finder) {
  const Slice target = read_slice(object.Get("target"), label + ".target", device);
  finder.begin_step(false);
  finder.write(target);
  const auto value = static_cast<uint8_t>(read_whole(object.Get("value"), label + ".value", 0, UINT8_MAX));
  const auto enqueue = [target, value](const Device& on, heddle_error* error) {
    return on.api().fill(on.queue(), target.raw().data, value, target.bytes, error);
  };
  return {label, enqueue};
}

Step read_copy(const Napi::Object& object, const std::string& label, const Device& device, ConstantFinder& finder) {
  const Slice from = read_slice(object.Get("from"), label + ".from", device);
  const Slice to = read_slice(object.Get("to"), label + ".to", device);
  finder.begin_step(false);
  finder.write(to);
  if (from.bytes != to.bytes) {
    invalid(label + ": copies " + std::to_string(from.bytes) + " bytes to " + std::to_string(to.bytes) + " bytes");
  }
  const bool apart = from.offset + from.bytes <= to.offset || to.offset + to.bytes <= from.offset;
  if (from.memory == to.memory && from.bytes != 0 && !apart) invalid(label + ": from and to overlap");
  const auto enqueue = [from, to](const Device& on, heddle_error* error) {
    return on.api().copy(on.queue(), to.raw().data, from.raw().data, from.bytes, error);
  };
  return {label, enqueue};
}

Step read_step(const Napi::Value& value, const std::string& what, const Device& device, ConstantFinder& finder) {
  const Napi::Object object = read_object(value, what);
  const std::string label = read_text(object.Get("label"), what + ".label");
  const std::string kind = read_text(object.Get("kind"), label + ".kind");
  if (kind == "kernel") return read_kernel(object, label, device, finder);
  if (kind == "matmul") return matmul_step(read_matmul(object, label, device), finder);
  if (kind == "fill") return read_fill(object, label, device, finder);
  if (kind == "copy") return read_copy(object, label, device, finder);
  invalid(label + ".kind: expected kernel, matmul, fill or copy, got \"" + kind + '"');
}

}  // namespace

MatmulStep read_matmul_step(const Napi::Value& value, const std::string& what, const Device& device) {
  const Napi::Object object = read_object(value, what);
  return read_matmul(object, read_text(object.Get("label"), what + ".label"), device);
}

std::vector<Step> read_steps(const Napi::Value& value, const Device& device) {
  const Napi::Array array = read_array(value, "steps", most_steps);
  const uint32_t count = array.Length();
  std::vector<Step> steps;
  ConstantFinder finder;
  for (uint32_t i = 0; i < count; ++i) {
    const Napi::HandleScope scope(value.Env());
    steps.push_back(read_step(array.Get(i), "steps[" + std::to_string(i) + "]", device, finder));
  }
  finder.find();
  // The last getter may have closed the device.
  device.check_open();
  return steps;
}

}  // namespace heddle
