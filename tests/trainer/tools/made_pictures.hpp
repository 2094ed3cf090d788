// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Thirty-odd pictures as people make them, each with the digit that is on it, or none.
#pragma once

#include "tests/data/picture_fixture.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::testing {

struct MadePicture {
  std::string name;  ///< file name
  std::optional<int>
      digit;  ///< nothing where no digit, or more than one, is on it: a warning is the only right answer
  Bytes file;
};

std::vector<MadePicture> made_pictures();

}  // namespace lockstep::testing
