// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A half of a set whose samples are pictures as people keep them, in folders or in archives. They are decoded when
/// they are needed, by threads that are ahead of the step.
#pragma once

#include "data/pictures/picture.hpp"
#include "data/sample_store.hpp"
#include "data/stored_file.hpp"
#include "kernels/shapes.hpp"

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

namespace lockstep {

/// Threads, one for each core that is available, 16 at most, start when the first image is asked for. Safe to call from
/// several threads at once.
class ReadyImages {
 public:
  /// Makes the image of a sample, on any thread; what it throws reaches the read() of that sample.
  using Make = std::function<void(std::int64_t sample, std::span<std::uint8_t> to)>;

  /// Memory for images that were asked for; the oldest go first.
  static constexpr std::size_t kKeptBytes = std::size_t{128} << 20;

  ReadyImages(std::size_t image_bytes, Make make);
  ~ReadyImages();

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

  /// The images of these samples; returns when all are made. @throws as read()
  std::vector<Shared> wait_for(std::span<const std::int64_t> samples);
  void start_threads();
  const Shared& add(std::int64_t sample);
  Shared ask(std::int64_t sample);
  void make_next(std::unique_lock<std::mutex>& lock);
  void work();

  const std::size_t image_bytes_, most_kept_, most_threads_;
  const Make make_;
  std::mutex mutex_;
  std::condition_variable wanted_changed_, made_;
  std::unordered_map<std::int64_t, Shared> images_;
  std::deque<std::int64_t> order_;                        ///< keys of images_, the oldest first
  std::deque<std::pair<std::int64_t, Shared>> wanted_{};  ///< not begun
  bool ends_ = false;
  std::vector<std::thread> threads_;
};

/// Places of a half's pictures: 32 bytes a picture, and its name.
class PictureList {
 public:
  struct Entry {
    std::uint64_t offset = 0;  ///< in its archive; 0 in a separate file
    std::uint64_t bytes = 0;
    std::uint64_t name = 0;   ///< its begin among the names
    std::uint32_t place = 0;  ///< index into `places`
  };

  std::vector<std::filesystem::path> places;  ///< folders that hold files, or archives
  bool in_archives = false;

  /// In `places.back()`. @param name  without a NUL
  /// @throws DataError  the file of a picture is larger than any that is read, or there are more than 2^31-1 of them
  void add(std::string_view name, std::uint64_t offset, std::uint64_t bytes);
  std::int64_t size() const { return std::ssize(entries_); }
  const Entry& operator[](std::int64_t sample) const { return entries_[static_cast<std::size_t>(sample)]; }
  std::string_view name_of(std::int64_t sample) const { return names_.data() + (*this)[sample].name; }
  /// For messages: "photos/cat/1.jpg", or "train-0.tar: cat/1.jpg".
  std::string path_of(std::int64_t sample) const;

 private:
  std::vector<Entry> entries_;
  std::string names_;  ///< each with a NUL after it
};

class PictureStore final : public SampleStore {
 public:
  struct Contents {
    std::string name;  ///< the half's, for messages
    PictureList pictures;
    PictureForm form;
    ImageShape shape;                 ///< alike for every sample
    std::filesystem::path sums_file;  ///< see measured_sums()
    std::string sums_key;
  };

  /// Opens the archives. @throws MissingDataError, DataError, IoError
  explicit PictureStore(Contents contents);

  std::int64_t size() const override { return contents_.pictures.size(); }
  /// Decodes every picture, once: see measured_sums(). Says how many of them had 16 bits a channel.
  const PixelSums& sums() const override;
  void read(std::span<const std::int64_t> samples, std::span<std::uint8_t> to) const override {
    images_.read(samples, to);
  }
  void prefetch(std::vector<std::int64_t> samples) const override { images_.prefetch(samples); }
  std::string_view name_of(std::int64_t sample) const override { return contents_.pictures.name_of(sample); }

  /// The shape that pictures of this form have: of the size that it says, or of the first of them.
  static ImageShape shape_of(const PictureList& pictures, const PictureForm& form);

 private:
  void make(std::int64_t sample, std::span<std::uint8_t> to) const;
  std::vector<std::uint8_t> bytes_of(std::int64_t sample) const;

  Contents contents_;
  std::vector<StoredFile> archives_;
  mutable std::atomic<std::int64_t> had_16_bits_ = 0;
  mutable std::once_flag measured_;
  mutable PixelSums sums_;
  mutable ReadyImages images_;  ///< the last member: its threads use the others
};

/// Sums over all pixels of a set of pictures. One pass measures them, with messages of its progress and how to avoid
/// it. They are kept in `file` for the next start. One of a user's processes measures, and the others wait for it. An
/// entry of the file with another key, or one that cannot be right, does not count; without one all is measured anew.
/// @param file      in a separate directory, which is made; empty: nothing is kept
/// @param key       key of the pictures and their form
/// @param patience  seconds that the process that measures may get no further; then this one measures, too
PixelSums measured_sums(const SampleStore& store, const ImageShape& shape, const std::filesystem::path& file,
                        const std::string& key, double patience = 120);

}  // namespace lockstep
