// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The plugin itself, on machines with and without a GPU. That it loads, and that calls, virtual calls and
/// exceptions cross its border.
#include "common/error.hpp"
#include "kernels/vendor/vendor.hpp"
#include "tests/support/messages.hpp"

namespace lockstep::test {
namespace {

/// Says that it is a GPU, of a number that no machine has.
class NoSuchGpu final : public Device {
 public:
  NoSuchGpu() { properties_.index = 12345; }
  const DeviceProperties& properties() const override { return properties_; }
  std::string_view kind() const override { return "cuda"; }
  void* allocate(std::size_t) override { return nullptr; }
  void free(void*) noexcept override {}
  void* allocate_pinned(std::size_t) override { return nullptr; }
  void free_pinned(void*) noexcept override {}
  std::unique_ptr<Stream> make_stream(Priority) override { return nullptr; }
  std::unique_ptr<Event> make_event(Timing) override { return nullptr; }

 private:
  DeviceProperties properties_;
};

TEST(VendorPluginTest, LoadsAndItsErrorsAreOurs) {
  NoSuchGpu gpu;
  expect_error<Error>([&] { make_vendor_ops(gpu); }, {"cudaSetDevice"});
}

}  // namespace
}  // namespace lockstep::test
