// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "tests/data/picture_fixture.hpp"

#include "common/error.hpp"
#include "data/sets/made_sets.hpp"
#include "tests/support/prelude.hpp"

#include <jpeglib.h>
#include <png.h>

namespace lockstep::testing {
namespace {

void append(png_structp png, png_bytep data, png_size_t size) {
  auto& bytes = *static_cast<Bytes*>(png_get_io_ptr(png));
  bytes.insert(bytes.end(), data, data + size);
}

/// libpng's full interface, for what the simplified one cannot write.
Bytes encode_png_rows(const Picture& picture, int bits, int interlace, const Bytes& bytes_of_rows) {
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  Bytes file;
  png_set_write_fn(png, &file, append, nullptr);
  const auto width = static_cast<png_uint_32>(picture.width),
             height = static_cast<png_uint_32>(picture.height);
  png_set_IHDR(png, info, width, height, bits, PNG_COLOR_TYPE_GRAY, interlace, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  Bytes rows = bytes_of_rows;
  std::vector<png_bytep> pointers;
  for (std::size_t y = 0; y < height; ++y)
    pointers.push_back(rows.data() + y * width * static_cast<std::size_t>(bits / 8));
  png_set_rows(png, info, pointers.data());
  png_write_png(png, info, PNG_TRANSFORM_IDENTITY, nullptr);
  png_destroy_write_struct(&png, &info);
  return file;
}

Bytes exif_block(int orientation) {
  Bytes block = {'E',  'x',  'i', 'f', 0, 0, 'M', 'M', 0, 42, 0, 0, 0, 8, 0, 1,
                 0x01, 0x12, 0,   3,   0, 0, 0,   1,   0, 0,  0, 0, 0, 0, 0, 0};
  block[25] = static_cast<std::uint8_t>(orientation);
  return block;
}

}  // namespace

Picture sheet(int width, int height, int paper) {
  Picture picture;
  picture.width = width;
  picture.height = height;
  picture.pixels.assign(static_cast<std::size_t>(width) * static_cast<std::size_t>(height),
                        static_cast<std::uint8_t>(paper));
  return picture;
}

void draw_digit(Picture& picture, int digit, double x, double y, double size, int ink, double pen_radius) {
  const int side = std::max(picture.width, picture.height);
  Pen pen(side, static_cast<float>(pen_radius));
  const auto place = [&](Point p) {
    return Point{static_cast<float>(x + (p.x - 0.5) * 0.65 * size),
                 static_cast<float>(y + (p.y - 0.5) * size)};
  };
  for (const Stroke& curve : strokes_of_digit(digit))
    pen.draw({place(curve.from), place(curve.control), place(curve.to)});
  std::vector<float> coverage(static_cast<std::size_t>(side) * static_cast<std::size_t>(side));
  pen.coverage(coverage);
  for (int row = 0; row < picture.height; ++row) {
    for (int column = 0; column < picture.width; ++column) {
      const float share = coverage[static_cast<std::size_t>(row) * static_cast<std::size_t>(side) +
                                   static_cast<std::size_t>(column)];
      auto& pixel = picture.pixels[static_cast<std::size_t>(row) * static_cast<std::size_t>(picture.width) +
                                   static_cast<std::size_t>(column)];
      pixel = static_cast<std::uint8_t>(
          std::lround(static_cast<float>(pixel) * (1 - share) + static_cast<float>(ink) * share));
    }
  }
}

Picture drawn(int width, int height, std::initializer_list<Box> blocks, int ink, int paper) {
  Picture picture = sheet(width, height, paper);
  for (const Box& block : blocks)
    for (int y = block.top; y < block.bottom; ++y)
      for (int x = block.left; x < block.right; ++x)
        picture.pixels[static_cast<std::size_t>(y * width + x)] = static_cast<std::uint8_t>(ink);
  return picture;
}

Bytes encode_png(std::uint32_t width, std::uint32_t height, std::uint32_t format, const Bytes& pixels,
                 const Bytes& palette) {
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  image.width = width;
  image.height = height;
  image.format = format;
  image.colormap_entries = static_cast<std::uint32_t>(palette.size() / 4);
  png_alloc_size_t size = 0;
  EXPECT_NE(png_image_write_get_memory_size(image, size, 0, pixels.data(), 0, palette.data()), 0);
  Bytes file(size);
  EXPECT_NE(png_image_write_to_memory(&image, file.data(), &size, 0, pixels.data(), 0, palette.data()), 0);
  file.resize(size);
  return file;
}

Bytes encode_png(const Picture& picture) {
  return encode_png(static_cast<std::uint32_t>(picture.width), static_cast<std::uint32_t>(picture.height),
                    PNG_FORMAT_GRAY, picture.pixels);
}

Bytes encode_png_16(const Picture& picture, bool interlaced) {
  Bytes rows;
  for (const std::uint8_t pixel : picture.pixels) rows.insert(rows.end(), {pixel, pixel});
  return encode_png_rows(picture, 16, interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, rows);
}

Bytes encode_png_interlaced(const Picture& picture) {
  return encode_png_rows(picture, 8, PNG_INTERLACE_ADAM7, picture.pixels);
}

Bytes encode_png_ink_only(const Picture& picture, int ink) {
  Bytes grey_alpha;
  for (const std::uint8_t pixel : picture.pixels)
    grey_alpha.insert(grey_alpha.end(),
                      {static_cast<std::uint8_t>(ink), static_cast<std::uint8_t>(255 - pixel)});
  return encode_png(static_cast<std::uint32_t>(picture.width), static_cast<std::uint32_t>(picture.height),
                    PNG_FORMAT_GA, grey_alpha);
}

Bytes encode_png_palette(const Picture& picture) {
  Bytes indices;
  for (const std::uint8_t pixel : picture.pixels) indices.push_back(pixel < 128 ? 1 : 0);
  return encode_png(static_cast<std::uint32_t>(picture.width), static_cast<std::uint32_t>(picture.height),
                    PNG_FORMAT_RGBA_COLORMAP, indices, {0, 0, 0, 0, 20, 30, 120, 255});
}

Bytes encode_jpeg(const Picture& picture, const JpegOptions& options) {
  jpeg_compress_struct jpeg;
  jpeg_error_mgr errors;
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  unsigned char* buffer = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&jpeg, &buffer, &size);
  jpeg.image_width = static_cast<JDIMENSION>(picture.width);
  jpeg.image_height = static_cast<JDIMENSION>(picture.height);
  jpeg.input_components = options.four_inks ? 4 : options.in_scans ? 3 : 1;
  jpeg.in_color_space = options.four_inks ? JCS_CMYK : options.in_scans ? JCS_RGB : JCS_GRAYSCALE;
  jpeg_set_defaults(&jpeg);
  const jpeg_scan_info scans[] = {{1, {0}, 0, 63, 0, 0}, {1, {1}, 0, 63, 0, 0}, {1, {2}, 0, 63, 0, 0}};
  if (options.in_scans) jpeg.scan_info = scans, jpeg.num_scans = 3;
  jpeg_set_quality(&jpeg, options.quality, TRUE);
  if (options.progressive) jpeg_simple_progression(&jpeg);
  jpeg_start_compress(&jpeg, TRUE);
  if (options.orientation != 0) {
    const Bytes block = exif_block(options.orientation);
    jpeg_write_marker(&jpeg, JPEG_APP0 + 1, block.data(), static_cast<unsigned>(block.size()));
  }
  for (std::size_t y = 0; y < static_cast<std::size_t>(picture.height); ++y) {
    Bytes row;
    for (std::size_t x = 0; x < static_cast<std::size_t>(picture.width); ++x) {
      const std::uint8_t grey = picture.pixels[y * static_cast<std::size_t>(picture.width) + x];
      // The inks as Adobe stores them: light left over. All of the grey is in the black ink.
      if (options.four_inks) row.insert(row.end(), {255, 255, 255});
      row.insert(row.end(), options.in_scans ? 3 : 1, grey);
    }
    JSAMPROW pointer = row.data();
    jpeg_write_scanlines(&jpeg, &pointer, 1);
  }
  jpeg_finish_compress(&jpeg);
  Bytes file(buffer, buffer + size);
  jpeg_destroy_compress(&jpeg);
  std::free(buffer);
  return file;
}

void expect_errors_of_damage(const Bytes& file, PictureColour colour) {
  const auto try_to_read = [&](const Bytes& damaged) {
    try {
      parse_pictures(damaged, "picture", {}, colour);
    } catch (const DataError&) {
      return false;
    }
    return true;
  };
  for (std::size_t size = 0; size < file.size(); ++size)
    try_to_read({file.begin(), file.begin() + static_cast<long>(size)});
  for (std::size_t bit = 0; bit < file.size() * 8; ++bit) {
    Bytes flipped = file;
    flipped[bit / 8] ^= static_cast<std::uint8_t>(1U << (bit % 8));
    try_to_read(flipped);
  }
  EXPECT_FALSE(try_to_read({file.begin(), file.begin() + static_cast<long>(file.size() / 2)}));
}

void write_bytes(const std::string& path, const Bytes& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

}  // namespace lockstep::testing
