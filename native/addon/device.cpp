// Opens plugins and kernel libraries, and tracks a device's allocations.
#include "device.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>

#include "failure.hpp"

namespace heddle {

namespace {

// Opens a shared object and returns one of its symbols.
void* open_symbol(const std::string& path, const char* symbol, const char* what) {
  void* object = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (object == nullptr) throw Failure{"UNAVAILABLE", std::string("cannot load the ") + what + ": " + dlerror()};
  void* found = dlsym(object, symbol);
  if (found == nullptr) {
    dlclose(object);
    invalid(path + " is not a " + what + ": it does not export " + symbol);
  }
  return found;
}

void check_abi(const std::string& path, uint32_t version) {
  if (version == HEDDLE_ABI_VERSION) return;
  throw Failure{"UNAVAILABLE", path + " was built for interface version " + std::to_string(version) + ", this addon needs " +
                                   std::to_string(HEDDLE_ABI_VERSION)};
}

}  // namespace

Device::Device(const std::string& plugin_path, int32_t ordinal) {
  const auto plugin =
      reinterpret_cast<heddle_device_plugin_fn>(open_symbol(plugin_path, "heddle_device_plugin", "heddle device plugin"));
  api_ = plugin();
  check_abi(plugin_path, api_->abi_version);
  facts_ = reinterpret_cast<heddle_device_facts_fn>(
      open_symbol(plugin_path, "heddle_device_facts", "heddle device plugin of this version"));
  fences_ = reinterpret_cast<heddle_device_fences_fn>(
      open_symbol(plugin_path, "heddle_device_fences", "heddle device plugin of this version"))();
  algorithms_ = reinterpret_cast<heddle_device_algorithms_fn>(
      open_symbol(plugin_path, "heddle_device_algorithms", "heddle device plugin of this version"))();
  heddle_error error = {};
  require(api_->open(ordinal, &device_, &error), error);
  const int32_t status = api_->queue_create(device_, &queue_, &error);
  if (status != HEDDLE_OK) api_->close(device_);
  require(status, error);
}

Device::~Device() { shut(); }

void Device::check_open() const {
  if (closed_) throw Failure{"CLOSED", "the device was closed"};
}

void Device::shut() {
  const std::lock_guard<std::mutex> lock(mutex_);
  closed_ = true;
  if (device_ == nullptr) return;
  heddle_error ignored = {};
  for (heddle_graph* graph : graphs_) api_->graph_destroy(graph);
  for (void* data : allocations_) api_->release(device_, data, &ignored);
  graphs_.clear();
  allocations_.clear();
  api_->queue_destroy(queue_);
  api_->close(device_);
  queue_ = nullptr;
  device_ = nullptr;
}

heddle_device_info Device::info() {
  const std::lock_guard<std::mutex> lock(mutex_);
  check_open();
  heddle_device_info info = {};
  heddle_error error = {};
  require(api_->info(device_, &info, &error), error);
  return info;
}

heddle_facts Device::facts() {
  const std::lock_guard<std::mutex> lock(mutex_);
  check_open();
  heddle_facts facts = {};
  heddle_error error = {};
  require(facts_(device_, &facts, &error), error);
  return facts;
}

void* Device::allocate(uint64_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  check_open();
  void* data = nullptr;
  heddle_error error = {};
  require(api_->allocate(device_, bytes, &data, &error), error);
  allocations_.insert(data);
  return data;
}

void Device::free(void* data) {
  const std::lock_guard<std::mutex> lock(mutex_);
  heddle_error ignored = {};
  if (allocations_.erase(data) != 0) api_->release(device_, data, &ignored);
}

void Device::adopt(heddle_graph* graph) {
  const std::lock_guard<std::mutex> lock(mutex_);
  graphs_.insert(graph);
}

void Device::free(heddle_graph* graph) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (graphs_.erase(graph) != 0) api_->graph_destroy(graph);
}

Fence::Fence(std::shared_ptr<Device> device) : device_(std::move(device)) {
  heddle_error error = {};
  require(device_->fences().create(device_->queue(), &fence_, &error), error);
}

bool Fence::done() const {
  int32_t done = 0;
  heddle_error error = {};
  require(device_->fences().query(fence_, &done, &error), error);
  return done != 0;
}

Library::Library(std::shared_ptr<Device> device, const std::string& path) : device_(std::move(device)) {
  const auto library =
      reinterpret_cast<heddle_kernel_library_fn>(open_symbol(path, "heddle_kernel_library", "heddle kernel library"));
  info_ = library();
  check_abi(path, info_->abi_version);
  if (strcmp(info_->target, device_->api().kind) != 0) {
    invalid(path + " holds kernels for " + info_->target + ", the device is " + device_->api().kind);
  }
}

const heddle_kernel* Library::find(const std::string& key) const {
  const heddle_kernel* end = info_->kernels + info_->kernel_count;
  const auto before = [](const heddle_kernel& kernel, const std::string& wanted) { return kernel.key < wanted; };
  const heddle_kernel* found = std::lower_bound(info_->kernels, end, key, before);
  return found != end && found->key == key ? found : nullptr;
}

}  // namespace heddle
