// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A GPU with an identity and nothing else, for tests of who takes which.
#pragma once

#include "common/error.hpp"
#include "kernels/device.hpp"
#include "kernels/device_ops.hpp"
#include "kernels/platform.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep {

class FakeEvent final : public Event {
 public:
  bool done() override { return true; }
  double seconds_since(const Event& /*start*/) const override { return 0; }
};

class FakeGpu final : public Device {
 public:
  explicit FakeGpu(const std::string& uuid, const std::string& pci_bus = "") {
    properties_.uuid = uuid;
    properties_.pci_bus = pci_bus;
  }

  const DeviceProperties& properties() const override { return properties_; }
  std::string_view kind() const override { return "cuda"; }
  std::unique_ptr<Event> make_event(Timing /*timing*/) override { return std::make_unique<FakeEvent>(); }

  void* allocate(std::size_t /*bytes*/) override { throw InternalError("a fake GPU has no memory"); }
  void free(void* /*memory*/) noexcept override {}
  void* allocate_pinned(std::size_t /*bytes*/) override { throw InternalError("a fake GPU has no memory"); }
  void free_pinned(void* /*memory*/) noexcept override {}
  std::unique_ptr<Stream> make_stream(Priority /*priority*/) override {
    throw InternalError("a fake GPU has no streams");
  }

 private:
  DeviceProperties properties_;
};

/// GPUs of which one kind of call fails, as it does where they cannot be used.
class FakePlatform : public Platform {
 public:
  /// @param visible  on this rank
  /// @param search   what devices() throws, if not null
  /// @param use      what making a device throws, if not empty
  FakePlatform(int visible, std::exception_ptr search, std::string use)
      // NOLINTNEXTLINE(bugprone-throw-keyword-missing): it is kept, not thrown
      : visible_(visible), search_(std::move(search)), use_(std::move(use)) {}

  std::vector<DeviceProperties> devices() const override {
    if (search_ != nullptr) std::rethrow_exception(search_);
    return std::vector<DeviceProperties>(static_cast<std::size_t>(visible_));
  }
  std::vector<std::vector<PeerLink>> links() const override { return {}; }
  std::string versions() const override { return ""; }
  std::unique_ptr<Device> make_device(int index) const override {
    if (!use_.empty()) throw DeviceError(use_);
    if (index < 0 || index >= visible_) throw InternalError("no such fake GPU");
    return std::make_unique<FakeGpu>("GPU-" + std::to_string(index),
                                     "0000:0" + std::to_string(index) + ":00.0");
  }
  std::unique_ptr<DeviceOps> make_ops(Device& /*device*/) const override { return nullptr; }

 private:
  int visible_;
  std::exception_ptr search_;
  std::string use_;
};

}  // namespace lockstep
