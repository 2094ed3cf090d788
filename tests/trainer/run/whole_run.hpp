// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Whole runs of a few steps in this process, and what they say, write down and record.
#pragma once

#include "tests/support/prelude.hpp"
#include "tests/trainer/run/short_run.hpp"

#include <regex>

namespace lockstep {

class WholeRunTest : public RunOfAFewSteps {
 protected:
  /// The text without what depends on machine and time; without lines of a bar.
  std::string masked(std::string text) const {
    for (const auto& [what, mask] : {std::pair{"cpu \\([^)]*\\)", "cpu"},
                                     {"[0-9.]+ s \\([0-9,]+ samples/s\\)", "T"},
                                     {" in [0-9.]+ s,", " in T,"},
                                     {"[0-9.]+ [KMG]iB", "M"},
                                     {"[0-9a-f]{64}", "H"},
                                     {"\\([0-9]+ slices\\)", "(N slices)"},
                                     {"Lockstep [0-9.]+:", "Lockstep V:"},
                                     {"●", "*"},
                                     {"(^|\n)[^\n]* ETA [^\n]*", ""},
                                     {" [0-9]+ us a step", " N us a step"}})
      text = std::regex_replace(text, std::regex(what), mask);
    for (std::size_t at = 0; (at = text.find(directory_.path())) != text.npos;)
      text.replace(at, directory_.path().size(), "DIR");
    return text;
  }

  /// Trains; expects exit code 0 and these words on standard output.
  void expect_told(const Job& job, const std::string& expected, const std::string& finished = "") const {
    std::string told_when_finished;
    ::testing::internal::CaptureStdout();
    const int code = train(job, [&](const std::string& directory, const TrainTestData& data) {
      told_when_finished = directory;
      EXPECT_GT(data.test.size(), 0);
    });
    EXPECT_EQ(masked(::testing::internal::GetCapturedStdout()), expected);
    EXPECT_EQ(code, 0);
    EXPECT_EQ(told_when_finished, finished.empty() ? "" : path(finished));
  }
  /// Trains; expects exit code 0. @returns standard output
  std::string told_by(const Job& job) const {
    ::testing::internal::CaptureStdout();
    EXPECT_EQ(train(job), 0);
    return masked(::testing::internal::GetCapturedStdout());
  }
  std::vector<std::string> checkpoints_of(const std::string& run) const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path(run + "/checkpoints")))
      names.push_back(entry.path().filename());
    std::ranges::sort(names);
    return names;
  }
  /// The lines of rank-0.log, without their time.
  std::string log_of(const std::string& run) const {
    return masked(std::regex_replace(text_of(path(run + "/log/rank-0.log")),
                                     std::regex(R"(\[[0-9-]{10} [0-9:]{8}\.[0-9]{3}\] )"), ""));
  }
  /// The events of metrics.jsonl: numbers of four digits, and "T" in place of what depends on machine and time.
  Json events_of(const std::string& run) const {
    constexpr std::string_view kMasked =
        " version setup_seconds host command time seconds train_seconds samples_per_second epoch_seconds "
        "step_seconds_p50 step_seconds_p90 step_seconds_p99 resident_bytes exposed_seconds rank_skew "
        "peak_resident_bytes rank_busy_seconds slowest_rank weights_sha256 rank_exposed_seconds ";
    Json events = Json::array();
    std::istringstream lines(text_of(path(run + "/metrics.jsonl")));
    for (std::string line; std::getline(lines, line);) {
      Json event = Json::parse(line);
      for (auto& [key, value] : event.items()) {
        if (kMasked.find(" " + key + " ") != kMasked.npos)
          value = "T";
        else if (value.is_number_float())
          value = std::stod(fmt::format("{:.4g}", value.get<double>()));
      }
      events.push_back(std::move(event));
    }
    return events;
  }
};

inline constexpr const char* kTwoRanks =
    "model: linear\n"
    "data: {set: synthetic, train_samples: 160, test_samples: 1016, global_batch: 96, validation: 0.1}\n"
    "train: {epochs: 2, ema: 0.9, swa: {from_epoch: 1}, evaluate_every_steps: 1, patience: 1,\n"
    "        optimizer: {lr: 1.0e-9}}\n"
    "parallel: {device: cpu, grain: 16, backend: thread, ranks: 2, threads: 1}\n";

}  // namespace lockstep
