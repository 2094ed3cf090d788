// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Every case of `bench kernels` once, on the emulator with fake vendor libraries: what it reads and writes
/// lies within its memory.
#include "kernels/vendor/vendor.hpp"
#include "tests/support/test_settings.hpp"
#include "trainer/tools/kernel_cases.hpp"

#include <gtest/gtest.h>

#include <span>
#include <string>

namespace lockstep::bench {
namespace {

class KernelContestTest : public ::testing::TestWithParam<std::string> {
 protected:
  KernelContestTest()
      : device_(emulated::platform().make_device(0)),
        stream_(device_->make_stream()),
        native_(emulated::platform().make_ops(*device_)),
        vendor_(vendor::make_ops(*device_, VendorAlgorithms::kReproducible)),
        fastest_(vendor::make_ops(*device_, VendorAlgorithms::kFastest)) {}

  std::vector<KernelCase> cases() const {
    return kernel_cases(Network::load(GetParam(), {1, 28, 28}, 10), 3);
  }
  void run(const QueueCall& queue) {
    for (int call = 0; queue && call < 2; ++call) queue(*stream_, call);
  }

  std::unique_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<DeviceOps> native_;
  std::unique_ptr<VendorOps> vendor_, fastest_;
};

TEST_P(KernelContestTest, EveryRivalRunsWithinItsMemory) {
  int vendors = 0, libraries = 0;
  for (const KernelCase& kernel : cases()) {
    SCOPED_TRACE(kernel.name);
    BenchMemory memory(*device_, *stream_);
    const auto comparison = make_comparison(kernel, 2, 1, {*native_, vendor_.get(), fastest_.get()}, memory);
    ASSERT_TRUE(comparison.native);
    for (const QueueCall& queue :
         {comparison.restore, comparison.native, comparison.vendor, comparison.library})
      run(queue);
    vendors += comparison.vendor ? 1 : 0;
    libraries += comparison.library ? 1 : 0;
  }
  EXPECT_GE(vendors, 11) << "each layer's three directions, but for the first one's data gradient";
  EXPECT_GE(libraries, 12) << "the same, and softmax";
}

TEST_P(KernelContestTest, WithoutVendorsThereAreNoRivals) {
  for (const KernelCase& kernel : cases()) {
    BenchMemory memory(*device_, *stream_);
    const auto comparison = make_comparison(kernel, 2, 1, {*native_}, memory);
    EXPECT_TRUE(comparison.native && !comparison.vendor && !comparison.library) << kernel.name;
  }
}

const std::string kNetworks[] = {"net", "lenet"};

INSTANTIATE_TEST_SUITE_P(Networks, KernelContestTest,
                         ::testing::ValuesIn(std::span(kNetworks).first(test::effort(2, 1))));

}  // namespace
}  // namespace lockstep::bench
