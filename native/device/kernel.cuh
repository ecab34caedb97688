// Includes of every generated file: the target's own vocabulary, then the headers both targets share. The same source is compiled by nvcc
// for GPUs and by a C++ compiler for the CPU device.
#ifndef HEDDLE_KERNEL_CUH
#define HEDDLE_KERNEL_CUH

#include <math.h>
#include <stdint.h>
#include <string.h>

#include <type_traits>

#include "heddle/abi.h"

#if defined(HEDDLE_SIMT)
#include "simt.hpp"
#define HEDDLE_UNROLL
#define HEDDLE_UNROLL_FEW
#define HEDDLE_ROLLED
#else
#include "cuda.cuh"
#define HEDDLE_UNROLL _Pragma("unroll")
#define HEDDLE_UNROLL_FEW _Pragma("unroll 4")
#define HEDDLE_ROLLED _Pragma("unroll 1")
#endif

#if defined(HEDDLE_SIMT)
// As in simt.hpp: two kernel libraries in one process share nothing.
#pragma GCC visibility push(hidden)
#endif
#include "convert.cuh"
#include "histogram.cuh"
#include "index.cuh"
#include "launcher.cuh"
#include "math.cuh"
#include "monoids.cuh"
#include "random.cuh"
#include "team.cuh"
#include "threshold.cuh"
#include "vector.cuh"
#if defined(HEDDLE_SIMT)
#pragma GCC visibility pop
#endif

#endif
