// Additions to kernel.cuh for generated sources with measured variants. Files without such variants do not include it.
#ifndef HEDDLE_TUNED_CUH
#define HEDDLE_TUNED_CUH

#include "launcher.cuh"

namespace heddle {

/// A vector width as a type, for launchers that choose among several.
template <int Vec>
struct Width {
  static constexpr int value = Vec;
};

/// True if a variant measured on an architecture (90 for sm_90, 0 for the CPU device) may run here. The CPU device takes the variants of
/// every architecture, so that it tests the kernels of a GPU.
inline bool runs_on(int architecture) {
#if defined(HEDDLE_SIMT)
  return architecture >= 0;
#else
  int device = 0;
  int major = 0;
  int minor = 0;
  return cudaGetDevice(&device) == cudaSuccess &&
         cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess &&
         cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device) == cudaSuccess &&
         10 * major + minor == architecture;
#endif
}

}  // namespace heddle

#endif
