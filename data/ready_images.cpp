// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A queue of images that are wanted, and those that are there.
#include "data/ready_images.hpp"

#include "common/error.hpp"
#include "common/machine.hpp"

#include <algorithm>

namespace lockstep {
namespace {

constexpr std::size_t kAlwaysKept = 64;  // a grain, whatever the size of its images
constexpr unsigned kMostThreads = 16;

}  // namespace

ReadyImages::ReadyImages(std::size_t image_bytes, Make make)
    : image_bytes_(image_bytes),
      most_kept_(std::max(kAlwaysKept, kKeptBytes / std::max<std::size_t>(image_bytes, 1))),
      make_(std::move(make)) {}

ReadyImages::~ReadyImages() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  wanted_changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ReadyImages::read(std::span<const std::int64_t> samples, std::span<std::uint8_t> to) {
  LOCKSTEP_CHECK(to.size() == samples.size() * image_bytes_);
  std::unique_lock lock(mutex_);
  start_threads();
  std::vector<Shared> images;
  for (const std::int64_t sample : samples) images.push_back(ask(sample));
  wanted_changed_.notify_all();
  for (const Shared& image : images) {
    while (!image->is_made) {
      if (wanted_.empty())
        made_.wait(lock);
      else
        make_next(lock);
    }
    if (image->error) std::rethrow_exception(image->error);
  }
  lock.unlock();
  for (std::size_t i = 0; i < images.size(); ++i)
    std::ranges::copy(images[i]->pixels, to.begin() + static_cast<std::ptrdiff_t>(i * image_bytes_));
}

void ReadyImages::prefetch(std::span<const std::int64_t> samples) {
  {
    const std::lock_guard lock(mutex_);
    start_threads();
    for (const std::int64_t sample : samples) {
      if (wanted_.size() >= most_kept_ / 2) break;
      if (!images_.contains(sample)) wanted_.emplace_back(sample, add(sample));
    }
  }
  wanted_changed_.notify_all();
}

// With the lock held.

void ReadyImages::start_threads() {
  const unsigned threads = std::clamp(std::thread::hardware_concurrency(), 1U, kMostThreads);
  while (threads_.size() < threads) threads_.push_back(start_thread([this] { work(); }));
}

/// In the place of the oldest, if need be.
const ReadyImages::Shared& ReadyImages::add(std::int64_t sample) {
  while (images_.size() >= most_kept_ && !order_.empty()) {
    images_.erase(order_.front());
    order_.pop_front();
  }
  order_.push_back(sample);
  return images_.emplace(sample, std::make_shared<Image>()).first->second;
}

/// An image that is waited for: before all others.
ReadyImages::Shared ReadyImages::ask(std::int64_t sample) {
  if (const auto found = images_.find(sample); found != images_.end()) return found->second;
  return wanted_.emplace_front(sample, add(sample)).second;
}

/// One that failed is forgotten, so that the next read tries it again.
void ReadyImages::make_next(std::unique_lock<std::mutex>& lock) {
  const auto [sample, image] = std::move(wanted_.front());
  wanted_.pop_front();
  lock.unlock();
  try {
    image->pixels.resize(image_bytes_);
    make_(sample, image->pixels);
  } catch (...) {
    image->error = std::current_exception();
  }
  lock.lock();
  image->is_made = true;
  if (image->error) {
    images_.erase(sample);
    std::erase(order_, sample);
  }
  made_.notify_all();
}

void ReadyImages::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wanted_changed_.wait(lock, [this] { return ends_ || !wanted_.empty(); });
    if (ends_) return;
    make_next(lock);
  }
}

}  // namespace lockstep
