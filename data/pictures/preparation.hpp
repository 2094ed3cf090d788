// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A person's picture made into an image as the training set holds them: ink light on black, cut out, scaled
/// and centred.
#pragma once

#include "data/pictures/ink.hpp"
#include "data/pictures/picture.hpp"
#include "data/sets/catalogue.hpp"

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

// The same figure, written a little differently: an answer that changes with that is not worth much.

/// Leaning, turned, smaller and larger, wider and narrower, about the middle, by as much as hands differ. The
/// picture is light ink on black; what is turned in from outside is black.
std::vector<Picture> written_differently(const Picture& picture);

// What about a picture's ink makes it unlikely that the answer is right.

/// One phrase for each thing that looks unlike one whole written figure: empty if nothing does.
/// @param ink  of this picture, not empty
std::vector<std::string> picture_warnings(const Picture& picture, const Ink& ink, const PictureFrame& frame);

// Photographs of paper are lighter on one side than on the other.

/// The picture with its paper evenly lit: a quadratic surface, fitted to what is not ink, is taken off. A
/// picture whose paper is even already is returned as it is.
Picture evenly_lit(const Picture& picture);

}  // namespace lockstep
