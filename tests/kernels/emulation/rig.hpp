// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Rig of the emulator's tests: device arrays, and kernels tried in several thread orders.
#pragma once

#include "common/error.hpp"
#include "kernels/emulation/order.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"

#include <gpu/launch.cuh>

namespace lockstep::emulated {

/// Owns `size` elements of T in device memory, which the host of an emulated device can read.
template <typename T>
class DeviceArray {
 public:
  explicit DeviceArray(std::size_t size) : size_(size) {
    void* memory = nullptr;
    LOCKSTEP_CUDA(cudaMalloc(&memory, size * sizeof(T)));
    data_ = static_cast<T*>(memory);
  }
  DeviceArray(std::size_t size, T value) : DeviceArray(size) {
    for (std::size_t i = 0; i < size; ++i) data_[i] = value;
  }
  ~DeviceArray() { LOCKSTEP_CUDA_NOEXCEPT(cudaFree(data_)); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* data() const { return data_; }
  T& operator[](std::size_t i) const { return data_[i]; }
  std::vector<T> values() const { return {data_, data_ + size_}; }

 private:
  T* data_ = nullptr;
  std::size_t size_;
};

/// Starts in the natural order, and leaves it behind.
class EmulatorTest : public testing::Test {
 protected:
  EmulatorTest() { set_thread_order(0); }
  ~EmulatorTest() override { set_thread_order(0); }
};

/// The results of `compute` under the seeds 0 ... 9, each once. More than one: they depend on the order.
template <typename Compute>
auto results_of_ten_orders(const Compute& compute) {
  std::set<decltype(compute())> results;
  for (unsigned seed = 0; seed < 10; ++seed) {
    set_thread_order(seed);
    results.insert(compute());
  }
  set_thread_order(0);
  return results;
}

}  // namespace lockstep::emulated
