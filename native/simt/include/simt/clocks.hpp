// The order of accesses to the dynamic shared memory of a cluster's blocks, where barriers order some threads only and engines of the GPU access memory
// too. Each thread knows, for every agent, the time up to which the agent's accesses are complete for it. Agents are threads, phase barriers (accesses
// of copies that they count) and warpgroups (reads of their wgmmas). Used where kernels are compiled with Hopper's instructions.
#ifndef HEDDLE_SIMT_CLOCKS_HPP
#define HEDDLE_SIMT_CLOCKS_HPP

#include "worker.hpp"

namespace heddle::simt {

/// Times up to which accesses are ordered before, by agent; and those up to which stores are also visible to the asynchronous proxy.
struct Knowledge {
  uint32_t* happened;
  uint32_t* published;

  void join(const Knowledge& other, uint32_t first, uint32_t end) const {
    for (uint32_t i = first; i < end; i++) happened[i] = happened[i] < other.happened[i] ? other.happened[i] : happened[i];
    for (uint32_t i = first; i < end; i++) published[i] = published[i] < other.published[i] ? other.published[i] : published[i];
  }
};

/// Threads use the generic proxy; the copy engine and wgmma the asynchronous one.
enum class Proxy : uint8_t { generic, async };

/// An access of an agent at a time; no agent has time 0.
struct Access {
  static constexpr uint8_t no_swizzle_known = 0xff;

  uint32_t time;
  uint16_t agent;
  Proxy proxy;
  uint8_t swizzle;  // with which the copy engine wrote
  Site site;

  bool known_to(const uint32_t* times) const { return times[agent] >= time; }
};

/// The last write of 16 bytes, and the reads since.
class WordAccesses {
 public:
  Access write;

  const Access* begin() const { return more_ != nullptr ? more_ : few_; }
  const Access* end() const { return begin() + count_; }

  /// Adds a read. One of the same agent, or one that is ordered before a read of a thread, needs no record of its own. False without memory.
  bool add(const Access& read, const uint32_t* happened, bool by_thread) {
    Access* const reads = more_ != nullptr ? more_ : few_;
    for (uint32_t i = 0; i < count_; i++) {
      if (reads[i].agent == read.agent || (by_thread && reads[i].known_to(happened))) {
        reads[i] = read;
        return true;
      }
    }
    if (count_ == (more_ != nullptr ? capacity_ : kFew) && !grow()) return false;
    (more_ != nullptr ? more_ : few_)[count_++] = read;
    return true;
  }

  void write_by(const Access& access) {
    write = access;
    count_ = 0;
  }

  void forget() {
    write.time = 0;
    count_ = 0;
  }

  void clear() { free(more_); }

 private:
  static constexpr uint32_t kFew = 3;

  bool grow() {
    const uint32_t capacity = 4 * (count_ + 1);
    auto* const more = static_cast<Access*>(realloc(more_, capacity * sizeof(Access)));
    if (more == nullptr) return false;
    if (more_ == nullptr) memcpy(more, few_, sizeof few_);
    more_ = more;
    capacity_ = capacity;
    return true;
  }

  Access few_[kFew];
  Access* more_;
  uint32_t count_, capacity_;
};

/// Accesses to one block's dynamic shared memory, in words of 16 bytes. Zeroed memory is a valid beginning.
class SharedHistory {
 public:
  bool reserve(uint32_t words) {
    if (words <= words_count_) return true;
    clear();
    words_ = static_cast<WordAccesses*>(calloc(words, sizeof(WordAccesses)));
    words_count_ = words_ == nullptr ? 0 : words;
    return words_ != nullptr;
  }

  void begin_block() {
    for (uint32_t i = 0; i < words_count_; i++) words_[i].forget();
  }

  void clear() {
    for (uint32_t i = 0; i < words_count_; i++) words_[i].clear();
    free(words_);
    words_ = nullptr;
    words_count_ = 0;
  }

  WordAccesses& at(uint32_t word) const { return words_[word]; }

  /// Checks that the last write of a word is complete for a thread that knows `mine`, and visible to the proxy.
  static void check_write(const WordAccesses& accesses, const Knowledge& mine, uint32_t word, const char* what, Proxy proxy, Site site) {
    const Access& write = accesses.write;
    if (write.time == 0) return;
    if (!write.known_to(mine.happened)) race(word, what, site, "written", write);
    if (proxy == Proxy::async && write.proxy == Proxy::generic && !write.known_to(mine.published)) unpublished(word, what, site, write);
  }

  /// A thread's access. @param me its agent and time
  void read(uint32_t word, const Access& me, const Knowledge& mine) const {
    WordAccesses& accesses = words_[word];
    check_write(accesses, mine, word, "read", me.proxy, me.site);
    if (!accesses.add(me, mine.happened, me.proxy == Proxy::generic)) current->fault("no memory for reads of shared memory");
  }

  void write(uint32_t word, const Access& me, const Knowledge& mine) const {
    WordAccesses& accesses = words_[word];
    check_write(accesses, mine, word, "written", me.proxy, me.site);
    for (const Access& read : accesses) {
      if (!read.known_to(mine.happened)) race(word, "written", me.site, "read", read);
    }
    accesses.write_by(me);
  }

 private:
  [[noreturn]] __attribute__((noinline, cold)) static void race(uint32_t word, const char* now, Site site, const char* before,
                                                                const Access& access) {
    current->fault("data race: shared bytes from %u on are %s at %s:%d and were %s at %s:%d%s, which is not complete for this thread",
                   16 * word, now, site.name(), site.line, before, access.site.name(), access.site.line,
                   access.proxy == Proxy::async ? " asynchronously" : "");
  }

  [[noreturn]] __attribute__((noinline, cold)) static void unpublished(uint32_t word, const char* now, Site site, const Access& access) {
    current->fault("shared bytes from %u on are %s asynchronously at %s:%d and were stored at %s:%d with no fence.proxy.async between",
                   16 * word, now, site.name(), site.line, access.site.name(), access.site.line);
  }

  WordAccesses* words_ = nullptr;
  uint32_t words_count_ = 0;
};

}  // namespace heddle::simt

#endif
