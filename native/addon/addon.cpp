// The module. src/runtime/native.ts declares its exports. It links neither CUDA nor a kernel library, but opens both at run time.
#include "host.hpp"

namespace heddle {

Host::Host(Napi::Env env, const std::string& plugin_path, int32_t ordinal)
    : env_(env), device_(std::make_shared<Device>(plugin_path, ordinal)), worker_(env) {
  napi_add_env_cleanup_hook(env_, on_environment_end, this);
}

Host::~Host() {
  napi_remove_env_cleanup_hook(env_, on_environment_end, this);
  worker_.stop();
}

// Called at the end of the process or the thread, perhaps with work in flight: the current run stops at its next step.
void Host::on_environment_end(void* data) {
  auto* host = static_cast<Host*>(data);
  host->device_->mark_closed();
  host->worker_.stop();
}

namespace {

Napi::Value open_device(const Napi::CallbackInfo& info) {
  return guarded(info.Env(), [&]() -> Napi::Value {
    const std::string path = read_text(info[0], "pluginPath");
    const auto ordinal = static_cast<int32_t>(read_whole(info[1], "ordinal", 0, INT32_MAX));
    return device_face(info.Env(), std::make_shared<Host>(info.Env(), path, ordinal));
  });
}

Napi::Object initialise(Napi::Env env, Napi::Object exports) {
  exports.Set("abiVersion", Napi::Number::New(env, HEDDLE_ABI_VERSION));
  exports.Set("openDevice", Napi::Function::New(env, open_device, "openDevice"));
  return exports;
}

}  // namespace

}  // namespace heddle

static Napi::Object register_addon(Napi::Env env, Napi::Object exports) { return heddle::initialise(env, exports); }

NODE_API_MODULE(heddle, register_addon)
