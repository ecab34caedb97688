// The plugin's only exported symbol: the table of functions that abi.h describes.
#include "device.hpp"

extern "C" __attribute__((visibility("default"))) const heddle_device_api* heddle_device_plugin(void) {
  using namespace heddle;
  static const heddle_device_api api = {
      HEDDLE_ABI_VERSION, "cuda",        device_open,   device_close,  device_info,   device_allocate, device_release,
      queue_create,       queue_destroy, queue_native,  queue_wait,    queue_copy_in, queue_copy_out,  queue_copy,
      queue_fill,         queue_matmul,  graph_begin,   graph_end,     graph_launch,  graph_destroy,   event_create,
      event_record,       event_elapsed, event_destroy,
  };
  return &api;
}
