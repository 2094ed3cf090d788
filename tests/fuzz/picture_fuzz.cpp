// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Whatever the bytes, reading them as a picture gives pictures, which can be prepared, or a DataError.
#include "data/pictures/preparation.hpp"
#include "tests/fuzz/checks.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  lockstep::fuzz::accepts([&] {
    using lockstep::PictureColour, lockstep::fuzz::require;
    const bool grey = size % 2 == 0;  // an odd length asks for colours
    const auto colour = grey ? PictureColour::kGrey : PictureColour::kRgb;
    const auto pictures = lockstep::parse_pictures(std::span(data, size), "fuzz", {}, colour);
    for (std::size_t i = 0; i < pictures.size(); ++i) {
      const lockstep::Picture picture = pictures[i];
      require(picture.pixels.size() == picture.plane_size() * static_cast<std::size_t>(picture.channels));
      require(picture.from_idx || picture.channels == lockstep::channels_of(colour));
      if (picture.width > 64 || picture.height > 64) continue;
      lockstep::resize(picture, 28, 28);
      const auto fit = static_cast<lockstep::PictureFit>(size / 2 % 3);
      require(lockstep::fit_picture(picture, {5, 28}, fit).shape() ==
              lockstep::ImageShape{picture.channels, 28, 5});
      if (picture.channels != 1) continue;
      const auto prepared = lockstep::prepare_picture(picture, 28, 28, {}, lockstep::Polarity::kFromPicture);
      require(prepared.picture.pixels.size() == std::size_t{28} * 28);
    }
  });
  return 0;
}
