// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// From a file, or a piece of an archive, to the bytes of a sample.
#include "data/pictures/picture_store.hpp"

#include "common/env.hpp"
#include "common/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

namespace lockstep {
namespace {

constexpr const char* kFixForPicture =
    "put it back as it was, or mend or remove it and start afresh (run.resume=never)";

std::string error_at(const std::string& what, std::int64_t sample, const std::string& half) {
  return fmt::format("{} (sample {} of {}); {}", what, sample, half, kFixForPicture);
}

/// A file that may have gone since it was listed.
std::vector<std::uint8_t> read_file(const std::string& path, std::uint64_t bytes) {
  try {
    const StoredFile file = read_patiently(Env::posix(), [&] { return StoredFile(path); });
    if (file.size() != bytes)
      throw DataError(fmt::format("{}: {} bytes, and {} when the run started", path, file.size(), bytes));
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
    throw DataError(fmt::format("{}: ends at byte {}, and was longer when the run started", archive.name(),
                                entry.offset + read.size()));
  return read;
}

Picture in_form(std::span<const std::uint8_t> file, const std::string& name, const PictureForm& form) {
  Picture picture = parse_picture(file, name, form.colour);
  return form.has_size() ? fit_picture(picture, form.size, form.fit) : picture;
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

ImageShape PictureStore::shape_of(const PictureList& pictures, std::int64_t sample, const PictureForm& form) {
  if (form.has_size()) return {channels_of(form.colour), form.size.height, form.size.width};
  const PictureList::Entry& entry = pictures[sample];
  const std::string path = pictures.path_of(sample);
  return in_form(pictures.in_archives ? read_entry(StoredFile(pictures.places[entry.place]), entry)
                                      : read_file(path, entry.bytes),
                 path, form)
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
  });
  return sums_;
}

/// Errors name file and sample.
void PictureStore::make(std::int64_t sample, std::span<std::uint8_t> to) const {
  const PictureList& pictures = contents_.pictures;
  const std::string path = pictures.path_of(sample);
  const PictureList::Entry& entry = pictures[sample];
  try {
    const Picture picture = in_form(
        pictures.in_archives ? read_entry(archives_[entry.place], entry) : read_file(path, entry.bytes), path,
        contents_.form);
    const ImageShape &is = picture.shape(), &wanted = contents_.shape;
    if (is != wanted)
      throw DataError(fmt::format("{}: {} x {} pixels, and the first picture has {} x {}; set data.size",
                                  path, is.width, is.height, wanted.width, wanted.height));
    std::ranges::copy(picture.pixels, to.begin());
  } catch (const DataError& error) {
    throw DataError(error_at(error.what(), sample, contents_.name));
  } catch (const IoError& error) {
    throw IoError(error_at(error.what(), sample, contents_.name));
  }
}

}  // namespace lockstep
