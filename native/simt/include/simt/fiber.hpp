// Fibers: the threads of a block as stacks that one worker thread switches between. A switch saves the callee-saved registers and changes the stack.
// It is a few instructions for x86-64 and aarch64 Linux, ucontext elsewhere.
#ifndef HEDDLE_SIMT_FIBER_HPP
#define HEDDLE_SIMT_FIBER_HPP

#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__)) && !defined(HEDDLE_SIMT_UCONTEXT)
#define HEDDLE_SIMT_NATIVE_SWITCH 1
#else
#include <ucontext.h>
#endif

namespace heddle::simt {

using FiberEntry = void (*)();

#if defined(HEDDLE_SIMT_NATIVE_SWITCH)

/// Pushes the callee-saved registers, stores the stack pointer in *from and continues where `to` was stored.
extern "C" void heddle_simt_switch(void** from, void* to);

// One copy per library: the section is a group that the linker keeps once.
#define HEDDLE_SIMT_SWITCH_TEXT(body)                                                              \
  asm(".pushsection .text.heddle_simt_switch,\"axG\",%progbits,heddle_simt_switch,comdat\n"        \
      ".weak heddle_simt_switch\n.hidden heddle_simt_switch\n.type heddle_simt_switch,%function\n" \
      ".p2align 4\nheddle_simt_switch:\n" body ".size heddle_simt_switch,.-heddle_simt_switch\n.popsection\n")

#if defined(__x86_64__)
HEDDLE_SIMT_SWITCH_TEXT(
    "  push %rbp\n  push %rbx\n  push %r12\n  push %r13\n  push %r14\n  push %r15\n"
    "  mov %rsp, (%rdi)\n  mov %rsi, %rsp\n"
    "  pop %r15\n  pop %r14\n  pop %r13\n  pop %r12\n  pop %rbx\n  pop %rbp\n  ret\n");
// The first switch pops six registers and returns into the entry; below the top lies a null return address for unwinders.
constexpr size_t kFirstFrameWords = 8;
constexpr size_t kEntryWord = 6;
#else
HEDDLE_SIMT_SWITCH_TEXT(
    "  sub sp, sp, #160\n"
    "  stp x19, x20, [sp, #0]\n  stp x21, x22, [sp, #16]\n  stp x23, x24, [sp, #32]\n  stp x25, x26, [sp, #48]\n"
    "  stp x27, x28, [sp, #64]\n  stp x29, x30, [sp, #80]\n"
    "  stp d8, d9, [sp, #96]\n  stp d10, d11, [sp, #112]\n  stp d12, d13, [sp, #128]\n  stp d14, d15, [sp, #144]\n"
    "  mov x9, sp\n  str x9, [x0]\n  mov sp, x1\n"
    "  ldp x19, x20, [sp, #0]\n  ldp x21, x22, [sp, #16]\n  ldp x23, x24, [sp, #32]\n  ldp x25, x26, [sp, #48]\n"
    "  ldp x27, x28, [sp, #64]\n  ldp x29, x30, [sp, #80]\n"
    "  ldp d8, d9, [sp, #96]\n  ldp d10, d11, [sp, #112]\n  ldp d12, d13, [sp, #128]\n  ldp d14, d15, [sp, #144]\n"
    "  add sp, sp, #160\n  ret\n");
// The first switch loads x19..x30 and d8..d15 and returns to x30, the entry.
constexpr size_t kFirstFrameWords = 20;
constexpr size_t kEntryWord = 11;
#endif

/// Saved position of a stack.
struct Context {
  void* stack_pointer = nullptr;

  /// Makes the next switch to this context call `entry` on the stack [low, high); `high` is a multiple of 16.
  void start(char* /*low*/, char* high, FiberEntry entry) {
    void** frame = reinterpret_cast<void**>(high) - kFirstFrameWords;
    for (size_t i = 0; i < kFirstFrameWords; i++) frame[i] = nullptr;
    frame[kEntryWord] = reinterpret_cast<void*>(entry);
    stack_pointer = frame;
  }
};

inline void switch_context(Context& from, const Context& to) { heddle_simt_switch(&from.stack_pointer, to.stack_pointer); }

#else

struct Context {
  ucontext_t state;

  void start(char* low, char* high, FiberEntry entry) {
    getcontext(&state);
    state.uc_stack.ss_sp = low;
    state.uc_stack.ss_size = static_cast<size_t>(high - low);
    state.uc_link = nullptr;
    makecontext(&state, entry, 0);
  }
};

inline void switch_context(Context& from, const Context& to) { swapcontext(&from.state, &to.state); }

#endif

/// The stacks of one worker: one mapping, of which only touched pages take memory. A canary word ends each stack. Below the first lie a spare stack,
/// so that its canary is overwritten first too, and a page without access.
class Stacks {
 public:
  static constexpr size_t kBytes = 64 * 1024;

  Stacks() = default;
  Stacks(const Stacks&) = delete;
  Stacks& operator=(const Stacks&) = delete;
  ~Stacks() { unmap(); }

  /// Grows to at least `count` stacks and discards their contents. False if the system has no memory for them.
  bool reserve(uint32_t count) {
    if (count <= count_) return true;
    unmap();
    const size_t guard = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t bytes = guard + ((count + 1) * kStride + guard - 1) / guard * guard;
    void* mapping = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping == MAP_FAILED) return false;
    mprotect(mapping, guard, PROT_NONE);
    mapping_ = static_cast<char*>(mapping);
    mapping_bytes_ = bytes;
    first_ = mapping_ + guard + kStride;
    count_ = count;
    for (uint32_t i = 0; i < count; i++) *canary(i) = kCanary;
    return true;
  }

  char* low(uint32_t i) const { return first_ + i * kStride; }
  char* high(uint32_t i) const { return low(i) + kBytes; }
  bool intact(uint32_t i) const { return *canary(i) == kCanary; }
  /// Makes stack i usable again after an overflow.
  void mend(uint32_t i) { *canary(i) = kCanary; }

 private:
  // The odd number of cache lines between stacks puts their tops, which are hot, into different cache sets.
  static constexpr size_t kStride = kBytes + 5 * 64;
  static constexpr uint64_t kCanary = 0x5afe57acc0ffee11u;

  uint64_t* canary(uint32_t i) const { return reinterpret_cast<uint64_t*>(low(i)); }

  void unmap() {
    if (mapping_ != nullptr) munmap(mapping_, mapping_bytes_);
    mapping_ = nullptr;
    count_ = 0;
  }

  char* mapping_ = nullptr;
  char* first_ = nullptr;
  size_t mapping_bytes_ = 0;
  uint32_t count_ = 0;
};

}  // namespace heddle::simt

#endif
