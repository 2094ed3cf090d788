// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A device whose streams work as late as they may: what does not wait for it is seen.
#pragma once

#include "common/error.hpp"
#include "kernels/device.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::test {

/// A stream's work, in order.
struct LateWork {
  std::vector<std::function<void()>> queued;
  std::size_t done = 0;

  void run_to(std::size_t count) {
    while (done < count) std::exchange(queued[done++], nullptr)();
  }
};

/// It is not done when it is first asked; then the work that it marks runs.
class LateEvent final : public Event {
 public:
  bool done() override {
    if (!std::exchange(asked_, true)) return false;
    mark()();
    return true;
  }
  double seconds_since(const Event& /*start*/) const override { return 0; }
  void record(const std::shared_ptr<LateWork>& work) {
    work_ = work;
    count_ = work->queued.size();
    asked_ = false;
  }
  std::function<void()> mark() const {
    return [work = work_, count = count_] {
      if (work != nullptr) work->run_to(count);
    };
  }

 private:
  std::shared_ptr<LateWork> work_;
  std::size_t count_ = 0;
  bool asked_ = false;
};

class LateStream final : public Stream {
 public:
  explicit LateStream(std::shared_ptr<LateWork> work) : work_(std::move(work)) {}

  void queue(std::function<void()> work) { work_->queued.push_back(std::move(work)); }
  void* native_handle() const override { return nullptr; }
  void copy_to_device(void* device, const void* host, std::size_t bytes) override {
    queue([=] { std::memcpy(device, host, bytes); });
  }
  void copy_to_host(void* host, const void* device, std::size_t bytes) override {
    queue([=] { std::memcpy(host, device, bytes); });
  }
  void copy_on_device(void* to, const void* from, std::size_t bytes) override {
    queue([=] { std::memcpy(to, from, bytes); });
  }
  void fill_zero(void* device, std::size_t bytes) override {
    queue([=] { std::memset(device, 0, bytes); });
  }
  void record(Event& event) override { dynamic_cast<LateEvent&>(event).record(work_); }
  void wait(const Event& event) override { queue(dynamic_cast<const LateEvent&>(event).mark()); }
  void synchronize() override { work_->run_to(work_->queued.size()); }
  void begin_capture() override { throw InternalError("late streams capture nothing"); }
  std::unique_ptr<Graph> end_capture() override { throw InternalError("late streams capture nothing"); }
  void launch(Graph& /*graph*/) override { throw InternalError("late streams launch nothing"); }

 private:
  std::shared_ptr<LateWork> work_;
};

/// Its memory is the host's, of bytes 0xFF. Pinned memory that was freed is overwritten.
class LateDevice final : public Device {
 public:
  LateDevice() = default;
  LateDevice(const LateDevice&) = delete;
  LateDevice& operator=(const LateDevice&) = delete;
  ~LateDevice() override {
    for (const auto& work : streams_) work->queued.clear();  // waits hold each other
  }

  const DeviceProperties& properties() const override { return properties_; }
  std::string_view kind() const override { return "late"; }
  void* allocate(std::size_t bytes) override {
    std::vector<std::byte> piece(bytes, std::byte{0xFF});
    void* const memory = piece.data();
    memory_.emplace(memory, std::move(piece));
    return memory;
  }
  void free(void* /*memory*/) noexcept override {}
  void* allocate_pinned(std::size_t bytes) override {
    pinned_ += bytes;
    most_pinned_ = std::max(most_pinned_, pinned_);
    return allocate(bytes);
  }
  void free_pinned(void* memory) noexcept override {
    std::vector<std::byte>& piece = memory_.find(memory)->second;
    std::ranges::fill(piece, std::byte{0xEE});
    pinned_ -= piece.size();
  }
  std::unique_ptr<Stream> make_stream(Priority /*priority*/) override {
    return std::make_unique<LateStream>(streams_.emplace_back(std::make_shared<LateWork>()));
  }
  std::unique_ptr<Event> make_event(Timing /*timing*/) override { return std::make_unique<LateEvent>(); }

  std::size_t most_pinned() const { return most_pinned_; }
  /// One stream after the other, but for what it waits for.
  void run_all(bool newest_first = false) {
    if (newest_first) std::ranges::reverse(streams_);
    for (const auto& work : streams_) work->run_to(work->queued.size());
  }

 private:
  DeviceProperties properties_;
  std::map<void*, std::vector<std::byte>> memory_;
  std::size_t pinned_ = 0, most_pinned_ = 0;
  std::vector<std::shared_ptr<LateWork>> streams_;
};

}  // namespace lockstep::test
