// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Progress of a run for people: a bar on a terminal, a plain line every few seconds elsewhere.
#pragma once

#include "common/machine.hpp"
#include "common/output.hpp"
#include "common/text_layout.hpp"
#include "data/stored_file.hpp"
#include "trainer/run/run_events.hpp"

#include <cstdint>
#include <future>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace lockstep {

// The lines that tell how far a run is, as wide as there is room.

struct ProgressStatus {
  std::int64_t epoch = 0, epochs = 0;
  std::int64_t step = 0, steps = 0;  ///< this epoch's
  double samples_per_second = 0;
  double loss = 0;         ///< a sample's
  double eta_seconds = 0;  ///< until the run ends
};

/// "epoch  1/10  120/469 steps  54,321 samples/s  loss 0.1234  ETA 1:05"; in order of importance: epoch, loss, ETA,
/// steps, bar, speed.
std::vector<LineField> progress_fields(const ProgressStatus& facts);
/// The part of the epoch that is done.
double progress_fraction(const ProgressStatus& facts);

/// Fields of the line after an epoch.
/// @param averages  results of averages of the weights; may be empty
std::vector<LineField> epoch_fields(const FinishedEpoch& epoch, std::int64_t epochs,
                                    const std::string& averages, double seconds, double samples_per_second);

/// Prints on standard output, on the one rank that speaks; on all others every call does nothing. On a
/// terminal no line is wider than it is at that moment.
class Progress final : public RunListener {
 public:
  /// Progress of this rank: a bar where the terminal can redraw a line, plain lines elsewhere. Silent on
  /// ranks other than 0.
  explicit Progress(int rank) : bar_(ProgressBar::Style::kPlain, rank == 0) {}
  explicit Progress(ProgressBar::Style style) : bar_(style, OutputTerminal{}) {}
  /// A line of its own, above the bar; folded where it is too wide.
  void say(std::string_view line);
  /// Prints fields; the least important are left out where the line would be too wide.
  void say(const std::vector<LineField>& fields);
  /// Steps of the run that are left count for the ETA.
  void epoch_begins(const BegunEpoch& epoch) override;
  /// Draws only when enough time has passed. The loss is the last step's.
  void steps_taken(const StepSeries& series) override;

 private:
  void print(const std::string& line);

  ProgressBar bar_;
  BegunEpoch begun_;
  std::int64_t samples_ = 0;
  ProgressStatus facts_;
};

/// Watches, on its own thread, for this process waiting for a file of its data. Says on standard error which
/// rank waits for which file, again every half minute, and when it goes on.
class DataWatch {
 public:
  /// @param silent  another rank of this process says it
  DataWatch(int rank, std::string host, bool silent);
  ~DataWatch();
  /// Once a second, on its thread. @param read  the one that has taken longest so far
  void look(const std::optional<ReadUnderWay>& read);

 private:
  std::string who_;     ///< "rank 1 on node2"
  double said_at_ = 0;  ///< seconds of the wait under way when it was said last; 0: not yet
  std::string file_;
  std::promise<void> end_;
  std::thread thread_;
};

// The accuracy over the epochs, on validation data where there are some: a line of characters after each epoch.

/// Draws one point of a curve whose epochs go down the page. "  3 |             *                  | 0.7421",
/// from 0 on the left to 1 on the right, as wide as `columns` allow, at most 72.
/// @param epoch  from 1
std::string curve_row(std::int64_t epoch, double accuracy, int columns, bool unicode);
/// The scale above the first row.
std::string curve_scale(int columns, const std::string& what = "test accuracy");

}  // namespace lockstep
