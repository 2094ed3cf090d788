// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What a failed call of a library becomes. With the fake libraries only.
#include "common/error.hpp"

#include "kernels/vendor/conv2d.hpp"
#include "kernels/vendor/error.hpp"
#include "kernels/vendor/vendor.hpp"

#include <gtest/gtest.h>

namespace lockstep::vendor {
namespace {

template <typename Expected, typename Call>
std::string message_of(const Call& call) {
  try {
    call();
  } catch (const Expected& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

TEST(VendorErrorTest, SuccessThrowsNothing) {
  EXPECT_NO_THROW(LOCKSTEP_CUDNN(CUDNN_STATUS_SUCCESS));
  EXPECT_NO_THROW(LOCKSTEP_CUBLAS(CUBLAS_STATUS_SUCCESS));
}

TEST(VendorErrorTest, UnusableLibraryIsADeviceErrorOfOneLineWithAFix) {
  const auto message = message_of<DeviceError>(
      [] { LOCKSTEP_CUDNN(static_cast<cudnnStatus_t>(CUDNN_STATUS_NOT_INITIALIZED)); });
  EXPECT_NE(message.find("CUDNN_STATUS_NOT_INITIALIZED (first line of the detail)"), std::string::npos)
      << message;
  EXPECT_NE(message.find("use kernels native"), std::string::npos) << message;
  EXPECT_NE(message.find("error_test.cpp"), std::string::npos) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  message_of<DeviceError>([] { LOCKSTEP_CUBLAS(CUBLAS_STATUS_ALLOC_FAILED); });
}

TEST(VendorErrorTest, OtherFailuresAreInternalErrors) {
  message_of<InternalError>([] { LOCKSTEP_CUDNN(CUDNN_STATUS_BAD_PARAM); });
  message_of<InternalError>([] { LOCKSTEP_CUBLAS(CUBLAS_STATUS_INVALID_VALUE); });
}

TEST(VendorErrorTest, EmulatedDeviceHasNoVendorKernels) {
  const auto device = emulated::platform().make_device(0);
  const auto message = message_of<DeviceError>([&] { make_vendor_ops(*device); });
  EXPECT_NE(message.find("kernels vendor needs a GPU"), std::string::npos) << message;
}

/// The fake's ranking has TF32, an algorithm that fails and one that is not deterministic before the right
/// one.
TEST(VendorAlgorithmTest, ReproducibleOnesAreDeterministicPlainAndWithoutTf32) {
  const auto chosen = choose_algorithm<BackwardWeightsApi>(nullptr, VendorAlgorithms::kReproducible, nullptr,
                                                           nullptr, nullptr, nullptr);
  EXPECT_EQ(chosen.algorithm, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1);
  EXPECT_GT(chosen.workspace_bytes, 0U);
}

TEST(VendorAlgorithmTest, ForwardTakesTheLibrarysChoiceAmongPlainOnes) {
  const auto chosen = choose_algorithm<ForwardApi>(nullptr, VendorAlgorithms::kReproducible, nullptr, nullptr,
                                                   nullptr, nullptr);
  EXPECT_EQ(chosen.algorithm, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM);
}

TEST(VendorAlgorithmTest, FastestIsTheFirstThatWorksWithoutTf32) {
  const auto chosen =
      choose_algorithm<ForwardApi>(nullptr, VendorAlgorithms::kFastest, nullptr, nullptr, nullptr, nullptr);
  EXPECT_EQ(chosen.algorithm, CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD);
}

}  // namespace
}  // namespace lockstep::vendor
