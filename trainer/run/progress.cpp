// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Draws when enough time has passed, and wipes the bar before a line.
#include "trainer/run/progress.hpp"

#include "common/printable.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace lockstep {

namespace {

constexpr std::chrono::seconds kBetweenLooks{1};
constexpr double kWorthSaying = 5, kBetweenWords = 30;  ///< seconds of a wait for data

}  // namespace

DataWatch::DataWatch(int rank, std::string host, bool silent)
    : who_(fmt::format("rank {} on {}", rank, host)) {
  if (silent) return;
  thread_ = start_thread([this, end = end_.get_future().share()] {
    while (end.wait_for(kBetweenLooks) == std::future_status::timeout) look(longest_read());
  });
}

DataWatch::~DataWatch() {
  end_.set_value();
  if (thread_.joinable()) thread_.join();
}

void DataWatch::look(const std::optional<ReadUnderWay>& read) {
  if (said_at_ > 0 && (!read || read->seconds < said_at_)) {
    print_error(fmt::format("{}: {} could be read again, and the run goes on", who_, file_));
    said_at_ = 0;
  }
  if (!read || read->seconds < (said_at_ > 0 ? said_at_ + kBetweenWords : kWorthSaying)) return;
  print_error(fmt::format(
      "{} waits for its data: {} has been read for {:.0f} s; see the disk, or the network that it "
      "is on",
      who_, read->file, read->seconds));
  file_ = read->file;
  said_at_ = read->seconds;
}

void Progress::say(std::string_view line) {
  if (bar_.style() != ProgressBar::Style::kSilent) print(fold(printable(line), output_columns()));
}

void Progress::say(const std::vector<LineField>& fields) {
  if (bar_.style() != ProgressBar::Style::kSilent) print(fit(fields, output_columns()));
}

void Progress::print(const std::string& line) {
  wipe_bar();
  write_out(line + "\n");
}

void Progress::epoch_begins(const BegunEpoch& epoch) {
  facts_ = {.epoch = epoch.epoch, .epochs = epoch.epochs, .step = epoch.steps_taken, .steps = epoch.steps};
  begun_ = epoch;
  samples_ = 0;
  bar_.restart();
}

void Progress::steps_taken(const StepSeries& series) {
  facts_.step += series.steps;
  samples_ += series.samples;
  facts_.loss = series.last.loss() / static_cast<double>(series.last.samples);
  if (!bar_.is_due()) return;
  const double seconds = bar_.seconds();
  const auto taken = facts_.step - begun_.steps_taken;
  facts_.samples_per_second = static_cast<double>(samples_) / seconds;
  facts_.eta_seconds = seconds / static_cast<double>(std::max<std::int64_t>(taken, 1)) *
                       static_cast<double>(std::max<std::int64_t>(begun_.steps_left_in_run - taken, 0));
  bar_.draw(progress_fields(facts_), progress_fraction(facts_));
}

// Fields of a line, and how much each of them matters.

namespace {

/// Speed without time to measure it is none.
std::string samples_per_second(double rate) {
  return with_thousands(std::isfinite(rate) ? static_cast<std::int64_t>(std::min(rate, 1e15)) : 0) +
         " samples/s";
}

}  // namespace

std::vector<LineField> progress_fields(const ProgressStatus& facts) {
  return {{fmt::format("epoch {:>2}/{}", facts.epoch, facts.epochs), 9},
          {fmt::format("{}/{} {}", facts.step, facts.steps, plural(facts.steps, "step")), 3},
          {samples_per_second(facts.samples_per_second), 1},
          {"loss " + format_loss(facts.loss), 5},
          {fmt::format("ETA {}", format_duration(facts.eta_seconds)), 4}};
}

double progress_fraction(const ProgressStatus& facts) {
  return static_cast<double>(facts.step) / static_cast<double>(std::max<std::int64_t>(facts.steps, 1));
}

std::vector<LineField> epoch_fields(const FinishedEpoch& epoch, std::int64_t epochs,
                                    const std::string& averages, double seconds, double rate) {
  const Evaluation& judged = epoch.evaluations.judged();
  const std::string name = epoch.evaluations.validation ? "validation loss " : "test loss ";
  std::vector<LineField> fields = {{fmt::format("epoch {:>2}/{}", epoch.state.epoch + 1, epochs), 9},
                                   {"train loss " + format_loss(epoch.state.epoch_so_far().mean()), 2},
                                   {name + describe_loss(judged), 3},
                                   {fmt::format("accuracy {} %", percent_text(judged.accuracy())), 8}};
  if (!averages.empty()) fields.push_back({averages, 7});
  fields.push_back({format_seconds(seconds), 4});
  fields.push_back({"(" + samples_per_second(rate) + ")", 1, 1});
  return fields;
}

namespace {

// Columns of a row left and right of the curve itself.
constexpr int kLabels = 16, kWidest = 72, kNarrowest = 10;

int plot_columns(int columns) {
  return std::clamp(std::min(columns, kWidest) - kLabels, kNarrowest, kWidest);
}

}  // namespace

std::string curve_row(std::int64_t epoch, double accuracy, int columns, bool unicode) {
  const int width = plot_columns(columns);
  const int at = std::clamp(static_cast<int>(std::lround(accuracy * (width - 1))), 0, width - 1);
  return fmt::format("{:>4} |{:{}}{}{:{}}| {:.4f}", epoch, "", at, unicode ? "●" : "*", "", width - 1 - at,
                     accuracy);
}

std::string curve_scale(int columns, const std::string& what) {
  return fmt::format("     0{:->{}}1  {}", "", plot_columns(columns), what);
}

}  // namespace lockstep
