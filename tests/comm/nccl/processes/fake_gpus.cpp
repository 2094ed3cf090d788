// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// In place of kernels/cuda in a program of the tests. A machine with eight GPUs, each of which is the
/// emulator. With FAKE_GPUS_ON_ONE_BUS in the environment they are slices of one.
#include "common/error.hpp"
#include "kernels/device.hpp"
#include "kernels/device_ops.hpp"
#include "kernels/platform.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::cuda {
namespace {

constexpr int kGpus = 8;

DeviceProperties as_gpu(DeviceProperties properties, int index) {
  properties.index = index;
  properties.name = "fake GPU";
  properties.uuid = "GPU-" + std::to_string(index);
  const bool one_bus = std::getenv("FAKE_GPUS_ON_ONE_BUS") != nullptr;  // NOLINT(concurrency-mt-unsafe)
  properties.pci_bus = "0000:0" + std::to_string(one_bus ? 0 : index) + ":00.0";
  return properties;
}

class FakeDevice final : public Device {
 public:
  explicit FakeDevice(int index)
      : inner_(emulated::platform().make_device(0)), properties_(as_gpu(inner_->properties(), index)) {}

  Device& inner() { return *inner_; }
  const DeviceProperties& properties() const override { return properties_; }
  std::string_view kind() const override { return "cuda"; }
  void* allocate(std::size_t bytes) override { return inner_->allocate(bytes); }
  void free(void* memory) noexcept override { inner_->free(memory); }
  DeviceMemoryUse memory_use() const override { return inner_->memory_use(); }
  void* allocate_pinned(std::size_t bytes) override { return inner_->allocate_pinned(bytes); }
  void free_pinned(void* memory) noexcept override { inner_->free_pinned(memory); }
  std::unique_ptr<Stream> make_stream(Priority priority) override { return inner_->make_stream(priority); }
  std::unique_ptr<Event> make_event(Timing timing) override { return inner_->make_event(timing); }

 private:
  std::unique_ptr<Device> inner_;
  DeviceProperties properties_;
};

class FakePlatformOfGpus final : public Platform {
 public:
  std::vector<DeviceProperties> devices() const override {
    std::vector<DeviceProperties> all;
    for (int index = 0; index < kGpus; ++index)
      all.push_back(as_gpu(emulated::platform().devices().front(), index));
    return all;
  }
  std::vector<std::vector<PeerLink>> links() const override {
    return std::vector<std::vector<PeerLink>>(kGpus, std::vector<PeerLink>(kGpus));
  }
  std::string versions() const override { return "fake"; }
  std::unique_ptr<Device> make_device(int index) const override {
    if (index >= kGpus) throw DeviceError("there are eight fake GPUs");
    return std::make_unique<FakeDevice>(index);
  }
  std::unique_ptr<DeviceOps> make_ops(Device& device) const override {
    return emulated::platform().make_ops(static_cast<FakeDevice&>(device).inner());
  }
};

}  // namespace

const Platform& platform() {
  static const FakePlatformOfGpus platform;
  return platform;
}

}  // namespace lockstep::cuda
