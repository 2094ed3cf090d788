// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Whatever the bytes, reading them as a picture gives pictures or a DataError.
#include "data/picture.hpp"
#include "kernels/runtime/error.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    for (const auto& picture : lockstep::parse_pictures(std::span(data, size), "fuzz")) {
      if (picture.pixels.size() !=
          static_cast<std::size_t>(picture.width) * static_cast<std::size_t>(picture.height)) {
        __builtin_trap();
      }
      if (picture.width <= 64 && picture.height <= 64) lockstep::resize(picture, 28, 28);
    }
  } catch (const lockstep::DataError&) {  // NOLINT(bugprone-empty-catch): the expected answer to most inputs
  }
  return 0;
}
