// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Reads PNG (libpng), PGM and IDX into data/picture.hpp's Picture.
#include "data/byte_source.hpp"
#include "data/idx.hpp"
#include "data/picture.hpp"
#include "kernels/runtime/error.hpp"

#include <fmt/format.h>
#include <png.h>

#include <charconv>
#include <cstring>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>

namespace lockstep {
namespace {

constexpr std::uint64_t kMaxFileBytes = std::uint64_t{256} << 20;

void check_size(const std::string& name, std::int64_t width, std::int64_t height) {
  if (width < 1 || height < 1 || width > kMaxPictureSide || height > kMaxPictureSide ||
      width * height > kMaxPicturePixels) {
    throw DataError(
        fmt::format("{}: {} x {} pixels; pictures from 1 x 1 to {} pixels a side and {} in all are read",
                    name, width, height, kMaxPictureSide, kMaxPicturePixels));
  }
}

/// Frees what libpng holds, whatever happens.
struct PngImage : png_image {
  PngImage() : png_image{} { version = PNG_IMAGE_VERSION; }
  ~PngImage() { png_image_free(this); }
  PngImage(const PngImage&) = delete;
  PngImage& operator=(const PngImage&) = delete;
};

Picture read_png(const std::string& name, std::span<const std::uint8_t> file) {
  PngImage image;
  if (png_image_begin_read_from_memory(&image, file.data(), file.size()) == 0) {
    throw DataError(fmt::format("{}: damaged PNG: {}", name, image.message));
  }
  check_size(name, image.width, image.height);
  image.format = PNG_FORMAT_GRAY;
  Picture picture{.name = name,
                  .width = static_cast<int>(image.width),
                  .height = static_cast<int>(image.height),
                  .pixels = {}};
  picture.pixels.resize(PNG_IMAGE_SIZE(image));
  const png_color black{0, 0, 0};
  if (png_image_finish_read(&image, &black, picture.pixels.data(), 0, nullptr) == 0) {
    throw DataError(fmt::format("{}: damaged PNG: {}", name, image.message));
  }
  return picture;
}

/// Reads the header of a PGM: numbers between white space and comments.
class PgmHeader {
 public:
  PgmHeader(const std::string& name, std::span<const std::uint8_t> file) : name_(name), file_(file) {}

  int number(const char* what) {
    skip_space();
    const auto* begin = reinterpret_cast<const char*>(file_.data()) + at_;
    int value = 0;
    const auto [end, error] = std::from_chars(begin, begin + (file_.size() - at_), value);
    if (error != std::errc() || value < 1) {
      throw DataError(
          fmt::format("{}: PGM header, offset {}: expected the {}, a positive number", name_, at_, what));
    }
    at_ += static_cast<std::size_t>(end - begin);
    return value;
  }

  /// Offset of the pixels: one white space after the last number.
  std::size_t pixels() const { return at_ + 1; }

 private:
  void skip_space() {
    while (at_ < file_.size()) {
      if (file_[at_] == '#') {
        while (at_ < file_.size() && file_[at_] != '\n') ++at_;
      } else if (std::strchr(" \t\r\n", file_[at_]) != nullptr && file_[at_] != 0) {
        ++at_;
      } else {
        return;
      }
    }
  }

  const std::string& name_;
  std::span<const std::uint8_t> file_;
  std::size_t at_ = 2;
};

Picture read_pgm(const std::string& name, std::span<const std::uint8_t> file) {
  PgmHeader header(name, file);
  const int width = header.number("width"), height = header.number("height"),
            largest = header.number("largest value");
  check_size(name, width, height);
  if (largest > 255) throw DataError(fmt::format("{}: PGM with 16 bits a pixel; save it with 8", name));
  const auto size = static_cast<std::size_t>(width) * static_cast<std::size_t>(height);
  if (header.pixels() > file.size() || file.size() - header.pixels() < size) {
    throw DataError(fmt::format("{}: truncated PGM: {} pixels promised, {} bytes there", name, size,
                                file.size() - std::min(header.pixels(), file.size())));
  }
  Picture picture{.name = name, .width = width, .height = height, .pixels = {}};
  picture.pixels.reserve(size);
  for (const auto value : file.subspan(header.pixels(), size)) {
    picture.pixels.push_back(static_cast<std::uint8_t>(std::min(255, value * 255 / largest)));
  }
  return picture;
}

Pictures read_idx_pictures(const std::string& name, std::span<const std::uint8_t> file,
                           std::optional<std::int64_t> only) {
  IdxArray array = parse_idx(file, name);
  if (array.dims.size() != 3) {
    throw DataError(fmt::format("{}: holds {}, not images; expected count x height x width", name,
                                to_string(array.dims)));
  }
  check_size(name, array.dims[2], array.dims[1]);
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

Picture Pictures::operator[](std::size_t index) const {
  if (single_) return *single_;
  const auto pixels = static_cast<std::size_t>(images_.dims[1] * images_.dims[2]);
  const auto* begin = images_.bytes.data() + (first_ + index) * pixels;
  return {.name = fmt::format("{}[{}]", name_, first_ + index),
          .width = static_cast<int>(images_.dims[2]),
          .height = static_cast<int>(images_.dims[1]),
          .from_idx = true,
          .pixels = std::vector<std::uint8_t>(begin, begin + pixels)};
}

Pictures read_pictures(const std::string& path) {
  const auto [file_name, index] = split_index(path);
  return parse_pictures(read_file(file_name), file_name, index);
}

Pictures parse_pictures(std::span<const std::uint8_t> file, const std::string& name,
                        std::optional<std::int64_t> only) {
  const bool idx = starts_with(file, std::string_view("\0\0\x08", 3)) || starts_with(file, "\x1f\x8b");
  if (idx) return read_idx_pictures(name, file, only);
  if (only) {
    throw DataError(fmt::format("{}: '[{}]' picks an image of an IDX file, and this is none", name, *only));
  }
  if (starts_with(file, "\x89PNG\r\n\x1a\n")) return Pictures(read_png(name, file));
  if (starts_with(file, "P5")) return Pictures(read_pgm(name, file));
  throw DataError(fmt::format("{}: neither PNG, binary PGM (P5) nor IDX", name));
}

}  // namespace lockstep
