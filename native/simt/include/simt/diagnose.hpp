// Diagnosis of a block that cannot continue: turns the state of its fibers into one line. Reached only when every remaining thread waits.
#ifndef HEDDLE_SIMT_DIAGNOSE_HPP
#define HEDDLE_SIMT_DIAGNOSE_HPP

#include "worker.hpp"

namespace heddle::simt {

/// A line of text that is truncated at its capacity.
struct Line {
  char text[640] = {};
  size_t length = 0;

  __attribute__((format(printf, 2, 3))) void add(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int written = vsnprintf(text + length, sizeof text - length, format, arguments);
    va_end(arguments);
    length = written < 0 || length + written >= sizeof text ? sizeof text - 1 : length + written;
  }
};

__attribute__((noinline, cold)) inline void Worker::diagnose(uint32_t first, uint32_t count) {
  const Fiber* end = fibers + first + count;
  const Fiber* leader = nullptr;  // a thread at a barrier if there is one, else any that waits
  for (const Fiber* fiber = fibers + first; fiber != end; fiber++) {
    if (fiber->done || (leader != nullptr && fiber->meeting != Meeting::barrier)) continue;
    if (leader == nullptr || leader->meeting != Meeting::barrier) leader = fiber;
  }
  Line line;
  if (leader->meeting == Meeting::barrier) {
    uint32_t here = 0, exited = 0, elsewhere = 0, in_warp = 0;
    const Fiber* other = nullptr;
    for (const Fiber* fiber = fibers + first; fiber != end; fiber++) {
      if (fiber->done) {
        exited++;
      } else if (fiber->meeting == Meeting::barrier && fiber->site == leader->site) {
        here++;
      } else {
        (fiber->meeting == Meeting::barrier ? elsewhere : in_warp)++;
        if (other == nullptr) other = fiber;
      }
    }
    line.add("barrier divergence in block (%u,%u,%u): %u of %u threads wait at %s:%d", blockIdx.x, blockIdx.y, blockIdx.z, here,
             count, leader->site.name(), leader->site.line);
    if (exited > 0) line.add(", %u exited", exited);
    if (elsewhere > 0) line.add(", %u wait at another barrier", elsewhere);
    if (in_warp > 0) line.add(", %u wait for their warp", in_warp);
    if (other != nullptr) line.add(" (%s:%d)", other->site.name(), other->site.line);
  } else {
    const uint32_t warp = static_cast<uint32_t>(leader - fibers) / kLanes;
    uint32_t here = 0, exited = 0, elsewhere = 0, absent = 0;
    for (uint32_t lane = 0; lane < kLanes; lane++) {
      const uint32_t thread = warp * kLanes + lane, bit = 1u << lane;
      if (thread >= threads) {
        absent |= bit;
        continue;
      }
      const Fiber& fiber = fibers[thread];
      const bool same = fiber.meeting == leader->meeting && fiber.site == leader->site && fiber.mask == leader->mask;
      (fiber.done ? exited : same ? here : elsewhere) |= bit;
    }
    line.add("warp divergence in block (%u,%u,%u), warp %u: lanes 0x%08x wait at %s:%d for lanes 0x%08x", blockIdx.x, blockIdx.y,
             blockIdx.z, warp, here, leader->site.name(), leader->site.line, leader->mask);
    if ((exited & leader->mask) != 0) line.add(", lanes 0x%08x have exited", exited & leader->mask);
    if ((elsewhere & leader->mask) != 0) line.add(", lanes 0x%08x wait elsewhere", elsewhere & leader->mask);
    if ((absent & leader->mask) != 0) line.add(", lanes 0x%08x do not exist", absent & leader->mask);
  }
  fail(&error, HEDDLE_FAULT, "kernel %s: %s", kernel, line.text);
  faulted = true;
}

}  // namespace heddle::simt

#endif
