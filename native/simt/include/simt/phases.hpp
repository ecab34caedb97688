// Phase barriers in shared memory (mbarrier), with the arrivals of threads and the bytes of engines. A thread that waits for the end of a phase learns what
// came before. Places in the shared memory of a cluster's blocks.
#ifndef HEDDLE_SIMT_PHASES_HPP
#define HEDDLE_SIMT_PHASES_HPP

#include "cluster.hpp"

namespace heddle::simt {

/// Addresses in the cluster's shared memory: the upper byte is 0 in a thread's own block, else 1 + the block's rank.
constexpr uint32_t kRankShift = 24;

struct SharedPlace {
  Worker* block;
  uint32_t offset;
};

/// The cluster of the running thread, whose launch must have one.
inline Cluster& cluster_of(Site site) {
  if (current->cluster == nullptr) current->fault("%s:%d needs a launch whose threads meet as a block", site.name(), site.line);
  return *current->cluster;
}

/// Refuses a rank that the cluster lacks, and a block that has ended.
inline Worker& block_at(uint32_t rank, Site site) {
  Cluster& cluster = cluster_of(site);
  if (rank >= cluster.count) current->fault("block %u of a cluster of %u blocks is accessed at %s:%d", rank, cluster.count, site.name(), site.line);
  Worker& block = *cluster.blocks[rank];
  if (!block.has_live()) current->fault("block %u of the cluster is accessed at %s:%d and has ended", rank, site.name(), site.line);
  return block;
}

inline SharedPlace place_at(uint32_t address, Site site) {
  const uint32_t rank = address >> kRankShift;
  return {rank == 0 ? current : &block_at(rank - 1, site), address & ((1u << kRankShift) - 1)};
}

/// The barrier at a place, or null.
inline PhaseState* find_phase(const Worker& block, uint32_t offset) {
  Cluster& cluster = *block.cluster;
  for (uint32_t i = 0; i < cluster.phase_count[block.rank]; i++) {
    if (cluster.phases[block.rank][i].address == offset) return &cluster.phases[block.rank][i];
  }
  return nullptr;
}

/// The barrier at a place, whose initialisation the running thread must know of. `by_engine`: an engine or another block uses it.
inline PhaseState& phase_at(const SharedPlace& place, Site site, bool by_engine) {
  const Cluster& cluster = cluster_of(site);
  PhaseState* const state = find_phase(*place.block, place.offset);
  if (state == nullptr) current->fault("no barrier is initialised at shared byte %u, which %s:%d uses", place.offset, site.name(), site.line);
  const uint32_t passed = cluster.meetings_passed[current->rank * cluster.threads + current->running];
  const bool is_known = state->made.known_to(cluster.mine().happened) || (state->is_published && passed > state->made_clusters);
  if (!is_known) {
    current->fault("the barrier at shared byte %u is used at %s:%d, and no meeting comes after its initialisation at %s:%d", place.offset,
                   site.name(), site.line, state->made.site.name(), state->made.site.line);
  }
  if (by_engine && !state->is_published) {
    current->fault("the barrier at shared byte %u is used asynchronously at %s:%d, and no fence publishes its initialisation at %s:%d",
                   place.offset, site.name(), site.line, state->made.site.name(), state->made.site.line);
  }
  return *state;
}

inline void initialise_phase(uint32_t address, uint32_t arrivals, Site site) {
  Cluster& cluster = cluster_of(site);
  Worker& block = *current;
  const uint32_t index = cluster.phase_count[block.rank];
  if (address % 8 != 0 || uint64_t{address} + 8 > block.shared_bytes) {
    block.fault("dynamic shared byte %u is not a place for a barrier (%u bytes), at %s:%d", address, block.shared_bytes, site.name(), site.line);
  }
  if (find_phase(block, address) != nullptr) block.fault("the barrier at shared byte %u is initialised again at %s:%d", address, site.name(), site.line);
  if (arrivals == 0 || index == Cluster::kMostPhases) block.fault("a barrier of %u arrivals, or one barrier too many, at %s:%d", arrivals, site.name(), site.line);
  const size_t vector = cluster.first_phase_vector(block.rank, index);
  PhaseState& state = cluster.phases[block.rank][index];
  state = {address, arrivals, arrivals, 0, 0, cluster.phase_agent(block.rank, index), cluster.access(Proxy::generic, site),
           cluster.meetings_passed[block.rank * cluster.threads + block.running], false, cluster.vector_of(vector), cluster.vector_of(vector + 1)};
  cluster.zero(state.arrived);
  cluster.zero(state.ended);
  cluster.phase_count[block.rank]++;
}

/// Makes the running thread's initialisations visible to engines, and to the cluster after its barrier.
inline void publish_phases(Site site) {
  Cluster& cluster = cluster_of(site);
  for (uint32_t i = 0; i < cluster.phase_count[current->rank]; i++) {
    PhaseState& state = cluster.phases[current->rank][i];
    if (state.made.known_to(cluster.mine().happened)) state.is_published = true;
  }
}

/// The thread learns what came before the end of the last phase. `across_blocks`: also stores of other blocks.
inline void learn_phase(const Cluster& cluster, const Knowledge& known, const PhaseState& state, bool across_blocks) {
  known.join(state.ended, 0, cluster.agents);
  for (uint32_t i = 0; i < (across_blocks ? 2u : 1u); i++) {
    if (known.happened[state.agent + i] < state.phase) known.happened[state.agent + i] = state.phase;
  }
}

/// Ends the phase if nothing is missing: releases the threads that wait for it.
inline void end_phase(Worker& block, PhaseState& state) {
  if (state.missing > 0 || state.bytes != 0) return;
  Cluster& cluster = *block.cluster;
  state.phase++;
  state.missing = state.arrivals;
  memcpy(state.ended.happened, state.arrived.happened, 2 * sizeof(uint32_t) * cluster.agents);
  for (uint32_t thread = 0; thread < block.threads; thread++) {
    const Fiber& fiber = block.fibers[thread];
    if (fiber.done || fiber.meeting != Meeting::phase || fiber.value != state.address || fiber.source + 1 != state.phase) continue;
    learn_phase(cluster, cluster.knowledge(block, thread), state, fiber.mask != 0);
    block.release(thread);
  }
}

/// Arrives from any block of the cluster. Arrivals from others order only what engines have completed, as they do not wait for the thread's stores.
inline void arrive_at_phase(uint32_t address, int64_t bytes, Site site) {
  const Cluster& cluster = cluster_of(site);
  const SharedPlace place = place_at(address, site);
  PhaseState& state = phase_at(place, site, place.block != current);
  if (state.missing == 0) {
    current->fault("an arrival too many at %s:%d: all %u of phase %u have come to the barrier at shared byte %u", site.name(), site.line, state.arrivals,
                   state.phase, place.offset);
  }
  constexpr int64_t most_bytes = (1 << 20) - 1;
  state.missing--;
  state.bytes += bytes;
  if (state.bytes > most_bytes) {
    current->fault("the barrier at shared byte %u expects %lld bytes at %s:%d, and counts at most %lld", place.offset, static_cast<long long>(state.bytes),
                   site.name(), site.line, static_cast<long long>(most_bytes));
  }
  if (place.block == current) {
    state.arrived.join(cluster.mine(), 0, cluster.agents);
  } else {
    for (uint32_t rank = 0; rank < cluster.count; rank++) state.arrived.join(cluster.mine(), cluster.first_engine(rank), cluster.end_engine(rank));
  }
  cluster.tick();
  end_phase(*place.block, state);
}

/// Bytes of a copy arrive, in the phase for which it was started.
inline void arrive_bytes(Worker& block, const EngineCopy& copy) {
  PhaseState& state = *find_phase(block, copy.counter);
  if (state.phase != copy.phases[block.rank]) {
    return fail_block(block, "bytes of the copy started at %s:%d arrive after the end of their phase %u of the barrier at shared byte %u, which expected fewer",
                      copy.site.name(), copy.site.line, copy.phases[block.rank], copy.counter);
  }
  state.bytes -= copy.bytes;
  end_phase(block, state);
}

/// True if the phase with this parity has ended: the thread then knows what came before.
inline bool try_phase(uint32_t address, uint32_t parity, bool across_blocks, Site site) {
  const Cluster& cluster = cluster_of(site);
  const PhaseState& state = phase_at({current, address}, site, false);
  if ((state.phase & 1) == parity) return false;
  learn_phase(cluster, cluster.mine(), state, across_blocks);
  return true;
}

inline void wait_for_phase(uint32_t address, uint32_t parity, bool across_blocks, Site site) {
  if (parity > 1) current->fault("a phase of parity %u is waited for at %s:%d", parity, site.name(), site.line);
  if (try_phase(address, parity, across_blocks, site)) return;
  Worker& block = *current;
  const PhaseState& state = *find_phase(block, address);
  Fiber& me = block.fibers[block.running];
  me.meeting = Meeting::phase;
  me.site = site;
  me.value = address;
  me.source = state.phase;
  me.mask = across_blocks ? 1 : 0;
  block.wait();
  if (state.phase > me.source + 1) {
    block.fault("phase %u of the barrier at shared byte %u, waited for at %s:%d, is followed by another before the thread goes on", me.source, address,
                site.name(), site.line);
  }
}

}  // namespace heddle::simt

#endif
