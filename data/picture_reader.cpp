// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Tells the formats of pictures apart, and reads those of IDX files.
#include "common/error.hpp"
#include "data/byte_source.hpp"
#include "data/channel_order.hpp"
#include "data/idx.hpp"
#include "data/picture_formats.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstring>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>

namespace lockstep {
namespace {

constexpr std::uintmax_t kMaxFileBytes = std::uintmax_t{256} << 20;

/// Each picture is work for the network. Compressed data promise millions of them in a few bytes, and real ones take
/// more: an image of MNIST 160 bytes.
void check_picture_count(const std::string& name, std::int64_t count, std::size_t file_bytes) {
  constexpr std::size_t kAlways = 1000, kLeastBytesOfEach = 16;
  if (static_cast<std::uint64_t>(count) <= kAlways + file_bytes / kLeastBytesOfEach) return;
  throw DataError(
      fmt::format("{}: {} images in {} bytes, less than {} bytes for each: no file of pictures; name one of "
                  "them as {}[0]",
                  name, count, file_bytes, kLeastBytesOfEach, name));
}

Pictures read_idx_pictures(const std::string& name, std::span<const std::uint8_t> file,
                           std::optional<std::int64_t> only) {
  if (!only) check_picture_count(name, parse_idx_dims(file, name).front(), file.size());
  IdxArray array = parse_idx(file, name);
  if (array.dims.size() < 3) {
    throw DataError(
        fmt::format("{}: holds {}, not images; expected count x height x width, and channels where "
                    "there are several",
                    name, to_string(array.dims)));
  }
  check_picture_size(name, array.dims[2], array.dims[1]);
  if (only && *only >= array.dims[0]) {
    throw DataError(
        fmt::format("{}: there is no image {}; it holds 0 to {}", name, *only, array.dims[0] - 1));
  }
  const auto all = static_cast<std::size_t>(array.dims[0]);
  return {std::move(array), name, static_cast<std::size_t>(only.value_or(0)), only ? 1 : all};
}

struct PictureName {
  std::string path;
  std::optional<std::int64_t> index;
};

/// "file[12]" → file, 12; unless a file of that very name exists.
PictureName split_index(const std::string& text) {
  const auto open = text.rfind('[');
  if (open == std::string::npos || text.back() != ']' || std::filesystem::exists(text))
    return {text, std::nullopt};
  std::int64_t index = 0;
  const char* end = text.data() + text.size() - 1;
  const auto [stop, error] = std::from_chars(text.data() + open + 1, end, index);
  if (error != std::errc() || stop != end || index < 0) return {text, std::nullopt};
  return {text.substr(0, open), index};
}

std::vector<std::uint8_t> read_file(const std::string& path) {
  FileSource file(path);
  const std::uint64_t size = file.remaining_at_most();
  if (size > kMaxFileBytes)
    throw DataError(fmt::format("{}: {} bytes; at most {} are read", path, size, kMaxFileBytes));
  std::vector<std::uint8_t> bytes(size);
  bytes.resize(file.read(bytes));
  return bytes;
}

bool starts_with(std::span<const std::uint8_t> file, std::string_view magic) {
  return file.size() >= magic.size() && std::memcmp(file.data(), magic.data(), magic.size()) == 0;
}

}  // namespace

void check_picture_size(const std::string& name, std::int64_t width, std::int64_t height) {
  if (width < 1 || height < 1 || width > kMaxPictureSide || height > kMaxPictureSide ||
      width * height > kMaxPicturePixels) {
    throw DataError(
        fmt::format("{}: {} x {} pixels; pictures from 1 x 1 to {} pixels a side and {} in all are read",
                    name, width, height, kMaxPictureSide, kMaxPicturePixels));
  }
}

Picture Pictures::operator[](std::size_t index) const {
  if (single_) return *single_;
  const std::int64_t channels = images_.dims.size() == 4 ? images_.dims[3] : 1;
  Picture picture{.name = fmt::format("{}[{}]", name_, first_ + index),
                  .width = static_cast<int>(images_.dims[2]),
                  .height = static_cast<int>(images_.dims[1]),
                  .channels = static_cast<int>(channels),
                  .from_idx = true};
  const std::size_t size = picture.plane_size() * static_cast<std::size_t>(channels);
  const auto* begin = images_.bytes.data() + (first_ + index) * size;
  picture.pixels.assign(begin, begin + size);
  separate_channels(picture.pixels, picture.plane_size(), picture.channels);
  return picture;
}

Pictures read_pictures(const std::string& path, PictureColour colour) {
  const auto [file_name, index] = split_index(path);
  return parse_pictures(read_file(file_name), file_name, index, colour);
}

Pictures parse_pictures(std::span<const std::uint8_t> file, const std::string& name,
                        std::optional<std::int64_t> only, PictureColour colour) {
  const bool idx = starts_with(file, std::string_view("\0\0\x08", 3)) || starts_with(file, "\x1f\x8b");
  if (idx) return read_idx_pictures(name, file, only);
  if (only) {
    throw DataError(fmt::format("{}: '[{}]' picks an image of an IDX file, and this is none", name, *only));
  }
  if (starts_with(file, "\x89PNG\r\n\x1a\n")) return Pictures(read_png(name, file, colour));
  if (starts_with(file, "\xff\xd8\xff")) return Pictures(read_jpeg(name, file, colour));
  if (starts_with(file, "P5") || starts_with(file, "P6")) return Pictures(read_pgm(name, file, colour));
  throw DataError(fmt::format("{}: neither PNG, JPEG, binary PGM (P5) or PPM (P6) nor IDX", name));
}

}  // namespace lockstep
