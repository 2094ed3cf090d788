// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The table of formats.
#include "data/set_formats.hpp"

#include "common/error.hpp"
#include "data/cifar_set.hpp"
#include "data/idx_set.hpp"
#include "data/random_set.hpp"
#include "data/synthetic_set.hpp"

#include <fmt/format.h>

namespace lockstep {
namespace {

constexpr SetFormat kFormats[] = {
    {.name = "idx",
     .files = idx_set_files,
     .load = load_idx_set,
     .outline = outline_of_idx_set,
     .make = nullptr},
    {.name = "cifar", .files = cifar_set_files, .load = load_cifar_set, .outline = nullptr, .make = nullptr},
    {.name = "cifar-fine",
     .files = cifar_set_files,
     .load = load_cifar_fine_set,
     .outline = nullptr,
     .make = nullptr},
    {.name = "random", .files = nullptr, .load = nullptr, .outline = nullptr, .make = make_random_set},
    {.name = "drawn", .files = nullptr, .load = nullptr, .outline = nullptr, .make = make_synthetic_set},
};

}  // namespace

const SetFormat& format_of(const SetEntry& set) {
  for (const SetFormat& format : kFormats) {
    if (format.name == set.format) return format;
  }
  throw ConfigError(
      fmt::format("catalogue of data sets: '{}' has the unknown format '{}'", set.name, set.format));
}

}  // namespace lockstep
