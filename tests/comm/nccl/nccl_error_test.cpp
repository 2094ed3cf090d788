// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What becomes of a result that is not ncclSuccess.
#include "comm/nccl/nccl_communicator.hpp"

#include <gtest/gtest.h>

#include <string>

namespace lockstep::testing {
namespace {

NcclError error_of(ncclResult_t result) {
  try {
    LOCKSTEP_NCCL(result);
  } catch (const NcclError& error) {
    return error;
  }
  return {ExitCode::kOk, "no error"};
}

TEST(NcclErrorTest, SuccessAndWorkInProgressAreNoErrors) {
  EXPECT_EQ(error_of(ncclSuccess).code(), ExitCode::kOk);
  EXPECT_EQ(error_of(ncclInProgress).code(), ExitCode::kOk);
}

TEST(NcclErrorTest, TheExitCodeSaysWhoIsToBlame) {
  EXPECT_EQ(error_of(ncclRemoteError).code(), ExitCode::kPeerLost);
  EXPECT_EQ(error_of(ncclSystemError).code(), ExitCode::kPeerLost);
  EXPECT_EQ(error_of(ncclUnhandledCudaError).code(), ExitCode::kDeviceUnavailable);
  EXPECT_EQ(error_of(ncclInvalidUsage).code(), ExitCode::kDeviceUnavailable);
  EXPECT_EQ(error_of(ncclInvalidArgument).code(), ExitCode::kInternal);
  EXPECT_EQ(error_of(ncclInternalError).code(), ExitCode::kInternal);
}

TEST(NcclErrorTest, OneLineNamesCallPlaceAndFix) {
  const std::string text = error_of(ncclRemoteError).what();
  EXPECT_NE(text.find("nccl_error_test.cpp:"), std::string::npos) << text;
  EXPECT_NE(text.find(" in result: remote process exited (socket closed by peer); "), std::string::npos)
      << text;
  EXPECT_NE(text.find("NCCL_DEBUG=WARN"), std::string::npos) << text;
  EXPECT_EQ(text.find('\n'), std::string::npos) << text;
}

}  // namespace
}  // namespace lockstep::testing
