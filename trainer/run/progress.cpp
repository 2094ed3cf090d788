// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Draws when enough time has passed, and wipes what is in the way of a line.
#include "trainer/run/progress.hpp"

#include "common/json_text.hpp"
#include "common/output.hpp"
#include "common/plot.hpp"
#include "common/printable.hpp"
#include "common/text_layout.hpp"
#include "data/sample_store.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <span>
#include <string_view>
#include <utility>

namespace lockstep {

namespace {

constexpr std::chrono::seconds kPlainInterval{5};

constexpr std::chrono::seconds kBetweenLooks{1};
constexpr double kWorthSaying = 5, kBetweenWords = 30;  ///< seconds of a wait for data

}  // namespace

Progress Progress::for_rank(int rank) {
  if (rank != 0) return Progress(Style::kSilent);
  call_before_errors(wipe_bar);
  const OutputTerminal output = output_terminal();
  return Progress(output.redraws ? Style::kBar : Style::kPlain, output);
}

Progress::~Progress() {
  wipe_bar();
}

DataWatch::DataWatch(int rank, std::string host, bool silent)
    : who_(fmt::format("rank {} on {}", rank, host)) {
  if (silent) return;
  thread_ = start_thread([this] {
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, kBetweenLooks, [this] { return ends_; })) look();
  });
}

