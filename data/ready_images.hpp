// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Images that take work to make: threads make them ahead of the step, and the latest are kept.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

namespace lockstep {

/// Threads, one for each core, start when the first image is asked for. Safe to call from several threads at once.
class ReadyImages {
 public:
  /// Makes the image of a sample, on any thread; what it throws reaches the read() of that sample.
  using Make = std::function<void(std::int64_t sample, std::span<std::uint8_t> to)>;

  /// Of images that were asked for so many bytes are kept, the oldest go first.
  static constexpr std::size_t kKeptBytes = std::size_t{128} << 20;

  ReadyImages(std::size_t image_bytes, Make make);
  ~ReadyImages();
  ReadyImages(const ReadyImages&) = delete;
  ReadyImages& operator=(const ReadyImages&) = delete;

  /// Waits for images that are being made, and makes others on this thread, too.
  /// @param to  [samples][image_bytes], overwritten
  /// @throws what Make throws; DeviceError  the system gives no threads
  void read(std::span<const std::int64_t> samples, std::span<std::uint8_t> to);
  /// Returns at once. More than are kept are not begun.
  void prefetch(std::span<const std::int64_t> samples);

 private:
  struct Image {
    std::vector<std::uint8_t> pixels{};
    std::exception_ptr error{};
    bool is_made = false;
  };
  using Shared = std::shared_ptr<Image>;

  void start_threads();
  const Shared& add(std::int64_t sample);
  Shared ask(std::int64_t sample);
  void make_next(std::unique_lock<std::mutex>& lock);
  void work();

  const std::size_t image_bytes_, most_kept_;
  const Make make_;
  std::mutex mutex_;
  std::condition_variable wanted_changed_, made_;
  std::unordered_map<std::int64_t, Shared> images_;
  std::deque<std::int64_t> order_;                        ///< of images_, the oldest first
  std::deque<std::pair<std::int64_t, Shared>> wanted_{};  ///< not begun
  bool ends_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace lockstep
