// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "kernels/device_messages.hpp"

#include "common/error.hpp"
#include "common/timeline.hpp"
#include "kernels/device_ops.hpp"
#include "kernels/device_timeline.hpp"
#include "kernels/nvml.hpp"
#include "kernels/platform.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep {

namespace {

DeviceProperties device(int index, const std::string& name) {
  DeviceProperties properties;
  properties.index = index;
  properties.name = name;
  properties.total_bytes = std::size_t{80} << 30;
  return properties;
}

TEST(DeviceMessagesTest, ASearchThatFailedSaysWhyAndWhetherAnythingIsWrong) {
  const std::string driver = "cudaErrorInsufficientDriver (...)", none = "cudaErrorNoDevice (...)",
                    other = "cudaErrorSystemNotReady (system not yet initialized)",
                    unusable = "the GPUs of this machine cannot be used: ";
  struct Row {
    FailedSearch search;
    std::vector<std::string> words;
    bool is_without_gpus = false;
  };
  const Row rows[] = {
      {{driver, 0, 13000, {}},
       {"CUDA driver not found: this machine has no NVIDIA driver (libcuda.so.1)", "device cpu or auto"},
       true},
      {{driver, 11040, 13020, {}}, {"too old", "CUDA 11.4", "CUDA 13.2", "update the driver"}},
      {{driver, 13020, 13020, {}}, {unusable + driver + "; see nvidia-smi"}},
      {{other, 11040, 13020, {}}, {unusable + other + "; see nvidia-smi"}},
      {{none, 13000, 13000, ""}, {"CUDA_VISIBLE_DEVICES is ''", "nvidia-smi -L"}, true},
      {{none, 13000, 13000, "-1"}, {"CUDA_VISIBLE_DEVICES is '-1'"}, true},
      {{none, 13000, 13000, "NoDevFiles"}, {"CUDA_VISIBLE_DEVICES is 'NoDevFiles'"}, true},
      {{none, 13000, 13000, "7"}, {"CUDA_VISIBLE_DEVICES is '7'"}},
      {{none, 13000, 13000, "7\n\x1b[2J\xff"}, {R"(CUDA_VISIBLE_DEVICES is '7\x0a\x1b[2J\xff')"}},
      {{none, 13000, 13000, {}}, {"no GPU is visible", "--gpus all", "--gpus-per-node"}},
  };
  for (const Row& row : rows) {
    const std::string text = no_device_message(row.search);
    for (const std::string& word : row.words) expect_one_line_with(text, {word});
    EXPECT_EQ(contains(text, {"CUDA_VISIBLE_DEVICES"}), row.search.visible_devices.has_value()) << text;
    EXPECT_EQ(is_without_gpus(row.search), row.is_without_gpus) << text;
  }
}

TEST(DeviceMessagesTest, ADeviceThatTheProgramWasNotBuiltForIsNamedWithTheFix) {
  DeviceProperties v100 = device(1, "Tesla V100-SXM2-16GB");
  v100.compute_major = 7;
  const CudaFailure failure{"cudaErrorNoKernelImageForDevice", "no kernel image is available", "call", "f",
                            1};
  expect_one_line_with(unusable_device_message(v100, failure),
                       {"GPU 1 (Tesla V100-SXM2-16GB, compute capability 7.0)",
                        "no kernel image is available", "CMAKE_CUDA_ARCHITECTURES", "device cpu"});
  const CudaFailure other{"cudaErrorInvalidKernelImage", "device kernel image is invalid", "call", "f", 1};
  expect_one_line_with(unusable_device_message(v100, other),
                       {"device kernel image is invalid", "nvidia-smi"});
}

TEST(DeviceMessagesTest, DeviceThreeOfOne) {
  const std::array one = {device(0, "NVIDIA H100 80GB HBM3")};
  expect_one_line_with(no_such_device_message(3, one),
                       {"there is no GPU 3: this process sees 1 GPU (index 0: NVIDIA H100 80GB HBM3)",
                        "CUDA_VISIBLE_DEVICES"});
  const std::array two = {device(0, "A"), device(1, "B")};
  expect_one_line_with(no_such_device_message(2, two), {"sees 2 GPUs (index 0: A, index 1: B)"});
}

TEST(DeviceMessagesTest, OutOfMemorySaysHowMuchThereIs) {
  expect_one_line_with(
      out_of_memory_message(device(1, "A"), std::size_t{100} << 30, std::size_t{1} << 29),
      {"GPU 1 (A)", "100.00 GiB wanted", "0.50 GiB of 80.00 GiB free", "a smaller global batch"});
  expect_one_line_with(out_of_pinned_memory_message(std::size_t{3} << 30),
                       {"3.00 GiB of pinned host memory"});
}

TEST(DeviceMessagesTest, UuidsReadAsNvidiaSmiWritesThem) {
  const std::array<unsigned char, 16> bytes = {0x8f, 0x0c, 0x3f, 0x7a, 0x01, 0x23, 0x45, 0x67,
                                               0x89, 0xab, 0xcd, 0xef, 0x00, 0x11, 0xfe, 0xff};
  EXPECT_EQ(uuid_text(bytes, "NVIDIA H100 80GB HBM3"), "GPU-8f0c3f7a-0123-4567-89ab-cdef0011feff");
  EXPECT_EQ(uuid_text(bytes, "NVIDIA A100-SXM4-40GB MIG 1g.5gb"), "MIG-8f0c3f7a-0123-4567-89ab-cdef0011feff");
}

/// This test holds the platform of a build without CUDA, whatever its own build has.
TEST(NoCudaTest, EveryCallSaysHowToGetGpuKernels) {
  const auto expect_refusal = [](const auto& call) {
    expect_error<DeviceError>(call,
                              {"this build has no GPU kernels", "install the CUDA toolkit", "device cpu"});
  };
  expect_refusal([] { cuda::platform().devices(); });
  expect_refusal([] { cuda::platform().links(); });
  expect_refusal([] { static_cast<void>(cuda::platform().versions()); });
  expect_refusal([] { cuda::platform().make_device(0); });
}

CudaFailure failure(const char* name) {
  return {name, "a text", "cudaSomething(x)", "somewhere.cu", 42};
}

TEST(CudaErrorTest, WhatTheDeviceCausesIsADeviceErrorWithAdvice) {
  const std::pair<const char*, std::vector<const char*>> rows[] = {
      {"use a smaller global batch, more ranks", {"cudaErrorMemoryAllocation"}},
      {"'lockstep devices' says why; or use device cpu", {"cudaErrorNoDevice"}},
      {"update the NVIDIA driver",
       {"cudaErrorInsufficientDriver", "cudaErrorCallRequiresNewerDriver", "cudaErrorUnsupportedPtxVersion",
        "cudaErrorIncompatibleDriverContext", "cudaErrorCompatNotSupportedOnDevice"}},
      {"install the driver's libnvidia-ptxjitcompiler", {"cudaErrorJitCompilerNotFound"}},
      {"unset CUDA_DISABLE_PTX_JIT", {"cudaErrorJitCompilationDisabled"}},
      {"the program was not built for this kind of GPU", {"cudaErrorNoKernelImageForDevice"}},
      {"libcuda.so.1 is the toolkit's stub", {"cudaErrorStubLibrary"}},
      {"another process holds the GPU", {"cudaErrorDevicesUnavailable"}},
      {"the driver does not start", {"cudaErrorInitializationError", "cudaErrorOperatingSystem"}},
      {"a service of the GPUs is not running", {"cudaErrorSystemNotReady"}},
      {"its driver and its libraries do not match", {"cudaErrorSystemDriverMismatch"}},
      {"its hardware reports a fault",
       {"cudaErrorECCUncorrectable", "cudaErrorNvlinkUncorrectable", "cudaErrorContained"}},
      {"see the state of the Multi-Process Service",
       {"cudaErrorMpsConnectionFailed", "cudaErrorMpsRpcFailure", "cudaErrorMpsServerNotReady",
        "cudaErrorMpsMaxClientsReached", "cudaErrorMpsMaxConnectionsReached",
        "cudaErrorMpsClientTerminated"}}};
  for (const auto& row : rows)
    for (const char* name : row.second)
      expect_error<DeviceError>(
          [&] { throw_cuda_error(failure(name)); },
          {fmt::format("the GPU cannot be used: cudaSomething(x) failed: {} (a text) at somewhere.cu:42; {}",
                       name, row.first)});
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
  log_cuda_error(failure("cudaErrorLaunchFailure"));
  EXPECT_EQ(
      testing::internal::GetCapturedStderr(),
      "lockstep: warning: cudaSomething(x) failed: cudaErrorIllegalAddress (a text) at somewhere.cu:42\n"
      "lockstep: warning: cudaSomething(x) failed: cudaErrorLaunchFailure (a text) at somewhere.cu:42\n");
}

// Times of a device whose clock a test sets.

double now = 0;  // seconds

class SetEvent final : public Event {
 public:
  bool done() override { return true; }
  double seconds_since(const Event& start) const override {
    return recorded - static_cast<const SetEvent&>(start).recorded;
  }
  double recorded = 0;
};

class SetStream final : public Stream {
 public:
  void* native_handle() const override { return nullptr; }
  void copy_to_device(void* /*to*/, const void* /*from*/, std::size_t /*bytes*/) override {}
  void copy_to_host(void* /*to*/, const void* /*from*/, std::size_t /*bytes*/) override {}
  void copy_on_device(void* /*to*/, const void* /*from*/, std::size_t /*bytes*/) override {}
  void fill_zero(void* /*memory*/, std::size_t /*bytes*/) override {}
  void record(Event& event) override { static_cast<SetEvent&>(event).recorded = now; }
  void wait(const Event& /*event*/) override {}
  void synchronize() override { ++synchronized; }
  void begin_capture() override {}
  std::unique_ptr<Graph> end_capture() override { return nullptr; }
  void launch(Graph& /*graph*/) override {}
  int synchronized = 0;
};

class SetDevice final : public Device {
 public:
  const DeviceProperties& properties() const override { return properties_; }
  std::string_view kind() const override { return "set"; }
  void* allocate(std::size_t /*bytes*/) override { return nullptr; }
  void free(void* /*memory*/) noexcept override {}
  void* allocate_pinned(std::size_t /*bytes*/) override { return nullptr; }
  void free_pinned(void* /*memory*/) noexcept override {}
  std::unique_ptr<Stream> make_stream(Priority /*priority*/) override {
    return std::make_unique<SetStream>();
  }
  std::unique_ptr<Event> make_event(Timing timing) override {
    EXPECT_EQ(timing, Timing::kOn);
    return std::make_unique<SetEvent>();
  }

