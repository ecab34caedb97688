// Facts of the CPU behind the simt device: the size of its last-level cache. Its bandwidth and clock are only known from a measurement.
#include "heddle/facts.h"

#include <unistd.h>

#include <initializer_list>

extern "C" __attribute__((visibility("default"))) int32_t heddle_device_facts(heddle_device*, heddle_facts* facts, heddle_error*) {
  *facts = {};
#ifdef _SC_LEVEL3_CACHE_SIZE
  for (const int level : {_SC_LEVEL3_CACHE_SIZE, _SC_LEVEL2_CACHE_SIZE}) {
    const long bytes = sysconf(level);
    if (bytes <= 0) continue;
    facts->cache_bytes = static_cast<uint64_t>(bytes);
    break;
  }
#endif
  return HEDDLE_OK;
}
