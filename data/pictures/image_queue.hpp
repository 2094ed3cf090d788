// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Pictures made images of a set, on several threads, and handed over in their order.
#pragma once

#include "data/pictures/conversion.hpp"

#include <condition_variable>
#include <cstddef>
#include <future>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace lockstep {

/// The image made of one picture.
struct MadeImage {
  std::vector<std::uint8_t> pixels{};  ///< as the files of the set hold them
  ImageShape shape{};
  bool reshaped = false, made_grey = false, had_16_bits = false;
  std::string damage{};  ///< why there is none
};

/// A fault of a picture concerns it alone.
MadeImage try_to_make_image(const std::filesystem::path& path, const ConversionOptions& options);

/// Reads ahead of the image that is wanted, two for each thread.
class ImageQueue {
 public:
  /// Pictures and options must outlive it. @throws DeviceError  the system gives no more threads
  ImageQueue(const std::vector<const LabelledPicture*>& pictures, const ConversionOptions& options);
  ~ImageQueue();
  ImageQueue(const ImageQueue&) = delete;
  ImageQueue& operator=(const ImageQueue&) = delete;

  /// The images in their order, one at each call; as many as there are pictures.
  MadeImage next();

 private:
  void work();

  const std::vector<const LabelledPicture*>& pictures_;
  const ConversionOptions& options_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::optional<std::future<MadeImage>>> slots_;  ///< image i is in slot i modulo their number
  std::size_t begun_ = 0, taken_ = 0;
  bool ends_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace lockstep
