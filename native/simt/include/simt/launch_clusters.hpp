// Launches where kernels are compiled with Hopper's instructions: a chunk's clusters run one after the other, each block of one on a worker of its own.
#ifndef HEDDLE_SIMT_LAUNCH_CLUSTERS_HPP
#define HEDDLE_SIMT_LAUNCH_CLUSTERS_HPP

#include "hopper.hpp"
#include "launch.hpp"

namespace heddle::simt {

/// Blocks of a cluster for a chunk of the grid: `first` and workers of their own.
class ClusterOfWorkers {
 public:
  ClusterOfWorkers() = default;
  ClusterOfWorkers(const ClusterOfWorkers&) = delete;
  ClusterOfWorkers& operator=(const ClusterOfWorkers&) = delete;
  ~ClusterOfWorkers() {
    if (cluster_ == nullptr) return;
    for (uint32_t i = 0; i < cluster_->count; i++) {
      cluster_->blocks[i]->cluster = nullptr;
      if (i > 0) idle_workers.give(cluster_->blocks[i]);
    }
    delete cluster_;
  }

  /// Workers for `count` blocks, prepared like the first; false without memory.
  bool prepare(Worker* first, uint32_t count) {
    cluster_ = new (std::nothrow) Cluster;
    if (cluster_ == nullptr) return false;
    cluster_->threads = first->threads;
    for (uint32_t i = 0; i < count; i++) {
      Worker* const block = i == 0 ? first : idle_workers.take();
      if (block == nullptr) return false;
      cluster_->blocks[cluster_->count++] = block;
      block->kernel = first->kernel, block->sync = first->sync, block->threads = first->threads;
      block->shared_bytes = first->shared_bytes, block->faulted = false, block->sectors.launch = first->sectors.launch;
      block->place = first->place;
      block->cluster = cluster_, block->rank = i;
    }
    return cluster_->reserve();
  }

  /// Runs the cluster whose first block has this number; a fault is left in the first worker.
  void run(uint64_t first_block, const Job& job) {
    Worker& first = *cluster_->blocks[0];
    cluster_->begin();
    for (uint32_t i = 0; i < cluster_->count; i++) {
      Worker& block = *cluster_->blocks[i];
      run_as(&block);
      block.begin_block(first_block + i);
      for (Warpgroup* group : cluster_->warpgroups[i]) {
        if (group != nullptr) group->begin();
      }
      if (!block.start_fibers(0, block.threads, job.invoke, job.body)) cluster_->faulty = &block;
    }
    if (cluster_->faulty == nullptr) cluster_->run();
    run_as(&first);
    if (cluster_->faulty == nullptr) return;
    if (cluster_->faulty != &first) first.error = cluster_->faulty->error;
    first.faulted = true;
  }

 private:
  Cluster* cluster_ = nullptr;
};

inline void run_clusters(Worker& worker, const Job& job, uint64_t begin, uint64_t end) {
  ClusterOfWorkers cluster;
  const uint32_t size = job.config->cluster;
  if (!cluster.prepare(&worker, size)) {
    fail(&worker.error, HEDDLE_MEMORY, "kernel %s: no memory for a cluster of %u blocks", worker.kernel, size);
    worker.faulted = true;
  }
  for (uint64_t i = begin; i < end && !worker.faulted; i += size) cluster.run(ordered(i / size, job.blocks / size) * size, job);
}

}  // namespace heddle::simt

#endif
