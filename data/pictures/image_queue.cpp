// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// One picture after the other, read on whichever thread has time.
#include "data/pictures/image_queue.hpp"

#include "common/machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <utility>

namespace lockstep {
namespace {

/// @throws DataError, MissingDataError, IoError
Picture read_picture(const std::filesystem::path& path, PictureColour colour) {
  const Pictures pictures = read_pictures(path.string(), colour);
  Picture picture = pictures[0];
  if (picture.from_idx)
    throw DataError(
        fmt::format("{}: is an IDX file, whatever its name says; convert pictures only", path.string()));
  return picture;
}

MadeImage make_image(const std::filesystem::path& path, const ConversionOptions& options) {
  Picture picture = read_picture(path, options.colour);
  MadeImage made{.made_grey = picture.was_coloured && picture.channels == 1,
                 .had_16_bits = picture.had_16_bits};
  if (options.size) {
    made.reshaped = std::int64_t{picture.width} * options.size->height !=
                    std::int64_t{picture.height} * options.size->width;
    picture = fit_picture(picture, *options.size, options.fit);
  }
  made.shape = picture.shape();
  made.pixels = std::move(picture.pixels);
  return made;
}

}  // namespace

MadeImage try_to_make_image(const std::filesystem::path& path, const ConversionOptions& options) {
  const auto damaged = [](const std::exception& error) { return MadeImage{.damage = error.what()}; };
  try {
    return make_image(path, options);
  } catch (const DataError& error) {
    return damaged(error);
  } catch (const MissingDataError& error) {
    return damaged(error);
  } catch (const IoError& error) {
    return damaged(error);
  }
}

ImageQueue::ImageQueue(const std::vector<const LabelledPicture*>& pictures, const ConversionOptions& options)
    : pictures_(pictures), options_(options), slots_(2 * static_cast<std::size_t>(options.threads)) {
  for (int i = 0; i < options.threads; ++i) threads_.push_back(start_thread([this] { work(); }));
}

ImageQueue::~ImageQueue() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

MadeImage ImageQueue::next() {
  std::unique_lock lock(mutex_);
  std::optional<std::future<MadeImage>>& slot = slots_[taken_ % slots_.size()];
  changed_.wait(lock, [&] { return slot.has_value(); });
  std::future<MadeImage> made = std::move(*slot);
  slot.reset();
  ++taken_;
  lock.unlock();
  changed_.notify_all();
  return made.get();
}

void ImageQueue::work() {
  for (;;) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return ends_ || begun_ < std::min(pictures_.size(), taken_ + slots_.size()); });
    if (ends_) return;
    const std::size_t i = begun_++;
    lock.unlock();
    std::promise<MadeImage> made;  // it carries exceptions, too
    try {
      made.set_value(try_to_make_image(pictures_[i]->path, options_));
    } catch (...) {
      made.set_exception(std::current_exception());
    }
    lock.lock();
    slots_[i % slots_.size()] = made.get_future();
    lock.unlock();
    changed_.notify_all();
  }
}

}  // namespace lockstep
