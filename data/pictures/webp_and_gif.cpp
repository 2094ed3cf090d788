// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// WEBP by libwebp, whose pixels its format defines to the last bit; GIF by giflib.
#include "common/error.hpp"
#include "data/pictures/picture.hpp"

#include <fmt/format.h>
#include <gif_lib.h>
#include <webp/decode.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace lockstep {

namespace {

using Pixels = std::vector<std::uint8_t>;
constexpr std::size_t kRgba = 4;

/// What becomes of red, green, blue and alpha of each pixel.
Picture picture_of(const std::string& name, int width, int height, Pixels rgba, PictureColour colour) {
  Picture picture{.name = name, .width = width, .height = height, .channels = 3};
  lay_on_paper(picture, std::move(rgba));
  recolour(picture, colour);
  return picture;
}

}  // namespace

Picture read_webp(const std::string& name, std::span<const std::uint8_t> file, PictureColour colour) {
  WebPBitstreamFeatures features{};
  if (WebPGetFeatures(file.data(), file.size(), &features) != VP8_STATUS_OK)
    throw DataError(fmt::format("{}: damaged WEBP: its header cannot be read", name));
  if (features.has_animation != 0)
    throw DataError(fmt::format("{}: WEBP that moves; save one of its pictures by itself", name));
  check_packed_size(name, features.width, features.height, file.size());
  const std::size_t row_bytes = kRgba * static_cast<std::size_t>(features.width);
  Pixels rgba(row_bytes * static_cast<std::size_t>(features.height));
  if (WebPDecodeRGBAInto(file.data(), file.size(), rgba.data(), rgba.size(), static_cast<int>(row_bytes)) ==
      nullptr)
    throw DataError(fmt::format("{}: damaged WEBP: its pixels cannot be read", name));
  return picture_of(name, features.width, features.height, std::move(rgba), colour);
}

// GIF: records one after another, of which the first picture is wanted.

namespace {

class GifReader {
 public:
  GifReader(const std::string& name, std::span<const std::uint8_t> file) : name_(name), file_(file) {
    int error = 0;
    gif_ = DGifOpen(this, &GifReader::deliver, &error);
    if (gif_ == nullptr) fail(GifErrorString(error));
  }
  ~GifReader() { DGifCloseFile(gif_, nullptr); }
  GifReader(const GifReader&) = delete;
  GifReader& operator=(const GifReader&) = delete;

  Picture read(PictureColour colour) {
    check_packed_size(name_, gif_->SWidth, gif_->SHeight, file_.size());
    go_to_picture();
    const GifImageDesc& frame = gif_->Image;
    if (frame.Width < 1 || frame.Height < 1 || frame.Left + frame.Width > gif_->SWidth ||
        frame.Top + frame.Height > gif_->SHeight)
      fail("its picture does not lie on its screen");
    const ColorMapObject* const colours = frame.ColorMap != nullptr ? frame.ColorMap : gif_->SColorMap;
    if (colours == nullptr) fail("it has no colours");
    rgba_.assign(kRgba * static_cast<std::size_t>(gif_->SWidth) * static_cast<std::size_t>(gif_->SHeight), 0);
    read_rows(frame, *colours);
    return picture_of(name_, gif_->SWidth, gif_->SHeight, std::move(rgba_), colour);
  }

 private:
  static int deliver(GifFileType* gif, GifByteType* to, int wanted) {
    auto& self = *static_cast<GifReader*>(gif->UserData);
    const std::size_t bytes = std::min(static_cast<std::size_t>(wanted), self.file_.size() - self.at_);
    std::memcpy(to, self.file_.data() + self.at_, bytes);
    self.at_ += bytes;
    return static_cast<int>(bytes);
  }

  [[noreturn]] void fail(const char* why) const {
    throw DataError(fmt::format("{}: damaged GIF: {}", name_, why != nullptr ? why : "it cannot be read"));
  }

  void must(int result) const {
    if (result != GIF_OK) fail(GifErrorString(gif_->Error));
  }

  /// Past what says how it is shown, which may name a colour that is transparent.
  void go_to_picture() {
    for (GifRecordType record = UNDEFINED_RECORD_TYPE; record != IMAGE_DESC_RECORD_TYPE;) {
      must(DGifGetRecordType(gif_, &record));
      if (record == TERMINATE_RECORD_TYPE) fail("it holds no picture");
      if (record == EXTENSION_RECORD_TYPE) skip_extension();
    }
    must(DGifGetImageDesc(gif_));
  }

  void skip_extension() {
    int code = 0;
    GifByteType* block = nullptr;
    must(DGifGetExtension(gif_, &code, &block));
    while (block != nullptr) {
      GraphicsControlBlock control{};
      if (code == GRAPHICS_EXT_FUNC_CODE && DGifExtensionToGCB(block[0], block + 1, &control) == GIF_OK)
        transparent_ = control.TransparentColor;
      must(DGifGetExtensionNext(gif_, &block));
    }
  }

  void read_rows(const GifImageDesc& frame, const ColorMapObject& colours) {
    constexpr std::pair<int, int> kWhole[] = {{0, 1}}, kInterlaced[] = {{0, 8}, {4, 8}, {2, 4}, {1, 2}};
    std::vector<GifPixelType> row(static_cast<std::size_t>(frame.Width));
    const auto passes = frame.Interlace ? std::span<const std::pair<int, int>>(kInterlaced) : kWhole;
    for (const auto& [first, step] : passes) {
      for (int y = first; y < frame.Height; y += step) {
        must(DGifGetLine(gif_, row.data(), frame.Width));
        const int at = (frame.Top + y) * gif_->SWidth + frame.Left;
        put_row(row, colours, rgba_.data() + kRgba * static_cast<std::size_t>(at));
      }
    }
  }

  void put_row(std::span<const GifPixelType> row, const ColorMapObject& colours, std::uint8_t* to) const {
    for (const GifPixelType pixel : row) {
      if (pixel >= colours.ColorCount) fail("a pixel has a colour that there is not");
      const GifColorType& shown = colours.Colors[pixel];
      const bool is_clear = pixel == transparent_;
      for (const GifByteType part : {shown.Red, shown.Green, shown.Blue}) *to++ = part;
      *to++ = is_clear ? 0 : 255;
    }
  }

  const std::string& name_;
  std::span<const std::uint8_t> file_;
  std::size_t at_ = 0;
  GifFileType* gif_ = nullptr;
  int transparent_ = NO_TRANSPARENT_COLOR;
  Pixels rgba_;
};

}  // namespace

Picture read_gif(const std::string& name, std::span<const std::uint8_t> file, PictureColour colour) {
  return GifReader(name, file).read(colour);
}

}  // namespace lockstep
