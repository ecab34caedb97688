// Device of a reproduction's kernel: the CPU device, or the current CUDA device, by the compiler's flag.
#ifndef HEDDLE_REPRO_DEVICE_HPP
#define HEDDLE_REPRO_DEVICE_HPP

#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "heddle/abi.h"

#ifdef HEDDLE_SIMT
#include <cstdlib>
#include <thread>

#include "workers.hpp"
#else
#include <cuda_runtime.h>
#endif

namespace repro {

#ifdef HEDDLE_SIMT

// Device memory is host memory, aligned as on a GPU.
class Memory {
 public:
  explicit Memory(const std::vector<char>& block)
      : bytes_(block.size()), data_(static_cast<char*>(std::aligned_alloc(256, (block.size() / 256 + 1) * 256))), workers_(threads()) {
    if (data_ == nullptr) throw std::runtime_error("no memory for " + std::to_string(bytes_) + " bytes");
    std::memcpy(data_, block.data(), bytes_);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() { std::free(data_); }

  char* data() { return data_; }
  void* queue() { return &executor_; }
  std::vector<char> read() { return std::vector<char>(data_, data_ + bytes_); }

 private:
  static uint32_t threads() {
    const unsigned int cores = std::thread::hardware_concurrency();
    return cores == 0 ? 1 : cores;
  }
  static int32_t parallel_for(void* self, int64_t count, int32_t (*run)(void*, int64_t, heddle_error*), void* data, heddle_error* error) {
    return static_cast<Memory*>(self)->workers_.parallel_for(count, run, data, error);
  }

  size_t bytes_;
  char* data_;
  heddle::simt::Workers workers_;
  heddle_simt_executor executor_ = {this, parallel_for};
};

#else

class Memory {
 public:
  explicit Memory(const std::vector<char>& block) : bytes_(block.size()) {
    require(cudaMalloc(&data_, bytes_));
    require(cudaMemcpy(data_, block.data(), bytes_, cudaMemcpyHostToDevice));
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() { cudaFree(data_); }

  char* data() { return static_cast<char*>(data_); }
  void* queue() { return nullptr; }
  std::vector<char> read() {
    require(cudaDeviceSynchronize());
    std::vector<char> block(bytes_);
    require(cudaMemcpy(block.data(), data_, bytes_, cudaMemcpyDeviceToHost));
    return block;
  }

 private:
  static void require(cudaError_t status) {
    if (status != cudaSuccess) throw std::runtime_error(std::string("CUDA: ") + cudaGetErrorString(status));
  }

  size_t bytes_;
  void* data_ = nullptr;
};

#endif

}  // namespace repro

#endif
