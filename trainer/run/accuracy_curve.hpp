// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The test accuracy over the epochs as a picture: a line of characters after each epoch, and an SVG file.
#pragma once

#include "common/files/env.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

struct CurvePoint {
  std::int64_t epoch = 0;  ///< from 1
  double accuracy = 0;     ///< from 0 to 1
  friend bool operator==(const CurvePoint&, const CurvePoint&) = default;
};

inline constexpr const char* kCurveFile = "curve.svg";

/// The epochs that a run's metrics tell of, those before a resume included. Lines that are none of ours are
/// passed over. @throws IoError
std::vector<CurvePoint> curve_points(Env& env, const std::string& metrics_path);

/// One point of a curve whose epochs go down the page: "  3 |             *                  | 0.7421", from 0
/// on the left to 1 on the right, as wide as `columns` allow, at most 72.
std::string curve_row(const CurvePoint& point, int columns, bool unicode);
/// The scale above the first row.
std::string curve_scale(int columns);

/// A picture that stands for itself, without times or places: equal runs have equal bytes. `title` may hold
/// any characters.
/// @param points  at least one, in order of epochs
std::string curve_svg(const std::vector<CurvePoint>& points, std::int64_t epochs, const std::string& title);

}  // namespace lockstep
