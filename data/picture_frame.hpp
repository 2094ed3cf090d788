// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// How the images of a training set were made from what was scanned or photographed.
#pragma once

namespace lockstep {

struct PictureFrame {
  double share = 20.0 / 28;    ///< of each side that the ink's box may fill; MNIST: 20 of 28 pixels
  bool centre_by_mass = true;  ///< the ink's centre of mass lies in the middle, not its box
  bool one_figure = true;      ///< one written character, so that two pieces side by side are suspicious
  bool is_photo = false;       ///< no ink on paper: scaled, and nothing else
  friend bool operator==(const PictureFrame&, const PictureFrame&) = default;
};

}  // namespace lockstep
