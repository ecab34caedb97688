// setmaxnreg as a check of the registers that a block's warpgroups set; and the checks at the end of a thread.
#ifndef HEDDLE_SIMT_REGISTERS_HPP
#define HEDDLE_SIMT_REGISTERS_HPP

#include "meetings.hpp"
#include "warpgroups.hpp"

namespace heddle::simt {

/// Registers of a thread when a block starts that has a multiprocessor for itself.
inline uint32_t registers_at_launch(uint32_t threads) {
  const uint32_t share = 65536 / threads / 8 * 8;
  return share < 248 ? share : 248;
}

/// Refuses registers of all warpgroups that are more than the block has.
inline void check_registers(const RegisterState& state, uint32_t warpgroups) {
  const uint32_t each = registers_at_launch(current->threads);
  uint32_t all = 0;
  for (uint32_t i = 0; i < warpgroups; i++) {
    if (state.calls[i] % kWarpgroup != 0) {
      current->fault("setmaxnreg at %s:%d is run by %u threads of a warpgroup", state.last.name(), state.last.line, state.calls[i] % kWarpgroup);
    }
    all += state.calls[i] == 0 ? each : state.set[i];
  }
  if (all <= each * warpgroups) return;
  current->fault("warpgroups set %u registers for their threads at %s:%d, of %u of the block", all, state.last.name(), state.last.line, each * warpgroups);
}

inline void set_registers(uint32_t registers, bool grows, Site site) {
  RegisterState& state = cluster_of(site).registers[current->rank];
  const uint32_t group = current->running / kWarpgroup, warpgroups = current->threads / kWarpgroup;
  if (current->threads % kWarpgroup != 0 || warpgroups > RegisterState::kMostWarpgroups) {
    current->fault("setmaxnreg at %s:%d in a block that is not made of warpgroups", site.name(), site.line);
  }
  const bool is_first = state.calls[group] % kWarpgroup == 0;
  const uint32_t before = state.calls[group] == 0 ? registers_at_launch(current->threads) : state.set[group];
  const bool is_right = is_first ? (grows ? before <= registers : registers <= before) : registers == before;
  if (registers % 8 != 0 || registers < 24 || registers > 256 || !is_right) {
    current->fault("setmaxnreg at %s:%d sets %u registers, after %u", site.name(), site.line, registers, before);
  }
  state.set[group] = registers;
  state.calls[group]++;
  state.last = site;
  bool is_last = true;
  for (uint32_t i = 0; i < warpgroups; i++) is_last = is_last && state.calls[i] > 0 && state.calls[i] % kWarpgroup == 0;
  if (is_last) check_registers(state, warpgroups);
}

/// Ends a thread: nothing of it may be in flight.
inline void end_thread(Worker& block) {
  Cluster& cluster = *block.cluster;
  const Warpgroup* const group = cluster.warpgroups[block.rank][block.running / kWarpgroup];
  if (group != nullptr) {
    for (const SumsInFlight& sums : group->threads[block.running % kWarpgroup].sums) {
      if (sums.place != nullptr) block.fault("a thread ends while its wgmma at %s:%d is in flight", sums.site.name(), sums.site.line);
    }
  }
  cluster.ended_threads++;
  if (cluster.meetings_arrived[block.rank * cluster.threads + block.running] <= cluster.cluster_meeting) cluster.ended_unarrived++;
  const RegisterState& state = cluster.registers[block.rank];
  if (block.is_last_live() && state.last.file != nullptr) check_registers(state, block.threads / kWarpgroup);
  end_cluster_meeting(cluster);
}

}  // namespace heddle::simt

#endif
