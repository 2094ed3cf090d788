// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "kernels/nvml.hpp"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(NvmlTest, IsNotThereWithoutItsLibrary) {
  EXPECT_EQ(Nvml::open("libthere-is-no-such-library.so.1"), nullptr);
}

TEST(NvmlTest, IsNotThereIfTheLibraryIsAnother) {
  EXPECT_EQ(Nvml::open("libm.so.6"), nullptr);
}

TEST(NvmlTest, KnowsDriverMemoryAndNvlink) {
  const auto nvml = Nvml::open(LOCKSTEP_FAKE_NVML);
  ASSERT_NE(nvml, nullptr);
  EXPECT_EQ(nvml->driver_version(), "580.65.06");
  EXPECT_EQ(nvml->free_bytes("GPU-a"), std::size_t{100 + 'a'});
  EXPECT_EQ(nvml->nvlink("GPU-a", "GPU-b"), true);
  EXPECT_EQ(nvml->nvlink("GPU-a", "GPU-c"), false);
}

TEST(NvmlTest, SaysNothingOfGpusItDoesNotKnow) {
  const auto nvml = Nvml::open(LOCKSTEP_FAKE_NVML);
  ASSERT_NE(nvml, nullptr);
  EXPECT_EQ(nvml->free_bytes("GPU-emulated"), std::nullopt);
  EXPECT_EQ(nvml->nvlink("GPU-a", "GPU-emulated"), std::nullopt);
}

}  // namespace
}  // namespace lockstep
