// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A program without lockstep_nccl.so beside it.
#include "comm/nccl/nccl.hpp"
#include "common/error.hpp"

#include <gtest/gtest.h>

#include <string>

namespace lockstep::testing {
namespace {

TEST(NcclMissingTest, OneLineNamesTheFileAndWhatToDo) {
  try {
    load_nccl();
    ADD_FAILURE() << "no error";
  } catch (const DeviceError& error) {
    const std::string text = error.what();
    EXPECT_EQ(error.code(), ExitCode::kDeviceUnavailable);
    EXPECT_NE(text.find("lockstep_nccl.so"), std::string::npos) << text;
    EXPECT_NE(text.find("install NCCL"), std::string::npos) << text;
    EXPECT_NE(text.find("use backend mpi"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace lockstep::testing
