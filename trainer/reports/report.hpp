// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// `lockstep report`: results of runs as one JSON document, and that document as a page or as text.
#pragma once

#include "common/env.hpp"
#include "data/dataset.hpp"

#include <nlohmann/json_fwd.hpp>

#include <chrono>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace lockstep {

/// Format of the document. It grows by new keys; a key that changes its meaning raises the number.
inline constexpr int kReportFormat = 1;

struct ReportOptions {
  bool models = true;     ///< the newest checkpoint too: network, filters, classes and mistakes
  std::string data = {};  ///< a directory that holds the data; empty: where the run had them
  /// The data, where they are in memory already; null: they are loaded.
  const TrainTestData* loaded = nullptr;
  int threads = 1;
  /// The classes of a run are left out, with a note, where it takes longer to evaluate them.
  std::chrono::duration<double> class_seconds = std::chrono::hours(24);
  /// They are left out, too, where there are more of them: the page has a number for each two.
  int most_classes = std::numeric_limits<int>::max();
};

/// {"format": 1, "runs": [...]}: docs/report.md has its members. What cannot be read of a run is a
/// note in it. Names and texts may hold anything.
/// @throws MissingDataError  a path is no run
nlohmann::ordered_json collect_report(Env& env, const std::vector<std::string>& runs,
                                      const ReportOptions& options);

/// Network, filters, classes and mistakes of the newest checkpoint, added to a run of the document.
void add_model(nlohmann::ordered_json& run, const std::string& directory, const ReportOptions& options);

// The document in other forms.

/// HTML that holds everything that it shows, and loads nothing.
std::string report_page(const nlohmann::ordered_json& report);
/// The part of it for browsers that run no scripts: facts of each run, and curves over steps as SVG. Names stay text.
std::string page_without_scripts(const nlohmann::ordered_json& report);
/// The charts of a page, in order. [{"title", "unit", "scale", "curves": [{"name", "look", "colour", "events",
/// "column"}]}], where "events" and "column" are keys of a run's "curves".
nlohmann::ordered_json charts_json();
/// Round numbers from low to high, in steps of 1, 2 or 5 times a power of ten. About `count`, at most twice as
/// many. None if low is not below high.
std::vector<double> ticks(double low, double high, int count);

/// A column of a run's "curves", times `scale`: those that are numbers, by step.
std::vector<std::pair<double, double>> points_of(const nlohmann::ordered_json& run, const std::string& events,
                                                 const std::string& column, double scale);

/// Draws loss and accuracy with characters: one run with dots of braille, if there is Unicode. Several with a
/// character each. At most 100 columns are used.
std::string report_in_characters(const nlohmann::ordered_json& report, int columns, bool unicode);

/// Writes report.html into the folder of a run that has come to its end, in a second at most. What goes wrong is said,
/// and no error.
void write_report_of_run(const std::string& directory, const TrainTestData& data, int threads) noexcept;

}  // namespace lockstep