 private:
  DeviceProperties properties_;
};

class DeviceTimelineTest : public ::testing::Test {
 protected:
  DeviceTimelineTest() { on_device_.name(main_, "device: main"); }
  void mark(Stream& stream, const char* of, double begin, double end) {
    now = begin;
    const DeviceSpan span(&on_device_, stream, Work::kForward, of);
    now = end;
  }
  const std::string& track_of(std::size_t slice) const {
    return timeline_.tracks()[timeline_.slices()[slice].track].name;
  }

  SetDevice device_;
  SetStream main_, other_;
  Timeline timeline_;
  DeviceTimeline on_device_{device_};
};

TEST_F(DeviceTimelineTest, MarksNothingOutsideOfAStepOfAnOpenTimeline) {
  on_device_.begin_step(main_);
  EXPECT_EQ(main_.synchronized, 0) << "there is no timeline";
  on_device_.record_into(&timeline_);
  on_device_.begin_step(main_);
  EXPECT_EQ(main_.synchronized, 0) << "it is closed";
  timeline_.open();
  mark(main_, "before", 1, 2);
  on_device_.begin_step(main_);
  EXPECT_EQ(main_.synchronized, 2);
  on_device_.end_step();
  mark(main_, "after", 3, 4);
  on_device_.end_step();
  EXPECT_TRUE(timeline_.slices().empty());
}

TEST_F(DeviceTimelineTest, SlicesCountFromTheBeginningOfTheirStep) {
  on_device_.record_into(&timeline_);
  timeline_.open();
  for (const double start : {5.0, 50.0}) {
    now = start;
    const std::int64_t before = clock_ns();
    on_device_.begin_step(main_);
    const std::int64_t behind = clock_ns();
    const std::size_t first = timeline_.slices().size();
    mark(main_, "conv1", start + 0.25, start + 0.75);
    if (start == 5.0) mark(other_, "conv2", start + 1, start + 3);
    on_device_.end_step();
    ASSERT_EQ(timeline_.slices().size(), start == 5.0 ? 2U : 3U) << "a step has its own slices";
    const TimeSlice& slice = timeline_.slices()[first];
    EXPECT_GE(slice.begin_ns, before + 250'000'000);
    EXPECT_LE(slice.begin_ns, behind + 250'000'000);
    EXPECT_EQ(slice.nanoseconds(), 500'000'000);
    EXPECT_EQ(slice.of, "conv1");
    EXPECT_EQ(slice.work, Work::kForward);
    EXPECT_EQ(track_of(first), "device: main");
  }
  EXPECT_EQ(timeline_.slices()[1].of, "conv2");
  EXPECT_EQ(timeline_.slices()[1].nanoseconds(), 2'000'000'000);
  EXPECT_EQ(track_of(1), "device");
}

TEST(NvmlTest, IsNotThereWithoutItsLibrary) {
  EXPECT_EQ(Nvml::open("libthere-is-no-such-library.so.1"), nullptr);
  EXPECT_EQ(Nvml::open("libm.so.6"), nullptr) << "another one";
}

TEST(NvmlTest, KnowsDriverMemoryAndNvlink) {
  const auto nvml = Nvml::open(LOCKSTEP_FAKE_NVML);
  ASSERT_NE(nvml, nullptr);
  EXPECT_EQ(nvml->driver_version(), "580.65.06");
  EXPECT_EQ(nvml->free_bytes("GPU-a"), std::size_t{100 + 'a'});
  EXPECT_EQ(nvml->free_bytes("GPU-emulated"), std::nullopt) << "it does not know that";
  EXPECT_EQ(nvml->nvlink("GPU-a", "GPU-b"), true);
  EXPECT_EQ(nvml->nvlink("GPU-a", "GPU-c"), false);
  EXPECT_EQ(nvml->nvlink("GPU-a", "GPU-emulated"), std::nullopt);
}

}  // namespace

}  // namespace lockstep
