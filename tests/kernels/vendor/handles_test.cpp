// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// VendorScratch memory of the vendor kernels. With the fake libraries only.
#include "kernels/vendor/handles.hpp"

#include "common/error.hpp"
#include "kernels/platform.hpp"
#include "kernels/vendor/conv2d_algorithm.hpp"
#include "kernels/vendor/vendor.hpp"
#include "tests/support/messages.hpp"

namespace lockstep::vendor {

namespace {

/// The emulator's device, which counts what is taken and given back.
class CountingDevice final : public Device {
 public:
  const DeviceProperties& properties() const override { return device_->properties(); }
  std::string_view kind() const override { return device_->kind(); }
  void* allocate(std::size_t bytes) override {
    ++allocated;
    last_bytes = bytes;
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
  std::size_t last_bytes = 0;

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
  EXPECT_EQ(device_.last_bytes, 400U);
  EXPECT_EQ(context_.floats(VendorScratch::kBeforeEpilogue, 60), first);
  EXPECT_EQ(context_.floats(VendorScratch::kBeforeEpilogue, 100), first);
  EXPECT_EQ(context_.floats(VendorScratch::kX, 0), nullptr);
  EXPECT_TRUE(is_aligned(first) && is_aligned(first + 4));
  EXPECT_FALSE(is_aligned(first + 2));
  EXPECT_NE(context_.floats(VendorScratch::kBeforeEpilogue, 200), first);
  EXPECT_EQ(device_.freed, 0) << "graphs use what was outgrown";
}

TEST_F(StreamContextTest, EachPurposeAndStreamHasItsOwnMemory) {
  const auto stream = device_.make_stream(Device::Priority::kNormal);
  StreamContext other(device_, static_cast<cudaStream_t>(stream->native_handle()));
  const std::set<float*> different = {context_.floats(VendorScratch::kWeightGradient, 10),
                                      context_.floats(VendorScratch::kBiasGradient, 10),
                                      other.floats(VendorScratch::kBiasGradient, 10)};
  EXPECT_EQ(different.size(), 3U);
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

TEST(VendorErrorTest, SuccessThrowsNothingAndMostFailuresAreInternalErrors) {
  EXPECT_NO_THROW(LOCKSTEP_CUDNN(CUDNN_STATUS_SUCCESS));
  EXPECT_NO_THROW(LOCKSTEP_CUBLAS(CUBLAS_STATUS_SUCCESS));
  message_of<InternalError>([] { LOCKSTEP_CUDNN(CUDNN_STATUS_BAD_PARAM); });
  message_of<InternalError>([] { LOCKSTEP_CUBLAS(CUBLAS_STATUS_INVALID_VALUE); });
}

TEST(VendorErrorTest, UnusableLibraryIsADeviceErrorOfOneLineWithAFix) {
  expect_error<DeviceError>(
      [] { LOCKSTEP_CUDNN(static_cast<cudnnStatus_t>(CUDNN_STATUS_NOT_INITIALIZED)); },
      {"CUDNN_STATUS_NOT_INITIALIZED (first line of the detail)", "use kernels native", "handles_test.cpp"});
  const auto expect_fix = [](const std::string& fix, const auto& call) {
    EXPECT_TRUE(message_of<DeviceError>(call).ends_with("; " + fix + ", or use kernels native")) << fix;
  };
  const std::string less = "use a smaller global batch or a GPU with more free memory";
  const std::pair<std::string, std::vector<cudnnStatus_t>> of_cudnn[] = {
      {"install all libraries of one version of cuDNN (libcudnn*.so) in one folder",
       {CUDNN_STATUS_NOT_INITIALIZED, CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH,
        CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED, CUDNN_STATUS_NOT_SUPPORTED_SUBLIBRARY_UNAVAILABLE,
        CUDNN_STATUS_NOT_SUPPORTED_RUNTIME_PREREQUISITE_MISSING}},
      {"install a version of cuDNN made for this GPU and its driver",
       {CUDNN_STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDA_DRIVER, CUDNN_STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDART,
        CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH}},
      {less,
       {CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED,
        CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED}}};
  for (const auto& row : of_cudnn)
    for (const cudnnStatus_t status : row.second) expect_fix(row.first, [&] { LOCKSTEP_CUDNN(status); });
  expect_fix(less, [] { LOCKSTEP_CUBLAS(CUBLAS_STATUS_ALLOC_FAILED); });
  for (const auto status : {CUBLAS_STATUS_NOT_INITIALIZED, CUBLAS_STATUS_ARCH_MISMATCH})
    expect_fix("install a version of cuBLAS made for this GPU and its driver",
               [&] { LOCKSTEP_CUBLAS(status); });
}

TEST(VendorErrorTest, DestructorsOnlyWarn) {
  ::testing::internal::CaptureStderr();
  LOCKSTEP_VENDOR_NOEXCEPT(CUDNN_STATUS_SUCCESS);
  LOCKSTEP_VENDOR_NOEXCEPT(CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  ::testing::internal::CaptureStderr();
  LOCKSTEP_VENDOR_NOEXCEPT(CUDNN_STATUS_BAD_PARAM);
  LOCKSTEP_VENDOR_NOEXCEPT(CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_TRUE(contains(::testing::internal::GetCapturedStderr(),
                       {"lockstep: warning: CUDNN_STATUS_BAD_PARAM failed with status 2000 at ",
                        "lockstep: warning: CUBLAS_STATUS_INVALID_VALUE failed with status 7 at "}));
}

TEST(VendorErrorTest, EmulatedDeviceHasNoVendorKernels) {
  const auto device = emulated::platform().make_device(0);
  EXPECT_EQ(message_of<DeviceError>([&] { make_vendor_ops(*device); }),
            "kernels vendor needs a GPU, and this device is emulated: use kernels native");
}

template <class Api>
auto choose(VendorAlgorithms algorithms) {
  return choose_algorithm<Api>(nullptr, algorithms, nullptr, nullptr, nullptr, nullptr);
}

/// The fake's ranking has TF32, an algorithm that fails and one that is not deterministic before the right
/// one.
TEST(VendorAlgorithmTest, IsTheFirstOfTheRankingThatWillDo) {
  const auto chosen = choose<BackwardWeightsApi>(VendorAlgorithms::kReproducible);
  EXPECT_EQ(chosen.algorithm, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1);
  EXPECT_GT(chosen.workspace_bytes, 0U);
  EXPECT_EQ(choose<ForwardApi>(VendorAlgorithms::kReproducible).algorithm,
            CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM);
  EXPECT_EQ(choose<ForwardApi>(VendorAlgorithms::kFastest).algorithm, CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD);
}

TEST(VendorAlgorithmTest, IsWantedByItsStatusMemoryAndDeterminism) {
  using Ranked = ForwardApi::Ranked;
  const Ranked plain{CUDNN_CONVOLUTION_FWD_ALGO_GEMM,
                     CUDNN_STATUS_SUCCESS,
                     1,
                     268435456,
                     CUDNN_DETERMINISTIC,
                     CUDNN_FMA_MATH};
  Ranked failed = plain, large = plain, loose = plain, other = plain;
  failed.status = CUDNN_STATUS_NOT_SUPPORTED;
  large.memory += 1;
  loose.determinism = CUDNN_NON_DETERMINISTIC;
  other.algo = CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD;
  const auto wanted = [](const Ranked& ranked) {
    return std::pair(is_wanted<ForwardApi>(ranked, VendorAlgorithms::kReproducible),
                     is_wanted<ForwardApi>(ranked, VendorAlgorithms::kFastest));
  };
  EXPECT_EQ(wanted(plain), std::pair(true, true));
  EXPECT_EQ(wanted(failed), std::pair(false, false));
  EXPECT_EQ(wanted(large), std::pair(false, false));
  EXPECT_EQ(wanted(loose), std::pair(false, true));
  EXPECT_EQ(wanted(other), std::pair(false, true));
}

}  // namespace

}  // namespace lockstep::vendor
