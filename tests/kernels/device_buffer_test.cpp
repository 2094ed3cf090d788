// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Owners of device memory, on a stream whose copies are late.
#include "kernels/device_buffer.hpp"

#include "tests/support/prelude.hpp"

#include <cstring>

namespace lockstep {
namespace {

/// Copies between what is all host memory, once it is waited for.
class LateCopiesStream final : public Stream {
 public:
  void* native_handle() const override { return nullptr; }
  void copy_to_device(void* to, const void* from, std::size_t bytes) override { add(to, from, bytes); }
  void copy_to_host(void* to, const void* from, std::size_t bytes) override { add(to, from, bytes); }
  void copy_on_device(void* to, const void* from, std::size_t bytes) override { add(to, from, bytes); }
  void fill_zero(void* /*device*/, std::size_t /*bytes*/) override {}
  void record(Event& /*event*/) override {}
  void wait(const Event& /*event*/) override {}
  void synchronize() override {
    for (const auto& copy : std::exchange(copies_, {})) copy();
  }
  void begin_capture() override {}
  std::unique_ptr<Graph> end_capture() override { return nullptr; }
  void launch(Graph& /*graph*/) override {}

 private:
  void add(void* to, const void* from, std::size_t bytes) {
    copies_.emplace_back([=] { std::memcpy(to, from, bytes); });
  }
  std::vector<std::function<void()>> copies_;
};

TEST(DownloadTest, TheValuesAreThereWhenItReturns) {
  LateCopiesStream stream;
  const std::vector<int> values = {1, 2, 3};
  EXPECT_EQ(download(stream, values.data(), values.size()), values);
}

}  // namespace
}  // namespace lockstep
