/** The CMakeLists.txt of an export: a shared library of the program with its kernels, for either target, and the example. */
import type { Target } from '../toolchain/index.js'

/** @param files of kernels, relative to the kernels folder @param sources of the export itself, and other sources of the package that it needs */
export const cmakeText = (
  program: string,
  files: readonly string[],
  target: Target,
  sources: readonly string[] = [`src/${program}.cpp`],
): string => `# ${program}: a shared library of the program with its kernels, and an example that runs it. Made by \`heddle export\`.
#
#   cmake -S . -B build -DHEDDLE_TARGET=${target} && cmake --build build --parallel
#
# Output: build/lib${program}.so and build/example. cuda needs nvcc 12 or later; simt, the CPU device, a C++17 compiler alone.
cmake_minimum_required(VERSION 3.22)
set(HEDDLE_TARGET ${target} CACHE STRING "cuda or simt")
if(NOT HEDDLE_TARGET MATCHES "^(cuda|simt)$")
  message(FATAL_ERROR "HEDDLE_TARGET is \${HEDDLE_TARGET}: allowed are cuda and simt")
endif()
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
project(${program} LANGUAGES CXX)
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
find_package(Threads REQUIRED)

set(kernels
${files.map((file) => `  kernels/${file}\n`).join('')})
set(sources ${sources.join(' ')} src/export/place.cpp src/export/program.cpp src/export/weights.cpp)
if(HEDDLE_TARGET STREQUAL simt)
  # The text of kernels is C++ here; results do not depend on the machine's instructions.
  set_source_files_properties(\${kernels} PROPERTIES LANGUAGE CXX COMPILE_OPTIONS "-xc++;-O1;-DHEDDLE_SIMT=1;-ffp-contract=off")
  set_source_files_properties(src/simt/plugin/matmul.cpp PROPERTIES COMPILE_OPTIONS "-O3;-ffp-contract=fast")
  add_library(${program} SHARED \${sources} \${kernels} src/export/backend_simt.cpp src/simt/plugin/matmul.cpp src/simt/plugin/workers.cpp)
  target_include_directories(${program} PRIVATE src/simt/include src/simt/plugin)
else()
  if(NOT CMAKE_CUDA_ARCHITECTURES)
    # Machine code for the two generations in use and PTX for what comes after.
    set(CMAKE_CUDA_ARCHITECTURES 80-real 90a-real 90-virtual)
  endif()
  enable_language(CUDA)
  set(CMAKE_CUDA_STANDARD 17)
  set(CMAKE_CUDA_VISIBILITY_PRESET hidden)
  find_package(CUDAToolkit REQUIRED)
  add_library(${program} SHARED \${sources} \${kernels} src/export/backend_cuda.cpp src/cuda/cublaslt.cpp src/cuda/error.cpp
    src/cuda/matmul.cpp src/cuda/matmul_plan.cpp src/cuda/matmul_problem.cpp src/cuda/fallback_matmul.cu)
  set_target_properties(${program} PROPERTIES CUDA_RUNTIME_LIBRARY Static)
  target_include_directories(${program} PRIVATE src/cuda)
  target_link_libraries(${program} PRIVATE CUDA::cudart_static)
endif()
target_include_directories(${program} PUBLIC include PRIVATE src/export src/device)
target_link_libraries(${program} PRIVATE Threads::Threads \${CMAKE_DL_LIBS})
# Several exports and their runtimes may be in one process.
target_link_options(${program} PRIVATE LINKER:--exclude-libs,ALL)

# Not where another project adds this folder.
if(CMAKE_SOURCE_DIR STREQUAL CMAKE_CURRENT_SOURCE_DIR)
  add_executable(example example/main.cpp)
  target_link_libraries(example PRIVATE ${program})
endif()
`
