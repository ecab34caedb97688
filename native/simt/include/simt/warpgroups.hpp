// wgmma: matmuls of a warpgroup that read shared memory after they are issued. One is computed when a thread waits for its group. Until then its sums are
// taken away from the threads, which find NaN in their place, and its reads of shared memory are not complete.
#ifndef HEDDLE_SIMT_WARPGROUPS_HPP
#define HEDDLE_SIMT_WARPGROUPS_HPP

#include "async_products.hpp"

namespace heddle::simt {

inline Cluster::~Cluster() {
  for (auto& of_block : warpgroups) {
    for (Warpgroup* group : of_block) free(group);
  }
  for (SharedHistory& one : history) one.clear();
  free(times_);
  free(copies_);
}

/// The running thread's warpgroup; memory for it is allocated when it is first used.
inline Warpgroup& own_warpgroup(Site site) {
  Cluster& cluster = cluster_of(site);
  const uint32_t group = current->running / kWarpgroup;
  if ((group + 1) * kWarpgroup > current->threads) current->fault("wgmma at %s:%d by threads that are no warpgroup", site.name(), site.line);
  Warpgroup*& found = cluster.warpgroups[current->rank][group];
  if (found == nullptr) found = static_cast<Warpgroup*>(calloc(1, sizeof(Warpgroup)));
  if (found == nullptr) current->fault("no memory for wgmma");
  return *found;
}
inline ThreadProducts& own_products(Site site) { return own_warpgroup(site).threads[current->running % kWarpgroup]; }

/// Notes the reads of a matmul, and which writes they need.
inline void read_factor(AsyncProduct& product, const MatrixPlace& place, uint32_t rows, bool columns, Site site) {
  Cluster& cluster = *current->cluster;
  const uint32_t group = current->running / kWarpgroup;
  if (!place.is_aligned()) {
    current->fault("the matrix of a wgmma at %s:%d starts at shared byte %u, where no eight rows of its swizzle begin", site.name(), site.line, place.start);
  }
  const Access read = {product.group + 1, static_cast<uint16_t>(cluster.warpgroup_agent(current->rank, group)), Proxy::async, Access::no_swizzle_known, site};
  const Knowledge mine = cluster.mine();
  each_word(place, rows, columns, [&](uint32_t address, uint32_t, uint32_t) {
    if (uint64_t{address} + 16 > current->shared_bytes) {
      current->fault("a wgmma at %s:%d reads shared byte %u, of %u", site.name(), site.line, address, current->shared_bytes);
    }
    WordAccesses& word = cluster.history[current->rank].at(address / 16);
    if (!word.add(read, mine.happened, false)) current->fault("no memory for reads of shared memory");
    const Access& write = word.write;
    if (write.time == 0) return;
    if (write.swizzle != Access::no_swizzle_known && write.swizzle != static_cast<uint8_t>(place.swizzle)) {
      current->fault("a wgmma at %s:%d reads shared bytes from %u on with another swizzle than the copy at %s:%d wrote", site.name(), site.line,
                     address, write.site.name(), write.site.line);
    }
    for (uint32_t i = product.source_count; i > 0 && i + 8 > product.source_count; i--) {
      const Access& known = product.sources[i - 1];
      if (known.agent == write.agent && known.time == write.time && known.proxy == write.proxy) return;
    }
    product.source_words[product.source_count] = address / 16;
    product.sources[product.source_count++] = write;
  });
}

/// The thread's sums at a place, taken from it.
inline uint32_t take_sums(ThreadProducts& mine, void* place, uint32_t count, Site site) {
  uint32_t at = 0, unused = ThreadProducts::kMostSums;
  for (; at < ThreadProducts::kMostSums && mine.sums[at].place != place; at++) {
    if (mine.sums[at].place == nullptr) unused = at;
  }
  if (at == ThreadProducts::kMostSums) {
    at = unused;
    if (at == ThreadProducts::kMostSums) current->fault("too many sums of wgmma are in flight at %s:%d", site.name(), site.line);
    mine.sums[at].place = static_cast<char*>(place);
    mine.sums[at].count = count;
    memcpy(mine.sums[at].values, place, 4 * count);
    memset(place, 0xff, 4 * count);
  }
  mine.sums[at].group = mine.commits;
  mine.sums[at].site = site;
  return at;
}

/// Issues a matmul for the running thread; `left` is its part of a factor in registers, or null.
inline void issue_product(const ProductForm& form, void* sums, const uint32_t* left, Site site) {
  Warpgroup& group = own_warpgroup(site);
  const uint32_t thread = current->running % kWarpgroup;
  ThreadProducts& mine = group.threads[thread];
  if (!mine.is_fenced) current->fault("a wgmma at %s:%d comes after accesses to registers with no wgmma.fence between", site.name(), site.line);
  AsyncProduct& product = group.products[mine.issued % Warpgroup::kMostProducts];
  if (mine.issued == group.issued) {
    if (group.issued - group.done == Warpgroup::kMostProducts) current->fault("too many wgmmas are in flight at %s:%d", site.name(), site.line);
    group.issued++;
    product.form = form, product.site = site, product.threads = 0, product.group = mine.commits, product.source_count = 0;
    if (!form.in_registers) read_factor(product, MatrixPlace(form.a), 64, false, site);
    read_factor(product, MatrixPlace(form.b), form.columns, form.b_columns, site);
  } else if (!(product.form == form) || product.group != mine.commits) {
    current->fault("threads of a warpgroup issue different wgmmas at %s:%d and %s:%d", site.name(), site.line, product.site.name(), product.site.line);
  }
  WordAccesses word = {};
  const Knowledge known = current->cluster->mine();
  for (uint32_t i = 0; i < product.source_count; i++) {
    word.write = product.sources[i];
    SharedHistory::check_write(word, known, product.source_words[i], "read", Proxy::async, site);
  }
  product.sums[thread] = static_cast<uint8_t>(take_sums(mine, sums, form.columns / 2, site));
  product.left_at[thread] = left;
  if (left != nullptr) memcpy(product.left[thread], left, sizeof product.left[thread]);
  mine.issued++;
  if (++product.threads < kWarpgroup) return;
  const uint32_t first = current->running / kWarpgroup * kWarpgroup;
  for (uint32_t i = first; i < first + kWarpgroup; i++) {
    if (!current->fibers[i].done && current->fibers[i].meeting == Meeting::products) current->release(i);
  }
}

/// Waits until at most the `pending` newest groups of the thread are in flight; gives back the sums of the others.
inline void wait_for_products(uint32_t pending, Site site) {
  Warpgroup& group = own_warpgroup(site);
  ThreadProducts& mine = group.threads[current->running % kWarpgroup];
  if (pending == 0) mine.is_fenced = false;
  if (mine.commits <= pending) return;
  const uint32_t complete = mine.commits - pending;  // groups
  const auto product = [&](uint32_t i) -> AsyncProduct& { return group.products[i % Warpgroup::kMostProducts]; };
  uint32_t end = group.done;
  while (end < mine.issued && product(end).group < complete) {
    if (product(end).threads == kWarpgroup) {
      end++;
      continue;
    }
    Fiber& me = current->fibers[current->running];
    me.meeting = Meeting::products;
    me.site = site;
    current->wait();
  }
  for (; group.done < end; group.done++) compute_product(group, product(group.done), site);
  for (SumsInFlight& sums : mine.sums) {
    if (sums.place == nullptr || sums.group >= complete) continue;
    for (uint32_t byte = 0; byte < 4 * sums.count; byte++) {
      if (static_cast<unsigned char>(sums.place[byte]) == 0xff) continue;
      current->fault("sums of the wgmma at %s:%d are changed before it is waited for at %s:%d", sums.site.name(), sums.site.line, site.name(), site.line);
    }
    memcpy(sums.place, sums.values, 4 * sums.count);
    sums.place = nullptr;
  }
  uint32_t& known = current->cluster->mine().happened[current->cluster->warpgroup_agent(current->rank, current->running / kWarpgroup)];
  if (known < complete) known = complete;
}

/// The thread's sums at a place are used from here on.
inline void use_sums(const void* place, size_t bytes, Site site) {
  ThreadProducts& mine = own_products(site);
  mine.is_fenced = false;
  const char* const first = static_cast<const char*>(place);
  for (const SumsInFlight& sums : mine.sums) {
    if (sums.place == nullptr || first + bytes <= sums.place || sums.place + 4 * sums.count <= first) continue;
    current->fault("sums are used at %s:%d while the wgmma at %s:%d is in flight", site.name(), site.line, sums.site.name(), sums.site.line);
  }
}

}  // namespace heddle::simt

#endif
