// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// From a scan to an image of the training set.
#include "data/pictures/preparation.hpp"

#include "common/buffers.hpp"
#include "common/text_layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace lockstep {

namespace {

/// Larger pictures are first made smaller, then looked at again where the ink is.
constexpr int kWorkingSide = 1024;

Picture cut(const Picture& picture, const Box& box) {
  return take_part(picture, box.left, box.top, box.width(), box.height());
}

Picture no_larger_than(const Picture& picture, int side) {
  const int longest = std::max(picture.width, picture.height);
  if (longest <= side) return picture;
  const auto scaled = [&](int length) {
    return std::max(1, static_cast<int>(std::lround(static_cast<double>(length) * side / longest)));
  };
  return resize(picture, scaled(picture.width), scaled(picture.height));
}

/// The part of `whole` that `box` of its smaller copy shows, with a margin of a tenth.
Box in_whole(const Box& box, const Picture& copy, const Picture& whole) {
  const double scale = static_cast<double>(whole.width) / copy.width;
  const int margin = static_cast<int>(scale * (2 + 0.1 * std::max(box.width(), box.height())));
  return {std::max(0, static_cast<int>(box.left * scale) - margin),
          std::max(0, static_cast<int>(box.top * scale) - margin),
          std::min(whole.width, static_cast<int>(std::ceil(box.right * scale)) + margin),
          std::min(whole.height, static_cast<int>(std::ceil(box.bottom * scale)) + margin)};
}

/// The ink's box as light ink on black, everything else black. `picture` has that ink.
Picture lift_ink(const Picture& picture, const Paper& paper, const Ink& ink) {
  const Box& box = ink.box;
  // One pixel more on each side keeps the soft edge of strokes.
  const Box wide{std::max(0, box.left - 1), std::max(0, box.top - 1), std::min(picture.width, box.right + 1),
                 std::min(picture.height, box.bottom + 1)};
  const bool coarse = std::max(box.width(), box.height()) < 40;
  Picture lifted = cut(picture, coarse ? box : wide);
  const Box& from = coarse ? box : wide;
  std::size_t i = 0;
  for (int y = from.top; y < from.bottom; ++y)
    for (int x = from.left; x < from.right; ++x, ++i) {
      const bool masked = at(ink.mask, std::int64_t{y} * picture.width + x);
      lifted.pixels[i] =
          masked ? static_cast<std::uint8_t>(std::lround(255 * paper.ink(lifted.pixels[i]))) : 0;
    }
  return lifted;
}

void stretch(Picture& picture) {
  const int most = *std::max_element(picture.pixels.begin(), picture.pixels.end());
  if (most == 0) return;
  for (auto& pixel : picture.pixels) pixel = static_cast<std::uint8_t>(pixel * 255 / most);
}

struct Centre {
  double x, y;
};

/// In pixels from the top left corner: the middle of a lone pixel (0, 0) is 0.5, 0.5.
Centre centre_of_mass(const Picture& picture) {
  double sum = 0, x_sum = 0, y_sum = 0;
  std::size_t i = 0;
  for (int y = 0; y < picture.height; ++y)
    for (int x = 0; x < picture.width; ++x, ++i) {
      sum += picture.pixels[i];
      x_sum += picture.pixels[i] * (x + 0.5);
      y_sum += picture.pixels[i] * (y + 0.5);
    }
  return sum > 0 ? Centre{x_sum / sum, y_sum / sum} : Centre{picture.width / 2.0, picture.height / 2.0};
}

/// Puts `part` on black with its `centre` in the middle, or as near to it as keeps all of `part`.
Picture place(const Picture& part, const Centre& centre, int width, int height) {
  const int left = std::clamp(static_cast<int>(std::lround(width / 2.0 - centre.x)), 0, width - part.width);
  const int top = std::clamp(static_cast<int>(std::lround(height / 2.0 - centre.y)), 0, height - part.height);
  return take_part(part, -left, -top, width, height);
}

/// Scales light ink on black to the frame and centres it.
Picture fit(const Picture& ink, int width, int height, const PictureFrame& frame) {
  const double scale = std::min(frame.share * width / ink.width, frame.share * height / ink.height);
  const auto scaled = [&](int length, int most) {
    return std::clamp(static_cast<int>(std::lround(length * scale)), 1, most);
  };
  Picture part = resize(ink, scaled(ink.width, width), scaled(ink.height, height), true);
  stretch(part);
  const Centre middle{part.width / 2.0, part.height / 2.0};
  return place(part, frame.centre_by_mass ? centre_of_mass(part) : middle, width, height);
}

/// True if a picture is one of the training set's, saved as a file.
bool is_made_like(const Picture& picture, int width, int height, const PictureFrame& frame,
                  const Paper& paper, const Ink& ink) {
  if (picture.width != width || picture.height != height || paper.light || paper.level > 0 || paper.noise > 0)
    return false;
  if (paper.contrast < 200) return false;
  if (!frame.centre_by_mass) return true;
  constexpr double kTolerance = 2;
  const Centre centre = centre_of_mass(picture);
  const double longest =
      std::max(ink.box.width() / (frame.share * width), ink.box.height() / (frame.share * height));
  return std::abs(centre.x - width / 2.0) < kTolerance && std::abs(centre.y - height / 2.0) < kTolerance &&
         longest > 0.8 && longest < 1.15;
}

// Rules of thumb about pieces of ink.

/// On one to three sides; ink that reaches all four was trimmed to its box.
bool looks_cut_off(const Picture& picture, const Box& box) {
  const int sides =
      (box.left == 0) + (box.top == 0) + (box.right == picture.width) + (box.bottom == picture.height);
  return sides > 0 && sides < 4;
}

std::int64_t area(const Box& box) {
  return static_cast<std::int64_t>(box.width()) * box.height();
}

std::int64_t overlap(const Box& a, const Box& b) {
  const Box both{std::max(a.left, b.left), std::max(a.top, b.top), std::min(a.right, b.right),
                 std::min(a.bottom, b.bottom)};
  return both.width() > 0 && both.height() > 0 ? area(both) : 0;
}

/// A second piece about as large as the first and beside, above or below it. The bar of a 5 that hangs in the
/// air is far less high than the rest.
bool looks_like_two(const std::vector<Piece>& pieces) {
  constexpr double kSimilarHeight = 0.45, kSimilarPixels = 0.2, kApart = 0.3;
  const Piece& first = pieces.front();
  return std::any_of(pieces.begin() + 1, pieces.end(), [&](const Piece& other) {
    const double smaller = static_cast<double>(std::min(area(first.box), area(other.box)));
    return other.box.height() >= kSimilarHeight * first.box.height() &&
           static_cast<double>(other.pixels) >= kSimilarPixels * static_cast<double>(first.pixels) &&
           static_cast<double>(overlap(first.box, other.box)) <= kApart * smaller;
  });
}

/// Phrases, one for each thing that looks unlike one whole written figure: empty if nothing does.
/// @param ink  ink of this picture, not empty
std::vector<std::string> picture_warnings(const Picture& picture, const Ink& ink, const PictureFrame& frame) {
  constexpr int kFewestPixels = 7;
  constexpr std::size_t kManyPieces = 5;
  constexpr double kWide = 1.2, kSolid = 0.75;
  const Box& box = ink.box;
  std::vector<std::string> warnings;
  if (looks_cut_off(picture, box)) warnings.emplace_back("it touches the edge: is it all there?");
  if (std::max(box.width(), box.height()) < kFewestPixels)
    warnings.push_back(fmt::format("it is only {} high", counted(box.height(), "pixel")));
  if (!frame.one_figure) return warnings;
  std::int64_t pixels = 0;
  for (const Piece& piece : ink.pieces) pixels += piece.pixels;
  if (ink.pieces.size() >= kManyPieces) {
    warnings.push_back(fmt::format("it is in {} pieces", ink.pieces.size()));
  } else if (looks_like_two(ink.pieces)) {
    warnings.emplace_back("two figures? only one is expected");
  } else if (box.width() > kWide * box.height()) {
    warnings.emplace_back("it is wider than high: more than one figure?");
  } else if (static_cast<double>(pixels) > kSolid * static_cast<double>(area(box)) &&
             box.width() * 2 > box.height()) {
    warnings.emplace_back("it is a filled shape, not strokes");
  }
  return warnings;
}

// Pictures as a whole.

/// The picture in the size in which its ink is looked at.
struct View {
  Picture picture;
  Paper paper;
  Ink ink;
};

View look_at(const Picture& picture, Polarity polarity) {
  View view{.picture = no_larger_than(picture, kWorkingSide), .paper = {}, .ink = {}};
  view.paper = examine_paper(view.picture, polarity);
  if (!view.paper.is_blank()) view.ink = find_ink(view.picture, view.paper);
  return view;
}

/// A large picture's ink in more detail: the same paper, only the part that has ink.
View look_closer(const View& far, const Picture& whole) {
  const Picture part = cut(whole, in_whole(far.ink.box, far.picture, whole));
  const View view = look_at(part, far.paper.light ? Polarity::kDarkInk : Polarity::kLightInk);
  return view.ink.empty() ? far : view;
}

}  // namespace

