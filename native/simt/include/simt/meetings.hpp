// Meetings of threads in a cluster: named barriers, the cluster's own, and those of a block or a warp, which order accesses; and the report of threads that
// wait for ever.
#ifndef HEDDLE_SIMT_MEETINGS_HPP
#define HEDDLE_SIMT_MEETINGS_HPP

#include "phases.hpp"

namespace heddle::simt {

/// Arrives at a named barrier of `expected` threads; `waits` for all of them.
inline void meet_by_name(int id, uint32_t expected, bool waits, Site site) {
  Cluster& cluster = cluster_of(site);
  Worker& block = *current;
  if (id < 1 || id >= static_cast<int>(Cluster::kMostNamed)) block.fault("named barrier %d is used at %s:%d", id, site.name(), site.line);
  NamedState& state = cluster.named[block.rank][id];
  state.gathered.join(cluster.mine(), 0, cluster.agents);
  cluster.tick();
  Fiber& me = block.fibers[block.running];
  if (waits) {
    me.meeting = Meeting::named;
    me.site = site;
    me.value = static_cast<uint64_t>(id);
  }
  if (++state.count < expected) {
    if (waits) block.wait();
    return;
  }
  state.count = 0;
  if (waits) me.meeting = Meeting::none;
  for (uint32_t thread = 0; thread < block.threads; thread++) {
    const Fiber& fiber = block.fibers[thread];
    const bool is_me = waits && thread == block.running;
    if (!is_me && (fiber.done || fiber.meeting != Meeting::named || fiber.value != static_cast<uint64_t>(id))) continue;
    cluster.knowledge(block, thread).join(state.gathered, 0, cluster.agents);
    if (!is_me) block.release(thread);
  }
  cluster.zero(state.gathered);
}

/// Ends the cluster's meeting once all threads that have not ended have arrived.
inline void end_cluster_meeting(Cluster& cluster) {
  if (cluster.cluster_arrived + cluster.ended_unarrived < cluster.count * cluster.threads || cluster.cluster_arrived == 0) return;
  cluster.cluster_arrived = 0;
  cluster.cluster_meeting++;
  cluster.ended_unarrived = cluster.ended_threads;
  for (uint32_t rank = 0; rank < cluster.count; rank++) {
    Worker& block = *cluster.blocks[rank];
    for (uint32_t thread = 0; thread < block.threads; thread++) {
      const Fiber& fiber = block.fibers[thread];
      if (!fiber.done && fiber.meeting == Meeting::cluster) block.release(thread);
    }
  }
}

inline void arrive_at_cluster(Site site) {
  Cluster& cluster = cluster_of(site);
  uint32_t& arrived = cluster.meetings_arrived[current->rank * cluster.threads + current->running];
  if (arrived > cluster.cluster_meeting) current->fault("the thread arrives at the cluster's barrier again at %s:%d, without a wait", site.name(), site.line);
  arrived = cluster.cluster_meeting + 1;
  cluster.cluster_arrived++;
  end_cluster_meeting(cluster);
}

/// Waits for the meeting at which the thread arrived last. It orders no accesses to memory but initialisations of barriers.
inline void wait_for_cluster_meeting(Site site) {
  Cluster& cluster = cluster_of(site);
  const uint32_t own = current->rank * cluster.threads + current->running;
  if (cluster.meetings_arrived[own] == cluster.meetings_passed[own]) {
    current->fault("the thread waits for the cluster's barrier at %s:%d and has not arrived", site.name(), site.line);
  }
  if (cluster.cluster_meeting < cluster.meetings_arrived[own]) {
    Fiber& me = current->fibers[current->running];
    me.meeting = Meeting::cluster;
    me.site = site;
    current->wait();
  }
  cluster.meetings_passed[own] = cluster.meetings_arrived[own];
}

inline void order_block(Worker& block) { block.cluster->meet(block, 0, block.threads, ~0u); }
inline void order_lanes(Worker& block, uint32_t warp, uint32_t mask) {
  const uint32_t first = warp * kLanes, end = first + kLanes < block.threads ? first + kLanes : block.threads;
  block.cluster->meet(block, first, end, mask);
}

/// One place where threads of a block wait, in words.
inline void describe_wait(Line& line, const Worker& block, const Fiber& first) {
  uint32_t waiting = 0;
  for (uint32_t i = 0; i < block.threads; i++) {
    const Fiber& fiber = block.fibers[i];
    if (!fiber.done && fiber.meeting == first.meeting && fiber.site == first.site && fiber.value == first.value) waiting++;
  }
  const char* const plural = waiting == 1 ? "thread waits" : "threads wait";
  line.add("; %u %s in block %u at %s:%d for ", waiting, plural, block.rank, first.site.name(), first.site.line);
  if (first.meeting == Meeting::phase) {
    const PhaseState& state = *find_phase(block, static_cast<uint32_t>(first.value));
    line.add("phase %u of the barrier at shared byte %u, where %u of %u arrivals and %lld bytes are missing", state.phase, state.address, state.missing,
             state.arrivals, static_cast<long long>(state.bytes));
  } else {
    line.add("%s", first.meeting == Meeting::named      ? "a named barrier"
                   : first.meeting == Meeting::cluster  ? "the cluster's barrier"
                   : first.meeting == Meeting::products ? "wgmmas of all four warps"
                                                        : "other threads");
  }
}

/// Describes threads that wait for ever, of every block: those of a phase first, as others often wait for these.
__attribute__((noinline, cold)) inline void Cluster::diagnose() {
  constexpr Meeting meetings[] = {Meeting::phase, Meeting::named, Meeting::products, Meeting::cluster};
  Line line;
  for (const Meeting meeting : meetings) {
    for (uint32_t rank = 0; rank < count; rank++) {
      const Fiber* last = nullptr;
      for (uint32_t i = 0; i < threads; i++) {
        const Fiber& fiber = blocks[rank]->fibers[i];
        if (fiber.done || fiber.meeting != meeting) continue;
        if (last != nullptr && fiber.site == last->site && fiber.value == last->value) continue;
        if (faulty == nullptr) faulty = blocks[rank];
        describe_wait(line, *blocks[rank], fiber);
        last = &fiber;
      }
    }
  }
  if (faulty != nullptr) return fail_block(*faulty, "no thread can go on%s", line.text);
  for (uint32_t rank = 0; rank < count; rank++) {
    if (blocks[rank]->has_live()) faulty = blocks[rank];
  }
  faulty->diagnose(0, threads);
}

}  // namespace heddle::simt

#endif
