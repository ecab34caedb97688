// The CPU device's side of a kernel file: everything that CUDA source needs to compile with a plain C++17 compiler and run as it
// stands. `kernel.cuh` includes it in place of `cuda.cuh` when HEDDLE_SIMT is defined.
//
//   types.hpp    CUDA qualifiers, vector types, math        fiber.hpp   stacks and the switch between them
//   half.hpp     half and bfloat16 storage                  worker.hpp  one block at a time: its fibers, faults, meetings
//   fault.hpp    one-line errors                            warp.hpp    __syncthreads, shuffles, votes, atomics
//   buffer.hpp   checked In / Out handles                   shared.hpp  block-shared arrays, race-checked
//   launch.hpp   the grid over the plugin's workers         async.hpp, mma.hpp   tensor-core bodies' instructions (mma.cuh)
//   sectors.hpp  sectors of memory that launches move              hopper.hpp   clusters, the copy engine and wgmma, for tests of main loops
//
// Nothing here needs a CUDA toolkit or a system package, and headers that are slow to compile stay out.
#ifndef HEDDLE_SIMT_HPP
#define HEDDLE_SIMT_HPP

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <new>
#include <type_traits>

#include "heddle/abi.h"

// Hidden, so that two kernel libraries in one process share no state and a library can be unloaded. The system's headers come first, since their
// declarations must stay visible.
#pragma GCC visibility push(hidden)
#include "simt/types.hpp"
#include "simt/half.hpp"
#include "simt/fault.hpp"
#include "simt/fiber.hpp"
#include "simt/worker.hpp"
#include "simt/warp.hpp"
#include "simt/shared.hpp"
#include "simt/buffer.hpp"
#if defined(HEDDLE_SIMT_HOPPER)
#include "simt/hopper.hpp"
#endif
#include "simt/launch.hpp"
#pragma GCC visibility pop

#endif
