// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// VendorScratch memory of the vendor kernels. With the fake libraries only.
#include "kernels/vendor/handles.hpp"

#include "common/error.hpp"
#include "kernels/platform.hpp"
#include "kernels/vendor/conv2d_algorithm.hpp"
#include "kernels/vendor/vendor.hpp"
#include "tests/support/messages.hpp"

#include <gtest/gtest.h>

namespace lockstep::vendor {

namespace {

/// The emulator's device, which counts what is taken and given back.
class CountingDevice final : public Device {
 public:
  const DeviceProperties& properties() const override { return device_->properties(); }
  std::string_view kind() const override { return device_->kind(); }
  void* allocate(std::size_t bytes) override {
    ++allocated;
    return device_->allocate(bytes);
  }
  void free(void* memory) noexcept override {
    if (memory != nullptr) ++freed;
    device_->free(memory);
  }
  void* allocate_pinned(std::size_t bytes) override { return device_->allocate_pinned(bytes); }
  void free_pinned(void* memory) noexcept override { device_->free_pinned(memory); }
  std::unique_ptr<Stream> make_stream(Priority priority) override { return device_->make_stream(priority); }
  std::unique_ptr<Event> make_event(Timing timing) override { return device_->make_event(timing); }

  int allocated = 0, freed = 0;

 private:
  std::unique_ptr<Device> device_ = emulated::platform().make_device(0);
};

class StreamContextTest : public ::testing::Test {
 protected:
  CountingDevice device_;
  std::unique_ptr<Stream> stream_ = device_.make_stream(Device::Priority::kNormal);
  StreamContext context_{device_, static_cast<cudaStream_t>(stream_->native_handle())};
};

TEST_F(StreamContextTest, MemoryThatIsLargeEnoughIsUsedAgain) {
  float* first = context_.floats(VendorScratch::kBeforeEpilogue, 100);
  EXPECT_EQ(context_.floats(VendorScratch::kBeforeEpilogue, 60), first);
}

TEST_F(StreamContextTest, OutgrownMemoryStaysForTheGraphsThatUseIt) {
  float* first = context_.floats(VendorScratch::kBeforeEpilogue, 100);
  EXPECT_NE(context_.floats(VendorScratch::kBeforeEpilogue, 200), first);
  EXPECT_EQ(device_.freed, 0);
}

TEST_F(StreamContextTest, EachPurposeHasItsOwnMemory) {
  EXPECT_NE(context_.floats(VendorScratch::kWeightGradient, 10),
            context_.floats(VendorScratch::kBiasGradient, 10));
}

TEST_F(StreamContextTest, StreamsDoNotShareMemory) {
  const auto stream = device_.make_stream(Device::Priority::kNormal);
  StreamContext other(device_, static_cast<cudaStream_t>(stream->native_handle()));
  EXPECT_NE(context_.floats(VendorScratch::kX, 10), other.floats(VendorScratch::kX, 10));
}

/// As the stream of the all-reduce.
TEST(StreamWithoutLibrariesTest, TakesNoMemory) {
  CountingDevice device;
  const auto stream = device.make_stream(Device::Priority::kHigh);
  const DeviceBuffer<std::int64_t> sums(device, 1);
  const DeviceBuffer<float> floats(device, 1);
  const std::unique_ptr<VendorOps> ops(lockstep_make_vendor_ops(device, VendorAlgorithms::kReproducible));
  stream->fill_zero(sums.data(), sums.bytes());
  ops->exact_to_fp32(*stream, 1, sums.data(), nullptr, floats.data());
  EXPECT_EQ(device.allocated, 2) << "the test's own";
}

// Errors from a failed call of a library. With the fake libraries only.

TEST(VendorErrorTest, SuccessThrowsNothing) {
  EXPECT_NO_THROW(LOCKSTEP_CUDNN(CUDNN_STATUS_SUCCESS));
  EXPECT_NO_THROW(LOCKSTEP_CUBLAS(CUBLAS_STATUS_SUCCESS));
}

TEST(VendorErrorTest, UnusableLibraryIsADeviceErrorOfOneLineWithAFix) {
  expect_error<DeviceError>(
      [] { LOCKSTEP_CUDNN(static_cast<cudnnStatus_t>(CUDNN_STATUS_NOT_INITIALIZED)); },
      {"CUDNN_STATUS_NOT_INITIALIZED (first line of the detail)", "use kernels native", "handles_test.cpp"});
  message_of<DeviceError>([] { LOCKSTEP_CUBLAS(CUBLAS_STATUS_ALLOC_FAILED); });
}

TEST(VendorErrorTest, OtherFailuresAreInternalErrors) {
  message_of<InternalError>([] { LOCKSTEP_CUDNN(CUDNN_STATUS_BAD_PARAM); });
  message_of<InternalError>([] { LOCKSTEP_CUBLAS(CUBLAS_STATUS_INVALID_VALUE); });
}

TEST(VendorErrorTest, EmulatedDeviceHasNoVendorKernels) {
  const auto device = emulated::platform().make_device(0);
  expect_error<DeviceError>([&] { make_vendor_ops(*device); }, {"kernels vendor needs a GPU"});
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
