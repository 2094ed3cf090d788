// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Runs the built program as a user would, alone or under mpirun, and looks at what it printed and wrote.
#pragma once

#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/temporary_directory.hpp"

#include <fmt/ranges.h>

namespace lockstep::testing {

using test::count_of;
using test::expect_words;

struct Outcome {
  int exit_code = -1;
  std::string out, err;
  std::string command = {};  ///< that was run
  std::string everything() const { return "stdout:\n" + out + "stderr:\n" + err; }
  /// The last non-empty line of standard output.
  std::string last_line() const;
};

/// Runs a shell command; it is killed (exit code 124) after `seconds`.
Outcome run_shell(const std::string& command, int seconds = 120);

/// `lockstep ARGUMENTS`, started directly.
Outcome lockstep(const std::string& arguments);
/// `mpirun -np RANKS lockstep ARGUMENTS`.
Outcome lockstep_on_ranks(int ranks, const std::string& arguments);

/// Expects the exit code, and these words where they belong. Answers (exit codes 0 and 1) on standard output,
/// errors on standard error. A failure names the place of the call.
void expect_says(const Outcome& outcome, int exit_code, const std::vector<std::string>& words = {},
                 const char* file = __builtin_FILE(), int line = __builtin_LINE());
/// `lockstep ARGUMENTS`, expected to end well.
Outcome succeed(const std::string& arguments, const char* file = __builtin_FILE(),
                int line = __builtin_LINE());

/// The outcome of what must have ended well.
Outcome ended_well(Outcome outcome, const char* file = __builtin_FILE(), int line = __builtin_LINE());
/// The answer of `lockstep ARGUMENTS --json`, which must end well.
nlohmann::json answer_of(const std::string& arguments, const char* file = __builtin_FILE(),
                         int line = __builtin_LINE());

/// A training that came to its end.
struct TrainedRun {
  std::string last_line;                ///< "weights sha256 ..."
  std::vector<nlohmann::json> metrics;  ///< numbers that must not depend on ranks
  std::string directory;
};

/// `lockstep train JOB run.dir=DIRECTORY` on so many ranks; 0: one, without mpirun. Expects that it succeeds.
TrainedRun train_job(const std::string& job, const std::string& directory, int ranks);
/// Expects the weights and metrics of another run.
void expect_same(const TrainedRun& run, const TrainedRun& reference, const std::string& label);

/// The command line of lockstep_on_ranks(), for tests that need to wrap it.
std::string mpirun_command(int ranks, const std::string& arguments);

/// Shell code to start a training in the background as $run, wait for its first steps, `blow`, and wait. The
/// run's directory is `run_dir`.
Outcome run_and_strike(const std::string& command, const std::string& run_dir, const std::string& blow);
/// A shell's words for the process of a rank, where mpirun is $run.
std::string process_of_rank(int rank);

/// Variables of a command whose reads of files with `path` in their names fail from the `at`-th on, `count`
/// times. If it is -1, for good (tests/support/read_faults.c).
std::string read_faults(const std::string& path, int at, int count = -1, int error = EIO);

/// Writes a small job file on the `synthetic` set into `directory` and returns its path. Fast: a run takes
/// well under a second.
std::string write_small_job(const TemporaryDirectory& directory);
/// A network with branches and curves, for a job's `model`; its path.
std::string write_branched_model(const TemporaryDirectory& directory);

/// Takes what differs between equal runs out of an event.
void forget_times_and_ranks(nlohmann::json& event);

std::string read_text(const std::string& path);
void write_text(const std::string& path, const std::string& text);
/// The lines of a metrics.jsonl.
std::vector<nlohmann::json> read_metrics(const std::string& run_directory);
/// Metrics without the parts that may depend on time or on the ranks.
std::vector<nlohmann::json> comparable_metrics(const std::string& run_directory);

/// A folder of a test's own, with a job in job.yaml and its runs.
class JobTest : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return directory_.path(name); }
  void write_job(const std::string& text) const { write_text(path("job.yaml"), text); }
  /// `lockstep train job.yaml run.dir=RUN OVERRIDES`, alone unless `launcher` says otherwise.
  Outcome train(const std::string& run, const std::string& overrides = "",
                const std::string& launcher = "") const;
  /// To its end, which must be a good one. @returns comparable_metrics()
  std::vector<nlohmann::json> metrics_of(const std::string& run, const std::string& overrides = "",
                                         const std::string& launcher = "") const;
  /// To its end in many starts; each saves and stops after so many seconds, or a step. @returns how many there were
  int train_in_parts(const std::string& run, const std::string& overrides = "", double seconds = 0.001) const;

  TemporaryDirectory directory_;
};

// A terminal of some width for programs that are tested in one, and what its screen would show.

struct TerminalRun {
  int columns = 80;
  std::string environment;     ///< "TERM=xterm LC_ALL=C"
  int columns_later = 0;       ///< the window's new width as soon as `resize_at` was printed; 0: it stays
  std::string resize_at = {};  ///< part of the output
  std::string stop_at = {};    ///< Ctrl-C is typed once this has come after the new width; empty: never
};

struct TerminalOutput {
  int exit_code = -1;
  std::string bytes;         ///< as they came
  std::string after_resize;  ///< those of them that came after it
};

/// Runs a shell command in a terminal. It is killed after `seconds`.
TerminalOutput run_in_terminal(const TerminalRun& run, const std::string& command, int seconds = 120);

struct Screen {
  std::vector<std::string> lines;
  int widest = 0;  ///< the most columns that the cursor ever went to, a bar's included

  std::string text() const { return fmt::format("{}\n", fmt::join(lines, "\n")); }
};
/// The screen, endless and never wrapping, after these bytes were printed. Carriage returns overwrite, ESC [ J wipes.
/// @throws std::runtime_error  for any other escape sequence
Screen screen_of(const std::string& bytes);

}  // namespace lockstep::testing
