// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Pictures that are made ahead of the step, from where they lie in folders or archives.
#include "data/pictures/picture_store.hpp"

#include "common/env.hpp"
#include "common/error.hpp"
#include "common/machine.hpp"
#include "common/output.hpp"
#include "common/text_layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace lockstep {
namespace {

constexpr std::size_t kAlwaysKept = 64;  // a grain, of images of any size
constexpr int kMostThreads = 16;

}  // namespace

ReadyImages::ReadyImages(std::size_t image_bytes, Make make)
    : image_bytes_(image_bytes),
      most_kept_(std::max(kAlwaysKept, kKeptBytes / std::max<std::size_t>(image_bytes, 1))),
      most_threads_(static_cast<std::size_t>(std::min(available_cores(), kMostThreads))),
      make_(std::move(make)) {}

ReadyImages::~ReadyImages() {
  end_threads(threads_, mutex_, wanted_changed_, ends_);
}

void ReadyImages::read(std::span<const std::int64_t> samples, std::span<std::uint8_t> to) {
  LOCKSTEP_CHECK(to.size() == samples.size() * image_bytes_);
  const std::vector<Shared> images = wait_for(samples);
  for (std::size_t i = 0; i < images.size(); ++i)
    std::ranges::copy(images[i]->pixels, to.begin() + static_cast<std::ptrdiff_t>(i * image_bytes_));
}

std::vector<ReadyImages::Shared> ReadyImages::wait_for(std::span<const std::int64_t> samples) {
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
  return images;
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
  while (threads_.size() < most_threads_) threads_.push_back(start_thread([this] { work(); }));
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

// The pictures of a half.

namespace {

constexpr const char* kFixForPicture =
    "; mend or remove it; a run that has trained on it goes on only with the picture as it was";

std::string error_at(const std::string& what, std::int64_t sample, const std::string& half) {
  return fmt::format("{} (sample {} of {})", what, sample, half);
}

/// A file that may have gone since it was listed.
std::vector<std::uint8_t> read_file(const std::string& path, std::uint64_t bytes) {
  try {
    const StoredFile file = read_patiently(Env::posix(), [&] { return StoredFile(path); });
    if (file.size() != bytes)
      throw DataError(fmt::format("{}: {} {}, and {} at the start", path, file.size(),
                                  plural(file.size(), "byte"), bytes));
    std::vector<std::uint8_t> read(bytes);
    read.resize(file.read(0, read));
    return read;
  } catch (const MissingDataError&) {
    throw DataError(fmt::format("{}: is not there any more", path));
  }
}

std::vector<std::uint8_t> read_entry(const StoredFile& archive, const PictureList::Entry& entry) {
  std::vector<std::uint8_t> read(entry.bytes);
  read.resize(archive.read(entry.offset, read));
  if (read.size() < entry.bytes)
    throw DataError(fmt::format("{}: ends at byte {}, and was longer at the start", archive.name(),
                                entry.offset + read.size()));
  return read;
}

}  // namespace

void PictureList::add(std::string_view name, std::uint64_t offset, std::uint64_t bytes) {
  entries_.push_back({offset, bytes, names_.size(), static_cast<std::uint32_t>(places.size() - 1)});
  names_.append(name).push_back('\0');
  if (bytes > kMaxPictureFileBytes)
    throw DataError(
        fmt::format("{}: {} bytes; at most {} are read", path_of(size() - 1), bytes, kMaxPictureFileBytes));
  if (size() > std::numeric_limits<std::int32_t>::max())
    throw DataError(fmt::format("{}: more than {} pictures; split the set", places.front().string(),
                                std::numeric_limits<std::int32_t>::max()));
}

std::string PictureList::path_of(std::int64_t sample) const {
  const std::filesystem::path& place = places[(*this)[sample].place];
  return in_archives ? fmt::format("{}: {}", place.string(), name_of(sample))
                     : (place / name_of(sample)).string();
}

ImageShape PictureStore::shape_of(const PictureList& pictures, const PictureForm& form) {
  if (form.has_size()) return {channels_of(form.colour), form.size.height, form.size.width};
  const PictureList::Entry& first = pictures[0];
  const std::string path = pictures.path_of(0);
  return parse_picture(pictures.in_archives ? read_entry(StoredFile(pictures.places[first.place]), first)
                                            : read_file(path, first.bytes),
                       path, form.colour)
      .shape();
}

PictureStore::PictureStore(Contents contents)
    : contents_(std::move(contents)),
      images_(static_cast<std::size_t>(contents_.shape.features()),
              [this](std::int64_t sample, std::span<std::uint8_t> to) { make(sample, to); }) {
  if (!contents_.pictures.in_archives) return;
  for (const auto& place : contents_.pictures.places) archives_.emplace_back(place);
}

const PixelSums& PictureStore::sums() const {
  std::call_once(measured_, [this] {
    sums_ = measured_sums(*this, contents_.shape, contents_.sums_file, contents_.sums_key);
    if (had_16_bits_ > 0)
      print_error(fmt::format("{}: {} of 16 bits a channel, rounded to 8", contents_.name,
                              counted(had_16_bits_.load(), "picture")));
  });
  return sums_;
}

std::vector<std::uint8_t> PictureStore::bytes_of(std::int64_t sample) const {
  const PictureList::Entry& entry = contents_.pictures[sample];
  return contents_.pictures.in_archives ? read_entry(archives_[entry.place], entry)
                                        : read_file(contents_.pictures.path_of(sample), entry.bytes);
}

/// Errors name file and sample.
void PictureStore::make(std::int64_t sample, std::span<std::uint8_t> to) const {
  const PictureForm& form = contents_.form;
  const std::string path = contents_.pictures.path_of(sample);
  ImageShape is;
  try {
    Picture picture = parse_picture(bytes_of(sample), path, form.colour);
    had_16_bits_ += picture.had_16_bits ? 1 : 0;
    if (form.has_size()) picture = fit_picture(picture, form.size, form.fit);
    if (picture.shape() == contents_.shape) return void(std::ranges::copy(picture.pixels, to.begin()));
    is = picture.shape();
  } catch (const DataError& error) {
    throw DataError(error_at(error.what(), sample, contents_.name) + kFixForPicture);
  } catch (const IoError& error) {
    throw IoError(error_at(error.what(), sample, contents_.name));
  }
  throw DataError(error_at(fmt::format("{}: {} x {} pixels, and the first picture has {} x {}", path,
                                       is.width, is.height, contents_.shape.width, contents_.shape.height),
                           sample, contents_.name) +
                  "; scale all of them: data.size=64, or another size");
}

}  // namespace lockstep
