// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Network files of this folder, embedded in the library: a program finds them wherever it is installed.
/// CMake makes the texts (models/shipped_models.cpp.in).
#pragma once

#include <span>
#include <string_view>

namespace lockstep {

struct ShippedModel {
  std::string_view name;  ///< "net"
  std::string_view yaml;
};

extern const std::span<const ShippedModel> kShippedModels;

}  // namespace lockstep
