// Finds and opens cuBLASLt: the file named by HEDDLE_CUBLASLT, else the loader's path, the toolkit, and the Python environments on PATH (a GPU
// machine often has the library only inside one).
#include "cublaslt.hpp"

#include <dlfcn.h>
#include <glob.h>

#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

namespace heddle {

namespace {

constexpr const char* sonames[] = {"libcublasLt.so.13", "libcublasLt.so.12"};

void* open_library(const std::string& path) { return dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL); }

std::vector<std::string> matches(const std::string& pattern) {
  std::vector<std::string> found;
  glob_t result = {};
  if (glob(pattern.c_str(), 0, nullptr, &result) == 0) found.assign(result.gl_pathv, result.gl_pathv + result.gl_pathc);
  globfree(&result);
  return found;
}

// Patterns for pip's library folder, relative to a folder of PATH: <prefix>/bin -> <prefix>/lib/python3.x/site-packages/nvidia/...
std::vector<std::string> python_patterns(const std::string& soname) {
  std::vector<std::string> patterns;
  const char* path = getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    for (const char* packages : {"site-packages", "dist-packages"}) {
      for (const char* wheel : {"cu13", "cublas"}) {
        patterns.push_back(folder + "/../lib/python3*/" + packages + "/nvidia/" + wheel + "/lib/" + soname);
      }
    }
  }
  return patterns;
}

void* find_library() {
  const char* named = getenv("HEDDLE_CUBLASLT");
  if (named != nullptr && *named != '\0') return strcmp(named, "off") == 0 ? nullptr : open_library(named);
  for (const std::string soname : sonames) {
    for (const std::string& path : {soname, "/usr/local/cuda/lib64/" + soname}) {
      if (void* library = open_library(path)) return library;
    }
    for (const std::string& pattern : python_patterns(soname)) {
      for (const std::string& path : matches(pattern)) {
        if (void* library = open_library(path)) return library;
      }
    }
  }
  return nullptr;
}

template <class Function>
bool bind_one(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

}  // namespace

// The library stays open for the life of the process: its CUDA modules cannot be unloaded safely.
CublasLt::CublasLt() {
  void* library = find_library();
  loaded_ = library != nullptr && bind(library);
}

bool CublasLt::bind(void* library) {
  return bind_one(library, "cublasLtCreate", create) && bind_one(library, "cublasLtDestroy", destroy) &&
         bind_one(library, "cublasLtGetVersion", get_version) && bind_one(library, "cublasLtGetStatusName", status_name) &&
         bind_one(library, "cublasLtMatmulDescCreate", desc_create) &&
         bind_one(library, "cublasLtMatmulDescDestroy", desc_destroy) &&
         bind_one(library, "cublasLtMatmulDescSetAttribute", desc_set) &&
         bind_one(library, "cublasLtMatrixLayoutCreate", layout_create) &&
         bind_one(library, "cublasLtMatrixLayoutDestroy", layout_destroy) &&
         bind_one(library, "cublasLtMatrixLayoutSetAttribute", layout_set) &&
         bind_one(library, "cublasLtMatmulPreferenceCreate", preference_create) &&
         bind_one(library, "cublasLtMatmulPreferenceDestroy", preference_destroy) &&
         bind_one(library, "cublasLtMatmulPreferenceSetAttribute", preference_set) &&
         bind_one(library, "cublasLtMatmulAlgoGetHeuristic", heuristic) &&
         bind_one(library, "cublasLtMatmulAlgoCheck", algo_check) && bind_one(library, "cublasLtMatmulAlgoGetIds", algo_ids) &&
         bind_one(library, "cublasLtMatmulAlgoInit", algo_init) &&
         bind_one(library, "cublasLtMatmulAlgoCapGetAttribute", algo_capability) &&
         bind_one(library, "cublasLtMatmulAlgoConfigSetAttribute", algo_configure) &&
         bind_one(library, "cublasLtMatmulAlgoConfigGetAttribute", algo_config) && bind_one(library, "cublasLtMatmul", matmul);
}

int32_t CublasLt::version() const { return loaded_ ? static_cast<int32_t>(get_version()) : 0; }

}  // namespace heddle
