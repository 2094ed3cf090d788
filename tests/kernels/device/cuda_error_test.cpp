// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "common/error.hpp"
#include "kernels/device_messages.hpp"

#include <gtest/gtest.h>

#include <string>

namespace lockstep {
namespace {

CudaFailure failure(const char* name) {
  return {name, "a text", "cudaSomething(x)", "somewhere.cu", 42};
}

TEST(CudaErrorTest, WhatTheDeviceCausesIsADeviceErrorWithAdvice) {
  for (const char* name : {"cudaErrorMemoryAllocation", "cudaErrorNoDevice", "cudaErrorInsufficientDriver",
                           "cudaErrorUnsupportedPtxVersion", "cudaErrorNoKernelImageForDevice",
                           "cudaErrorDevicesUnavailable", "cudaErrorSystemNotReady"}) {
    try {
      throw_cuda_error(failure(name));
    } catch (const DeviceError& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find(std::string("cudaSomething(x) failed: ") + name + " (a text) at somewhere.cu:42; "),
                std::string::npos)
          << text;
      EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    }
  }
}

TEST(CudaErrorTest, WhatTheProgramCausesIsAnInternalError) {
  for (const char* name : {"cudaErrorInvalidValue", "cudaErrorIllegalAddress", "cudaErrorLaunchFailure"})
    EXPECT_THROW(throw_cuda_error(failure(name)), InternalError) << name;
}

TEST(CudaErrorTest, FailuresOfDestructorsAreLoggedOncePerCause) {
  testing::internal::CaptureStderr();
  log_cuda_error(failure("cudaErrorIllegalAddress"));
  log_cuda_error(failure("cudaErrorIllegalAddress"));
  log_cuda_error(failure("cudaErrorCudartUnloading"));
  EXPECT_EQ(
      testing::internal::GetCapturedStderr(),
      "lockstep: warning: cudaSomething(x) failed: cudaErrorIllegalAddress (a text) at somewhere.cu:42\n");
}

}  // namespace
}  // namespace lockstep