DataWatch::~DataWatch() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void DataWatch::look() {
  const auto read = longest_read();
  if (said_at_ > 0 && (!read || read->seconds < said_at_)) {
    print_error(fmt::format("{}: {} was read at last, and the run goes on", who_, file_));
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
  if (style_ != Style::kSilent) print(fold(printable(line), output_columns()));
}

void Progress::say(const std::vector<Field>& fields) {
  if (style_ != Style::kSilent) print(fit(fields, output_columns()));
}

void Progress::print(const std::string& line) {
  wipe_bar();
  write_out(line + "\n");
}

void Progress::start_epoch(std::int64_t epoch, std::int64_t epochs, std::int64_t steps_done,
                           std::int64_t steps, std::int64_t steps_left_in_run) {
  facts_ = {.epoch = epoch, .epochs = epochs, .step = steps_done, .steps = steps};
  done_before_ = steps_done;
  left_in_run_ = steps_left_in_run;
  samples_ = 0;
  start_ = last_ = Clock::now();
  if (style_ == Style::kBar) last_ -= kBarInterval;  // there from the first step on
}

void Progress::steps(std::int64_t count, std::int64_t samples, double mean_loss) {
  if (style_ == Style::kSilent) return;
  facts_.step += count;
  samples_ += samples;
  facts_.loss = mean_loss;
  const auto now = Clock::now();
  if (now - last_ < (style_ == Style::kBar ? Clock::duration(kBarInterval) : Clock::duration(kPlainInterval)))
    return;
  last_ = now;
  draw(std::chrono::duration<double>(now - start_).count());
}

void Progress::end_epoch() {
  wipe_bar();
}

void Progress::draw(double seconds) {
  const auto taken = facts_.step - done_before_;
  facts_.samples_per_second = static_cast<double>(samples_) / seconds;
  facts_.eta_seconds = seconds / static_cast<double>(std::max<std::int64_t>(taken, 1)) *
                       static_cast<double>(std::max<std::int64_t>(left_in_run_ - taken, 0));
  const int columns = output_columns();
  if (style_ == Style::kPlain) {
    write_out(progress_line(facts_, columns) + "\n");
    return;
  }
  draw_bar(progress_line_with_bar(facts_, columns, output_.unicode), output_, columns);
}

// Which fields a line has, and how much each of them matters.

namespace {

/// Speed without time to measure it is none.
std::string samples_per_second(double rate) {
  return with_thousands(std::isfinite(rate) ? static_cast<std::int64_t>(std::min(rate, 1e15)) : 0) +
         " samples/s";
}

/// Importance: epoch, loss, ETA, steps, bar, speed.
std::vector<Field> progress_fields(const ProgressStatus& facts) {
  return {{fmt::format("epoch {:>2}/{}", facts.epoch, facts.epochs), 9},
          {fmt::format("{}/{} {}", facts.step, facts.steps, plural(facts.steps, "step")), 3},
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
  std::vector<Field> fields = {{fmt::format("epoch {:>2}/{}", facts.epoch, facts.epochs), 9},
                               {"train loss " + format_loss(facts.train_loss), 2},
                               {(facts.validated ? "validation loss " : "test loss ") + facts.test_loss, 3},
                               {fmt::format("accuracy {:.2f} %", 100 * facts.test_accuracy), 8}};
  if (!facts.averages.empty()) fields.push_back({facts.averages, 7});
  fields.push_back({format_seconds(facts.seconds), 4});
  fields.push_back({"(" + samples_per_second(facts.samples_per_second) + ")", 1, 1});
  return fields;
}

// Plain shapes and text in a fixed frame.

namespace {

// Of a row: what stands left and right of the curve itself.
constexpr int kLabels = 16, kWidest = 72, kNarrowest = 10;

int plot_columns(int columns) {
  return std::clamp(std::min(columns, kWidest) - kLabels, kNarrowest, kWidest);
}

// Of the picture, in pixels.
constexpr const char* kColour = "#1f77b4";
constexpr double kWidth = 640, kHeight = 400, kLeft = 60, kRight = 20, kTop = 40, kBottom = 50;

struct Frame {
  std::int64_t epochs;
  double low;  ///< the accuracy at the bottom; the top is 1
  double x(std::int64_t epoch) const {
    const double share = epochs > 1 ? static_cast<double>(epoch - 1) / static_cast<double>(epochs - 1) : 0.5;
    return kLeft + share * (kWidth - kLeft - kRight);
  }
  double y(double accuracy) const {
    return kHeight - kBottom - (accuracy - low) / (1 - low) * (kHeight - kTop - kBottom);
  }
};

/// The largest multiple of a tenth that leaves all points above it.
double low_end(const std::vector<CurvePoint>& points) {
  double least = 1;
  for (const CurvePoint& point : points) least = std::min(least, point.accuracy);
  return std::clamp(std::floor(least * 10) / 10, 0.0, 0.9);
}

std::string grid(const Frame& frame) {
  std::string svg;
  const int first = static_cast<int>(std::lround(frame.low * 10));
  for (int tenth = first; tenth <= 10; ++tenth) {
    const double y = frame.y(tenth / 10.0);
    svg += svg_rule(kLeft, kWidth - kRight, y);
    svg += svg_label(kLeft - 8, y + 4, "end", fmt::format("{:.1f}", tenth / 10.0));
  }
  const std::int64_t every = std::max<std::int64_t>(1, (frame.epochs + 19) / 20);
  for (std::int64_t epoch = 1; epoch <= frame.epochs; epoch += every)
    svg += svg_label(frame.x(epoch), kHeight - kBottom + 20, "middle", std::to_string(epoch));
  svg += svg_label((kLeft + kWidth - kRight) / 2, kHeight - 10, "middle", "epoch");
  return svg;
}

}  // namespace

std::vector<CurvePoint> curve_points(Env& env, const std::string& metrics_path) {
  std::vector<CurvePoint> points;
  if (!env.exists(metrics_path)) return points;
  const std::vector<std::byte> bytes = env.read(metrics_path);
  std::string_view rest(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (line.find("\"epoch\"") == line.npos) continue;  // most lines tell of steps
    const auto event = parse_json_or_discard(line);
    if (!event.is_object() || event.value("/event"_json_pointer, nlohmann::json()) != "epoch") continue;
    const auto epoch = event.value("/epoch"_json_pointer, nlohmann::json());
    const bool validated = event.contains("validation_accuracy");
    const auto accuracy = event.value(validated ? "validation_accuracy" : "test_accuracy", nlohmann::json());
    if (!epoch.is_number_integer() || !accuracy.is_number()) continue;
    points.push_back({epoch.get<std::int64_t>(), accuracy.get<double>()});
  }
  return points;
}

std::string curve_row(const CurvePoint& point, int columns, bool unicode) {
  const int width = plot_columns(columns);
  const int at = std::clamp(static_cast<int>(std::lround(point.accuracy * (width - 1))), 0, width - 1);
  return fmt::format("{:>4} |{:{}}{}{:{}}| {:.4f}", point.epoch, "", at, unicode ? "●" : "*", "",
                     width - 1 - at, point.accuracy);
}

std::string curve_scale(int columns, const std::string& what) {
  return fmt::format("     0{:->{}}1  {}", "", plot_columns(columns), what);
}

std::string curve_svg(const std::vector<CurvePoint>& points, std::int64_t epochs, const std::string& title) {
  const Frame frame{std::max(epochs, points.back().epoch), low_end(points)};
  std::string svg = svg_sheet(kWidth, kHeight);
  svg += svg_label(kLeft, kTop - 16, "start", title);
  svg += grid(frame);
  std::vector<std::pair<double, double>> line;
  std::string dots;
  for (const CurvePoint& point : points) {
    line.emplace_back(frame.x(point.epoch), frame.y(point.accuracy));
    dots += svg_dot(line.back().first, line.back().second, kColour,
                    fmt::format("epoch {}: {:.4f}", point.epoch, point.accuracy));
  }
  svg += svg_line(line, kColour) + dots;
  return svg + "</svg>\n";
}

}  // namespace lockstep
