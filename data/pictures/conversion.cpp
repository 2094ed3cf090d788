// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Reading pictures on several threads, and writing them in their order as a set.
#include "data/pictures/conversion.hpp"

#include "common/buffers.hpp"
#include "common/error.hpp"
#include "common/text_layout.hpp"
#include "common/threads.hpp"
#include "data/byte_source.hpp"
#include "data/class_names.hpp"
#include "data/idx.hpp"
#include "data/sets/catalogue.hpp"
#include "data/sets/sample_names.hpp"
#include "data/sets/set_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <filesystem>
#include <future>
#include <mutex>
#include <span>
#include <thread>
#include <utility>
#include <vector>

namespace lockstep {
namespace {

namespace fs = std::filesystem;

/// `to` would be found among the classes the next time.
void require_apart(const ConversionOptions& options) {
  const fs::path from = fs::weakly_canonical(options.from), to = fs::weakly_canonical(options.to);
  const auto [end_of_from, at] = std::mismatch(from.begin(), from.end(), to.begin(), to.end());
  if (end_of_from != from.end()) return;
  throw UsageError(
      fmt::format("{}: lies in {}, where it would be taken for a class; choose a directory elsewhere",
                  options.to, options.from));
}

// What one picture becomes.

struct MadeImage {
  std::vector<std::uint8_t> pixels{};  ///< as the set's files hold them
  ImageShape shape{};
  bool reshaped = false, made_grey = false;
  std::string damage{};  ///< why there is none
};

/// @throws DataError, MissingDataError, IoError
Picture read_picture(const fs::path& path, PictureColour colour) {
  const Pictures pictures = read_pictures(path.string(), colour);
  Picture picture = pictures[0];
  if (picture.from_idx)
    throw DataError(
        fmt::format("{}: is an IDX file, whatever its name says; convert pictures only", path.string()));
  return picture;
}

MadeImage make_image(const fs::path& path, const ConversionOptions& options) {
  Picture picture = read_picture(path, options.colour);
  MadeImage made{.made_grey = picture.was_coloured && picture.channels == 1};
  if (options.size) {
    made.reshaped = std::int64_t{picture.width} * options.size->height !=
                    std::int64_t{picture.height} * options.size->width;
    picture = fit_picture(picture, *options.size, options.fit);
  }
  made.shape = picture.shape();
  made.pixels.resize(picture.pixels.size());
  interleave_channels(picture.pixels, picture.plane_size(), picture.channels, made.pixels);
  return made;
}

/// Whatever is wrong with a picture concerns it alone.
MadeImage try_to_make_image(const fs::path& path, const ConversionOptions& options) {
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

/// Makes images ahead of the one that is wanted, each on one of several threads.
class ImageQueue {
 public:
  ImageQueue(const std::vector<const LabelledPicture*>& pictures, const ConversionOptions& options)
      : pictures_(pictures), options_(options), slots_(2 * static_cast<std::size_t>(options.threads)) {
    for (int i = 0; i < options.threads; ++i) threads_.push_back(start_thread([this] { work(); }));
  }
  ~ImageQueue() {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  ImageQueue(const ImageQueue&) = delete;
  ImageQueue& operator=(const ImageQueue&) = delete;

  /// The images in their order, one at each call.
  MadeImage next() {
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

 private:
  void work() {
    for (;;) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock,
                    [&] { return ends_ || begun_ < std::min(pictures_.size(), taken_ + slots_.size()); });
      if (ends_) return;
      const std::size_t i = begun_++;
      lock.unlock();
      std::promise<MadeImage> made;  // which carries what is thrown, too
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

  const std::vector<const LabelledPicture*>& pictures_;
  const ConversionOptions& options_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::optional<std::future<MadeImage>>> slots_;  ///< image i is in slot i modulo their number
  std::size_t begun_ = 0, taken_ = 0;
  bool ends_ = false;
  std::vector<std::thread> threads_;
};

// The files of a set.

void write_text(Env& env, const std::string& path, const std::string& text) {
  write_synced(env, path, std::as_bytes(std::span(text)));
}

/// One half, in the making.
class IdxHalf {
 public:
  IdxHalf(Env& env, SetDirectory& directory, const char* half, std::size_t count, const ImageShape& shape)
      : env_(env), names_path_(directory.add(sample_names_file(half))) {
    const auto samples = static_cast<std::int64_t>(count);
    std::vector<std::int64_t> dims = {samples, shape.height, shape.width};
    if (shape.channels > 1) dims.push_back(shape.channels);
    labels_.emplace(env, directory.add(fmt::format("{}-labels-idx1-ubyte", half)), std::vector{samples});
    images_.emplace(env, directory.add(fmt::format("{}-images-idx{}-ubyte", half, dims.size())), dims);
  }

  void add(const MadeImage& image, std::uint32_t label, const fs::path& name) {
    const auto byte = static_cast<std::uint8_t>(label);
    images_->write(image.pixels);
    labels_->write({&byte, 1});
    names_ += sample_name_line(name);
  }

  void finish() {
    images_->finish();
    labels_->finish();
    write_text(env_, names_path_, names_);
  }

 private:
  Env& env_;
  std::string names_path_, names_;
  std::optional<IdxWriter> labels_, images_;
};

/// Before anything is written.
void require_room_in_idx(std::size_t samples, const ImageShape& shape) {
  const std::uint64_t bytes = checked_product(samples, shape.channels, shape.height, shape.width);
  if (bytes <= kMaxIdxBytes) return;
  throw DataError(
      fmt::format("{} of {} x {} pixels with {} are more than the {} bytes of an IDX "
                  "file; say --size to make them smaller",
                  counted(samples, "image"), shape.width, shape.height, counted(shape.channels, "channel"),
                  kMaxIdxBytes));
}

// All pictures, one after the other.

class ConversionPass {
 public:
  ConversionPass(const ConversionOptions& options, Conversion& result) : options_(options), result_(result) {
    for (const auto* half : {&result.pictures.train, &result.pictures.test})
      for (const LabelledPicture& picture : *half) pictures_.push_back(&picture);
  }

  /// @returns pictures that cannot be read; if there are any, nothing is published
  std::vector<DamagedPicture> run(Env& env) {
    if (!choose_shape()) return std::move(damaged_);
    const std::size_t train = result_.pictures.train.size(), test = result_.pictures.test.size();
    require_room_in_idx(std::max(train, test), result_.shape);
    SetDirectory directory(env, options_.to, options_.replace);
    std::string names;
    for (const std::string& name : result_.pictures.class_names) names += name + "\n";
    // Files get their names in this order: without its images there is no set.
    write_text(env, directory.add(own_set().names_file), names);
    IdxHalf test_half(env, directory, "t10k", test, result_.shape),
        train_half(env, directory, "train", train, result_.shape);
    ImageQueue images(pictures_, options_);
    for (std::size_t i = 0; i < pictures_.size(); ++i) {
      const MadeImage image = images.next();
      if (look_at(image, pictures_[i]->path) && damaged_.empty())
        (i < train ? train_half : test_half)
            .add(image, pictures_[i]->label, pictures_[i]->path.lexically_relative(options_.from));
      if (options_.on_progress) options_.on_progress(i + 1, pictures_.size());
    }
    if (!damaged_.empty()) return std::move(damaged_);
    test_half.finish();
    train_half.finish();
    directory.publish();
    return {};
  }

 private:
  /// As it was asked for, or that of the first picture that can be read; false: there is none.
  bool choose_shape() {
    if (options_.size) {
      result_.shape = {channels_of(options_.colour), options_.size->height, options_.size->width};
      return true;
    }
    std::vector<DamagedPicture> damaged;
    for (const LabelledPicture* picture : pictures_) {
      const MadeImage image = try_to_make_image(picture->path, options_);
      first_ = picture->path;
      result_.shape = image.shape;
      if (image.damage.empty()) return true;
      damaged.push_back({picture->path, image.damage});
    }
    damaged_ = std::move(damaged);
    return false;
  }

  /// Whether it can be in the set.
  bool look_at(const MadeImage& image, const fs::path& path) {
    if (!image.damage.empty()) {
      damaged_.push_back({path, image.damage});
      return false;
    }
    if (image.shape != result_.shape) {
      throw DataError(
          fmt::format("{}: {} x {} pixels, but {} has {} x {}; say --size WIDTHxHEIGHT to scale all to "
                      "one size",
                      path.string(), image.shape.width, image.shape.height, first_.string(),
                      result_.shape.width, result_.shape.height));
    }
    result_.reshaped += image.reshaped ? 1 : 0;
    result_.made_grey += image.made_grey ? 1 : 0;
    return true;
  }

  const ConversionOptions& options_;
  Conversion& result_;
  std::vector<const LabelledPicture*> pictures_;
  fs::path first_;
  std::vector<DamagedPicture> damaged_;
};

}  // namespace

DamagedPicturesError::DamagedPicturesError(std::vector<DamagedPicture> pictures)
    : DataError(fmt::format("{}{}; mend or remove {}, or leave {} out with --skip-damaged",
                            pictures.front().reason,
                            pictures.size() == 1 ? "" : fmt::format(", and {} more", pictures.size() - 1),
                            pictures.size() == 1 ? "it" : "them", pictures.size() == 1 ? "it" : "them")),
      pictures_(std::move(pictures)) {}

Conversion convert_pictures(Env& env, const ConversionOptions& options) {
  require_apart(options);
  std::set<fs::path> skipped;
  for (std::vector<DamagedPicture> all_damaged;;) {
    Conversion result{.pictures = find_sorted_pictures(options.from, options.test, kMostClasses, skipped),
                      .shape = {0, 0, 0}};
    const std::vector<DamagedPicture> damaged = ConversionPass(options, result).run(env);
    all_damaged.insert(all_damaged.end(), damaged.begin(), damaged.end());
    if (!damaged.empty() && !options.skip_damaged) throw DamagedPicturesError(std::move(all_damaged));
    if (damaged.empty()) {
      result.damaged = std::move(all_damaged);
      return result;
    }
    for (const DamagedPicture& picture : damaged) skipped.insert(picture.path);
  }
}

}  // namespace lockstep
