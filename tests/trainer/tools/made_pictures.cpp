// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "tests/trainer/tools/made_pictures.hpp"

#include <png.h>

#include <algorithm>

namespace lockstep::testing {
namespace {

struct Drawing {
  int width = 200, height = 200, paper = 255, ink = 0;
  double x = 100, y = 100, size = 130, radius = 8;
};

Picture drawn(int digit, const Drawing& drawing) {
  Picture picture = sheet(drawing.width, drawing.height, drawing.paper);
  draw_digit(picture, digit, drawing.x, drawing.y, drawing.size, drawing.ink, drawing.radius);
  return picture;
}

/// Darker towards the bottom right, as paper under a lamp is.
Picture under_a_lamp(Picture picture) {
  for (std::size_t i = 0; i < picture.pixels.size(); ++i) {
    const auto x = static_cast<int>(i) % picture.width, y = static_cast<int>(i) / picture.width;
    picture.pixels[i] = static_cast<std::uint8_t>(
        std::max(0, picture.pixels[i] - 60 * (x + y) / (picture.width + picture.height)));
  }
  return picture;
}

Picture with_noise(Picture picture, int amplitude) {
  std::uint32_t random = 7;
  for (auto& pixel : picture.pixels) {
    random = random * 1664525U + 1013904223U;
    const int noise = static_cast<int>(random >> 24U) * amplitude / 128 - amplitude;
    pixel = static_cast<std::uint8_t>(std::clamp(pixel + noise, 0, 255));
  }
  return picture;
}

Bytes pgm(const Picture& picture) {
  const std::string header =
      "P5 " + std::to_string(picture.width) + " " + std::to_string(picture.height) + " 255\n";
  Bytes file(header.begin(), header.end());
  file.insert(file.end(), picture.pixels.begin(), picture.pixels.end());
  return file;
}

/// Blue on yellow.
Bytes coloured(const Picture& picture) {
  Bytes pixels;
  for (const std::uint8_t grey : picture.pixels)
    pixels.insert(pixels.end(), {grey, grey, static_cast<std::uint8_t>(255 - grey)});
  return encode_png(static_cast<std::uint32_t>(picture.width), static_cast<std::uint32_t>(picture.height),
                    PNG_FORMAT_RGB, pixels);
}

/// A picture taken with the camera on its side: what is up lies to the left.
Bytes taken_sideways(const Picture& picture) {
  Picture turned = sheet(picture.height, picture.width, 0);
  for (int y = 0; y < turned.height; ++y) {
    for (int x = 0; x < turned.width; ++x)
      turned.pixels[static_cast<std::size_t>(y * turned.width + x)] =
          picture.pixels[static_cast<std::size_t>((picture.height - 1 - x) * picture.width + y)];
  }
  return encode_jpeg(turned, {.orientation = 8});
}

Bytes two_digits(int a, int b, double gap) {
  Picture picture = drawn(a, {.width = 300, .x = 100, .size = 100});
  draw_digit(picture, b, 100 + 65 + gap, 100, 100, 0, 8);
  return encode_png(picture);
}

std::vector<MadePicture> digits() {
  const Drawing inverted{.paper = 0, .ink = 255}, off_centre{.width = 500, .height = 300, .x = 420, .y = 90},
      small{.width = 800, .height = 600, .x = 90, .y = 500, .size = 48, .radius = 3},
      large{.width = 2400, .height = 2400, .x = 1200, .y = 1200, .size = 2000, .radius = 130},
      faint{.paper = 140, .ink = 128}, grey{.paper = 90, .ink = 190}, thin{.radius = 2.5},
      thick{.radius = 14}, tiny{.width = 24, .height = 24, .x = 12, .y = 12, .size = 15, .radius = 1},
      corner{.x = 60, .y = 80, .size = 90, .radius = 6};
  return {{"plain.png", 3, encode_png(drawn(3, {}))},
          {"inverted.png", 2, encode_png(drawn(2, inverted))},
          {"inverted.jpg", 5, encode_jpeg(drawn(5, inverted))},
          {"transparent.png", 4, encode_png_ink_only(drawn(4, {}), 0)},
          {"transparent_light.png", 6, encode_png_ink_only(drawn(6, {}), 255)},
          {"palette.png", 7, encode_png_palette(drawn(7, {}))},
          {"colours.png", 8, coloured(drawn(8, {}))},
          {"16bit.png", 9, encode_png_16(drawn(9, {}))},
          {"16bit_faint.png", 2, encode_png_16(drawn(2, faint))},
          {"interlaced.png", 0, encode_png_interlaced(drawn(0, {}))},
          {"off_centre.png", 3, encode_png(drawn(3, off_centre))},
          {"corner.jpg", 7, encode_jpeg(drawn(7, corner))},
          {"small.png", 4, encode_png(drawn(4, small))},
          {"small.jpg", 8, encode_jpeg(drawn(8, small))},
          {"tiny.png", 0, encode_png(drawn(0, tiny))},
          {"large.png", 6, encode_png(drawn(6, large))},
          {"large.jpg", 1, encode_jpeg(drawn(1, large))},
          {"faint.png", 5, encode_png(drawn(5, faint))},
          {"faint.jpg", 3, encode_jpeg(drawn(3, faint), {.quality = 95})},
          {"grey.pgm", 9, pgm(drawn(9, grey))},
          {"thin.png", 2, encode_png(drawn(2, thin))},
          {"thick.png", 4, encode_png(drawn(4, thick))},
          {"photo.jpg", 8,
           encode_jpeg(with_noise(under_a_lamp(drawn(8, {.paper = 220, .ink = 60})), 12), {.quality = 70})},
          {"noisy.png", 5, encode_png(with_noise(drawn(5, {.paper = 200, .ink = 60}), 25))},
          {"progressive.jpg", 9, encode_jpeg(drawn(9, {}), {.quality = 40, .progressive = true})},
          {"four_inks.jpg", 1, encode_jpeg(drawn(1, {}), {.four_inks = true})},
          {"sideways.jpg", 7, taken_sideways(drawn(7, {}))}};
}

std::vector<MadePicture> doubtful() {
  const Picture blank = sheet(100, 100, 255);
  return {{"blank.png", {}, encode_png(blank)},
          {"blank_black.jpg", {}, encode_jpeg(sheet(64, 64, 0))},
          {"blank_transparent.png", {}, encode_png_ink_only(blank, 0)},
          {"blank_shaded.jpg", {}, encode_jpeg(under_a_lamp(sheet(200, 200, 230)))},
          {"only_noise.png", {}, encode_png(with_noise(sheet(120, 120, 128), 100))},
          {"two_apart.png", {}, two_digits(4, 2, 40)},
          {"two_close.png", {}, two_digits(1, 7, 25)},
          {"two_small.jpg",
           {},
           [] {
             Picture picture =
                 drawn(6, {.width = 900, .height = 900, .x = 500, .y = 400, .size = 60, .radius = 4});
             draw_digit(picture, 8, 560, 400, 60, 0, 4);
             return encode_jpeg(picture);
           }()},
          {"cut_off.png", {}, encode_png(drawn(8, {.x = 5}))}};
}

}  // namespace

std::vector<MadePicture> made_pictures() {
  std::vector<MadePicture> all = digits();
  for (MadePicture& picture : doubtful()) all.push_back(std::move(picture));
  return all;
}

}  // namespace lockstep::testing
