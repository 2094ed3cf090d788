// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The form that pictures of any size and colour get, so that they can be samples of one set.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <utility>

namespace lockstep {

/// The colours that pictures get when they are read.
enum class PictureColour { kGrey, kRgb };
inline int channels_of(PictureColour colour) {
  return colour == PictureColour::kRgb ? 3 : 1;
}

struct PictureSize {
  int width = 0, height = 0;
  friend bool operator==(const PictureSize&, const PictureSize&) = default;
};
/// "20" or "32x24", width first; 4096 a side at most. Nothing: it is neither.
std::optional<PictureSize> parse_picture_size(std::string_view text);

/// How a picture fits sides of another proportion.
enum class PictureFit {
  kSqueeze,  ///< all of it, its proportions changed
  kCrop,     ///< its middle: of the side that is too long both ends are left out
  kPad       ///< all of it in the middle, with black beside it, or above and below
};

/// Spellings that people use.
inline constexpr std::array<std::pair<std::string_view, PictureFit>, 3> kPictureFits{
    {{"crop", PictureFit::kCrop}, {"pad", PictureFit::kPad}, {"squeeze", PictureFit::kSqueeze}}};

/// The form that pictures get as samples of a set.
struct PictureForm {
  PictureSize size = {};  ///< to scale them to; 0 x 0: they are all of one size
  PictureFit fit = PictureFit::kSqueeze;
  PictureColour colour = PictureColour::kGrey;

  bool has_size() const { return size.width > 0; }
  friend bool operator==(const PictureForm&, const PictureForm&) = default;
};

}  // namespace lockstep
