// Lets what is built with a new glibc be loaded with an old one: 2.31 is enough. Linked into every shared object that travels (the
// addon, the device plugins, the kernel libraries), and hidden in each: nothing outside of it is changed.
//
// Two kinds of symbols ask for more. What moved into libc.so.6 with 2.34 (threads, dlopen) has an older version there too; a jump to
// that version is all it takes. The references are weak: an object names them all, and an old glibc may have some in a library that nobody
// loaded. What is new, and comes with the static C++ runtime, is made of what is old.
#include <cstdint>
#include <cstdlib>

#if defined(__linux__) && defined(__GLIBC__) && (defined(__x86_64__) || defined(__aarch64__))

#include <elf.h>
#include <link.h>
#include <sys/random.h>

#if defined(__x86_64__)
#define HEDDLE_BASE "GLIBC_2.2.5"
#define HEDDLE_JUMP(name) "jmp *heddle_old_" name "@GOTPCREL(%rip)\n"
#else
#define HEDDLE_BASE "GLIBC_2.17"
#define HEDDLE_JUMP(name) "adrp x16, :got:heddle_old_" name "\nldr x16, [x16, :got_lo12:heddle_old_" name "]\nbr x16\n"
#endif

#define HEDDLE_OLD_VERSION(name, version)                               \
  asm(".text\n"           \
      ".weak heddle_old_" name "\n.globl " name "\n.hidden " name "\n.type " name ",%function\n"   \
      ".symver heddle_old_" name "," name "@" version "\n" name ":\n" HEDDLE_JUMP(name) ".size " name ", .-" name "\n")
#define HEDDLE_OLD(name) HEDDLE_OLD_VERSION(name, HEDDLE_BASE)

HEDDLE_OLD("dlclose");
HEDDLE_OLD("dlerror");
HEDDLE_OLD("dlopen");
HEDDLE_OLD("dlsym");
HEDDLE_OLD("dlvsym");
HEDDLE_OLD("pthread_create");
HEDDLE_OLD("pthread_detach");
HEDDLE_OLD("pthread_getspecific");
HEDDLE_OLD("pthread_join");
HEDDLE_OLD("pthread_key_create");
HEDDLE_OLD("__pthread_key_create");
HEDDLE_OLD("pthread_key_delete");
HEDDLE_OLD("pthread_kill");
HEDDLE_OLD("pthread_mutex_trylock");
HEDDLE_OLD("pthread_mutexattr_destroy");
HEDDLE_OLD("pthread_mutexattr_init");
HEDDLE_OLD("pthread_mutexattr_settype");
HEDDLE_OLD("pthread_once");
HEDDLE_OLD("pthread_rwlock_destroy");
HEDDLE_OLD("pthread_rwlock_init");
HEDDLE_OLD("pthread_rwlock_rdlock");
HEDDLE_OLD("pthread_rwlock_timedrdlock");
HEDDLE_OLD("pthread_rwlock_timedwrlock");
HEDDLE_OLD("pthread_rwlock_tryrdlock");
HEDDLE_OLD("pthread_rwlock_trywrlock");
HEDDLE_OLD("pthread_rwlock_unlock");
HEDDLE_OLD("pthread_rwlock_wrlock");
HEDDLE_OLD("pthread_rwlockattr_destroy");
HEDDLE_OLD("pthread_rwlockattr_init");
HEDDLE_OLD("pthread_setspecific");
HEDDLE_OLD("sem_destroy");
HEDDLE_OLD("sem_init");
HEDDLE_OLD("sem_post");
HEDDLE_OLD("sem_timedwait");
HEDDLE_OLD("sem_trywait");
HEDDLE_OLD("sem_wait");
HEDDLE_OLD("shm_open");
HEDDLE_OLD("shm_unlink");
#if defined(__x86_64__)
HEDDLE_OLD_VERSION("dlmopen", "GLIBC_2.3.4");
HEDDLE_OLD_VERSION("pthread_condattr_setpshared", "GLIBC_2.2.5");
HEDDLE_OLD_VERSION("pthread_mutexattr_setpshared", "GLIBC_2.2.5");
HEDDLE_OLD_VERSION("pthread_rwlockattr_setpshared", "GLIBC_2.2.5");
HEDDLE_OLD_VERSION("pthread_spin_destroy", "GLIBC_2.2.5");
HEDDLE_OLD_VERSION("pthread_spin_init", "GLIBC_2.2.5");
HEDDLE_OLD_VERSION("pthread_spin_lock", "GLIBC_2.2.5");
HEDDLE_OLD_VERSION("pthread_spin_trylock", "GLIBC_2.2.5");
HEDDLE_OLD_VERSION("pthread_spin_unlock", "GLIBC_2.2.5");
#else
HEDDLE_OLD("dlmopen");
HEDDLE_OLD("pthread_condattr_setpshared");
HEDDLE_OLD("pthread_mutexattr_setpshared");
HEDDLE_OLD("pthread_rwlockattr_setpshared");
HEDDLE_OLD("pthread_spin_destroy");
HEDDLE_OLD("pthread_spin_init");
HEDDLE_OLD("pthread_spin_lock");
HEDDLE_OLD("pthread_spin_trylock");
HEDDLE_OLD("pthread_spin_unlock");
#endif

// Named apart in C++, since a new glibc declares the same.
#define HEDDLE_HIDDEN(symbol) __asm__(symbol) __attribute__((visibility("hidden")))

// Since 2.32. Whether a process has one thread only, in which counters need no atomics; false is always right.
extern "C" char heddle_single_threaded HEDDLE_HIDDEN("__libc_single_threaded");
char heddle_single_threaded = 0;

// Since 2.36; std::random_device of the static runtime asks it, and nothing of heddle's asks that.
extern "C" uint32_t heddle_arc4random() HEDDLE_HIDDEN("arc4random");
uint32_t heddle_arc4random() {
  uint32_t value = 0;
  if (getentropy(&value, sizeof value) != 0) abort();
  return value;
}

// Since 2.35; the unwinder of the static runtime finds the table of an address by it. The layout is glibc's.
struct heddle_found_object {
  unsigned long long flags;
  void* map_start;
  void* map_end;
  struct link_map* map;
  void* eh_frame;
  unsigned long long reserved[7];
};

namespace {

struct Search {
  uintptr_t address;
  heddle_found_object* found;
};

// 1 where the object holds the address.
int find_in(struct dl_phdr_info* info, size_t, void* data) {
  Search& search = *static_cast<Search*>(data);
  const void* table = nullptr;
  bool holds = false;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info->dlpi_phdr[i];
    const uintptr_t start = info->dlpi_addr + header.p_vaddr;
    if (header.p_type == PT_GNU_EH_FRAME) table = reinterpret_cast<const void*>(start);
    if (header.p_type != PT_LOAD || search.address < start || search.address - start >= header.p_memsz) continue;
    holds = true;
    search.found->map_start = reinterpret_cast<void*>(start);
    search.found->map_end = reinterpret_cast<void*>(start + header.p_memsz);
  }
  if (!holds) return 0;
  search.found->eh_frame = const_cast<void*>(table);
  return 1;
}

}  // namespace

extern "C" int heddle_find_object(void* address, heddle_found_object* found) HEDDLE_HIDDEN("_dl_find_object");
int heddle_find_object(void* address, heddle_found_object* found) {
  *found = {};
  Search search{reinterpret_cast<uintptr_t>(address), found};
  return dl_iterate_phdr(find_in, &search) == 1 && found->eh_frame != nullptr ? 0 : -1;
}

#endif
