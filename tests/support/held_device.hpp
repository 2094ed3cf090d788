// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The emulated device. Its events are reached when a test says so, and its copies to and from the host are late.
#pragma once

#include "kernels/device.hpp"
#include "kernels/device_ops.hpp"
#include "kernels/platform.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::testing {

/// Copies that a stream has not done yet, in their order. On any thread.
class LateCopies {
 public:
  void add(std::function<void()> copy) {
    const std::lock_guard lock(mutex_);
    copies_.push_back(std::move(copy));
  }
  std::size_t queued() const {
    const std::lock_guard lock(mutex_);
    return copies_.size();
  }
  bool are_done(std::size_t until) const {
    const std::lock_guard lock(mutex_);
    return done_ >= until;
  }
  void finish(std::size_t until) {
    const std::lock_guard lock(mutex_);
    while (done_ < until) std::exchange(copies_[done_++], {})();
  }
  void finish() { finish(queued()); }

 private:
  mutable std::recursive_mutex mutex_;  ///< copies of two streams may wait for each other's
  std::vector<std::function<void()>> copies_;
  std::size_t done_ = 0;
};

/// Copies of a stream. Those to the device are done when what follows them on the stream is queued, or is waited for;
/// those to the host when the host has waited for them.
struct StreamCopies {
  LateCopies to_device, to_host;
};

class HeldEvent final : public Event {
 public:
  HeldEvent(std::unique_ptr<Event> inner, const std::atomic<bool>& held)
      : inner_(std::move(inner)), held_(held) {}
  bool done() override {
    if (held_ || !inner_->done()) return false;
    send();
    if (stream_ != nullptr) stream_->to_host.finish(arriving_);
    return true;
  }
  double seconds_since(const Event& /*start*/) const override { return 0; }
  Event& inner() const { return *inner_; }

  void record(const std::shared_ptr<StreamCopies>& stream) {
    stream_ = stream;
    sending_ = stream->to_device.queued();
    arriving_ = stream->to_host.queued();
  }
  /// Finishes copies to the device that were queued before it.
  void send() const {
    if (stream_ != nullptr) stream_->to_device.finish(sending_);
  }
  /// Another stream waits for it: what the host waits for there comes after what it waits for here.
  void precede(StreamCopies& other) const {
    if (stream_ == nullptr || stream_.get() == &other || stream_->to_host.are_done(arriving_)) return;
    other.to_host.add([stream = stream_, until = arriving_] { stream->to_host.finish(until); });
  }

 private:
  std::unique_ptr<Event> inner_;
  const std::atomic<bool>& held_;
  std::shared_ptr<StreamCopies> stream_;  ///< that recorded it
  std::size_t sending_ = 0, arriving_ = 0;
};

class HeldStream : public Stream {
 public:
  /// @param copies  counts those to the device; null: they are not counted
  explicit HeldStream(std::unique_ptr<Stream> inner, std::atomic<int>* copies = nullptr)
      : inner_(std::move(inner)), copies_(copies) {}
  void* native_handle() const override { return sent().native_handle(); }
  void copy_to_device(void* to, const void* from, std::size_t bytes) override {
    if (copies_ != nullptr) ++*copies_;
    late_->to_device.add([=, stream = inner_] { stream->copy_to_device(to, from, bytes); });
  }
  void copy_to_host(void* to, const void* from, std::size_t bytes) override {
    const auto arriving = std::make_shared<std::vector<std::byte>>(bytes);
    sent().copy_to_host(arriving->data(), from, bytes);
    late_->to_host.add([=] { std::ranges::copy(*arriving, static_cast<std::byte*>(to)); });
  }
  void copy_on_device(void* to, const void* from, std::size_t bytes) override {
    sent().copy_on_device(to, from, bytes);
  }
  void fill_zero(void* device, std::size_t bytes) override { sent().fill_zero(device, bytes); }
  void record(Event& event) override {
    auto& held = static_cast<HeldEvent&>(event);
    held.record(late_);
    inner_->record(held.inner());
  }
  void wait(const Event& event) override {
    const auto& held = static_cast<const HeldEvent&>(event);
    held.send();
    held.precede(*late_);
    inner_->wait(held.inner());
  }
  void synchronize() override {
    sent().synchronize();
    late_->to_host.finish();
  }
  void begin_capture() override { sent().begin_capture(); }
  std::unique_ptr<Graph> end_capture() override { return inner_->end_capture(); }
  void launch(Graph& graph) override { sent().launch(graph); }

 private:
  /// The stream, once what is on its way to the device is there.
  Stream& sent() const {
    late_->to_device.finish();
    return *inner_;
  }

  std::shared_ptr<Stream> inner_;
  std::atomic<int>* copies_;
  std::shared_ptr<StreamCopies> late_ = std::make_shared<StreamCopies>();
};

class HeldDevice final : public Device {
 public:
  HeldDevice() : inner_(emulated::platform().make_device(0)), properties_(inner_->properties()) {}

  Device& inner() { return *inner_; }
  const DeviceProperties& properties() const override { return properties_; }
  std::string_view kind() const override { return inner_->kind(); }
  void* allocate(std::size_t bytes) override {
    ++allocations;
    return inner_->allocate(bytes);
  }
  void free(void* memory) noexcept override { inner_->free(memory); }
  void* allocate_pinned(std::size_t bytes) override { return inner_->allocate_pinned(bytes); }
  void free_pinned(void* memory) noexcept override { inner_->free_pinned(memory); }
  std::unique_ptr<Stream> make_stream(Priority priority) override {
    return std::make_unique<HeldStream>(inner_->make_stream(priority), &copies_to_device);
  }
  std::unique_ptr<Event> make_event(Timing timing) override {
    return std::make_unique<HeldEvent>(inner_->make_event(timing), held);
  }

  std::atomic<bool> held = false;
  std::atomic<int> allocations = 0, copies_to_device = 0;  ///< so far

 private:
  std::unique_ptr<Device> inner_;
  DeviceProperties properties_;
};

}  // namespace lockstep::testing
