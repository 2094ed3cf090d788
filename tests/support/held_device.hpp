// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The emulated device, whose events are reached when a test says so, and which may be an older GPU.
#pragma once

#include "kernels/device.hpp"
#include "kernels/device_ops.hpp"
#include "kernels/platform.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::testing {

class HeldEvent final : public Event {
 public:
  HeldEvent(std::unique_ptr<Event> inner, const std::atomic<bool>& held)
      : inner_(std::move(inner)), held_(held) {}
  bool done() override { return !held_ && inner_->done(); }
  double seconds_since(const Event& /*start*/) const override { return 0; }
  Event& inner() const { return *inner_; }

 private:
  std::unique_ptr<Event> inner_;
  const std::atomic<bool>& held_;
};

class HeldStream : public Stream {
 public:
  explicit HeldStream(std::unique_ptr<Stream> inner) : inner_(std::move(inner)) {}
  void* native_handle() const override { return inner_->native_handle(); }
  void copy_to_device(void* to, const void* from, std::size_t bytes) override {
    inner_->copy_to_device(to, from, bytes);
  }
  void copy_to_host(void* to, const void* from, std::size_t bytes) override {
    inner_->copy_to_host(to, from, bytes);
  }
  void copy_on_device(void* to, const void* from, std::size_t bytes) override {
    inner_->copy_on_device(to, from, bytes);
  }
  void fill_zero(void* device, std::size_t bytes) override { inner_->fill_zero(device, bytes); }
  void record(Event& event) override { inner_->record(static_cast<HeldEvent&>(event).inner()); }
  void wait(const Event& event) override { inner_->wait(static_cast<const HeldEvent&>(event).inner()); }
  void synchronize() override { inner_->synchronize(); }
  void begin_capture() override { inner_->begin_capture(); }
  std::unique_ptr<Graph> end_capture() override { return inner_->end_capture(); }
  void launch(Graph& graph) override { inner_->launch(graph); }

 private:
  std::unique_ptr<Stream> inner_;
};

class HeldDevice final : public Device {
 public:
  HeldDevice() : inner_(emulated::platform().make_device(0)), properties_(inner_->properties()) {}

  Device& inner() { return *inner_; }
  const DeviceProperties& properties() const override { return properties_; }
  std::string_view kind() const override { return inner_->kind(); }
  void* allocate(std::size_t bytes) override { return inner_->allocate(bytes); }
  void free(void* memory) noexcept override { inner_->free(memory); }
  void* allocate_pinned(std::size_t bytes) override { return inner_->allocate_pinned(bytes); }
  void free_pinned(void* memory) noexcept override { inner_->free_pinned(memory); }
  std::unique_ptr<Stream> make_stream(Priority priority) override {
    return std::make_unique<HeldStream>(inner_->make_stream(priority));
  }
  std::unique_ptr<Event> make_event(Timing timing) override {
    return std::make_unique<HeldEvent>(inner_->make_event(timing), held);
  }

  std::atomic<bool> held = false;

 private:
  std::unique_ptr<Device> inner_;
  DeviceProperties properties_;
};

}  // namespace lockstep::testing
