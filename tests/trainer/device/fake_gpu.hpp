// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A GPU with an identity and nothing else, for tests of who takes which.
#pragma once

#include "kernels/device/device.hpp"
#include "kernels/runtime/error.hpp"

#include <memory>
#include <string>

namespace lockstep {

class FakeEvent final : public Event {
 public:
  bool done() override { return true; }
  double seconds_since(const Event& /*start*/) const override { return 0; }
};

class FakeGpu final : public Device {
 public:
  explicit FakeGpu(const std::string& uuid) { facts_.uuid = uuid; }

  const DeviceFacts& facts() const override { return facts_; }
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
  DeviceFacts facts_;
};

}  // namespace lockstep
