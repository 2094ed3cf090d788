// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A person's picture made into an image as the training set holds them: ink light on black, cut out, scaled
/// and centred.
#pragma once

#include "data/ink.hpp"
#include "data/picture.hpp"
#include "data/picture_frame.hpp"

#include <string>
#include <vector>

namespace lockstep {

struct PreparedPicture {
  Picture picture;                    ///< of the training images' size
  bool is_lifted = false;             ///< light ink on black, at the place where the training images have it
  std::vector<std::string> done;      ///< what was done to it, in words: "inverted", "cut out and centred"
  std::vector<std::string> warnings;  ///< why the answer may be wrong: "nothing on it", "two figures?"
};

/// Finds the ink, stretches its contrast, scales its box to the frame's share and centres it: what the makers
/// of MNIST did to their scans. A picture that already looks like that (its size, black paper, ink placed so)
/// is taken as it is.
/// @param polarity  kFromPicture: told from the border
PreparedPicture prepare_picture(const Picture& picture, int width, int height, const PictureFrame& frame,
                                Polarity polarity);

/// Only scaled to the size, and inverted where `polarity` says so or the border is light.
PreparedPicture scale_picture(const Picture& picture, int width, int height, Polarity polarity);

}  // namespace lockstep