PreparedPicture scale_picture(const Picture& picture, int width, int height, Polarity polarity) {
  PreparedPicture result{.picture = picture, .done = picture.notes, .warnings = {}};
  if (polarity == Polarity::kDarkInk ||
      (polarity == Polarity::kFromPicture && has_light_border(picture.pixels, picture.shape()))) {
    invert(result.picture);
    result.done.emplace_back("inverted");
  }
  if (picture.width != width || picture.height != height) result.done.emplace_back("scaled");
  result.picture = resize(result.picture, width, height);
  return result;
}

PreparedPicture prepare_picture(const Picture& picture, int width, int height, const PictureFrame& frame,
                                Polarity polarity) {
  View view = look_at(picture, polarity);
  if (view.ink.empty()) {
    PreparedPicture blank = scale_picture(picture, width, height, Polarity::kLightInk);
    std::fill(blank.picture.pixels.begin(), blank.picture.pixels.end(), std::uint8_t{0});
    blank.warnings.emplace_back("there is nothing on it");
    return blank;
  }
  PreparedPicture result{.picture = picture, .done = picture.notes, .warnings = {}};
  result.warnings = picture_warnings(view.picture, view.ink, frame);
  if (is_made_like(picture, width, height, frame, view.paper, view.ink)) return result;
  if (view.picture.width < picture.width) view = look_closer(view, picture);
  result.picture = fit(lift_ink(view.picture, view.paper, view.ink), width, height, frame);
  if (view.paper.light) result.done.emplace_back("inverted");
  result.done.emplace_back("cut out and centred");
  return result;
}

}  // namespace lockstep
