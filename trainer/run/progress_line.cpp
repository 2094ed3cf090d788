// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Which fields a line has, and how much each of them matters.
#include "trainer/run/progress_line.hpp"

#include "common/console/status_bar.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace lockstep {
namespace {

/// Speed without time to measure it is none.
std::string samples_per_second(double rate) {
  return with_thousands(std::isfinite(rate) ? static_cast<std::int64_t>(std::min(rate, 1e15)) : 0) +
         " samples/s";
}

/// Importance: epoch, loss, ETA, steps, bar, speed.
std::vector<Field> progress_fields(const ProgressStatus& facts) {
  return {{fmt::format("epoch {:>2}/{}", facts.epoch, facts.epochs), 9},
          {fmt::format("{}/{} steps", facts.step, facts.steps), 3},
          {samples_per_second(facts.samples_per_second), 1},
          {"loss " + format_loss(facts.loss), 5},
          {fmt::format("ETA {}", format_duration(facts.eta_seconds)), 4}};
}

}  // namespace

std::string progress_line(const ProgressStatus& facts, int columns) {
  return fit(progress_fields(facts), columns);
}

std::string progress_line_with_bar(const ProgressStatus& facts, int columns, bool unicode) {
  const double fraction =
      static_cast<double>(facts.step) / static_cast<double>(std::max<std::int64_t>(facts.steps, 1));
  return fit_with_bar(progress_fields(facts), fraction, columns, unicode);
}

std::vector<Field> epoch_fields(const EpochSummary& facts) {
  return {{fmt::format("epoch {:>2}/{}", facts.epoch, facts.epochs), 9},
          {"train loss " + format_loss(facts.train_loss), 2},
          {"test loss " + facts.test_loss, 3},
          {fmt::format("accuracy {:.2f} %", 100 * facts.test_accuracy), 8},
          {format_seconds(facts.seconds), 4},
          {"(" + samples_per_second(facts.samples_per_second) + ")", 1, 1}};
}

}  // namespace lockstep
