// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Makes run folders for tests of what reads them.
#pragma once

#include "tests/support/prelude.hpp"
#include "tests/support/temporary_directory.hpp"
#include "trainer/checkpoint/run_lock.hpp"

namespace lockstep::testing {

/// Below a directory that goes with it.
class RunFolders {
 public:
  std::string root() const { return root_.path(); }
  std::string path(const std::string& name) const { return root_.path(name); }
  /// A file with its folders. @returns its path
  std::string write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
    std::ofstream(path(name), std::ios::binary) << text;
    return path(name);
  }

  /// An IDX file of bytes.
  void write_idx(const std::string& name, const std::vector<std::uint32_t>& sizes,
                 const std::string& values) const {
    std::string bytes = {0, 0, 8, static_cast<char>(sizes.size())};
    for (const std::uint32_t size : sizes)
      for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(size >> shift & 0xFFU);
    write(name, bytes + values);
  }

  /// job.yaml, an empty lock, and these lines. @returns the folder
  std::string run(const std::string& name, const std::vector<std::string>& lines,
                  const std::string& rate = "0.01") const {
    std::string metrics;
    for (const std::string& line : lines) metrics += line + "\n";
    write(name + "/job.yaml", fmt::format("model: net\ndata:\n  set: mnist\n  mean: 0.5\n  augment: [{{crop: "
                                          "{{padding: 4}}}}]\ntrain:\n  epochs: 3\n  "
                                          "optimizer:\n    kind: sgd\n    lr: {}\n",
                                          rate));
    write(name + "/lock", "");
    write(name + "/metrics.jsonl", metrics);
    return path(name);
  }

 private:
  TemporaryDirectory root_;
};

/// The columns of a table with one space between them.
inline std::string single_spaced(std::string text) {
  const auto both_spaces = [](char a, char b) { return a == ' ' && b == ' '; };
  text.erase(std::unique(text.begin(), text.end(), both_spaces), text.end());
  return text;
}

inline std::string start_line(int world = 2) {
  return fmt::format(
      R"({{"event":"start","version":"0.1.0","world":{},"hosts":1,"device":"cpu","model":"net","parameters":21840,"data":"mnist"}})",
      world);
}
inline std::string step_line(int epoch, int step, double loss) {
  return fmt::format(
      R"({{"event":"step","epoch":{},"step":{},"loss":{},"learning_rate":0.01,"samples_per_second":755902.5358167882}})",
      epoch, step, loss);
}
inline std::string epoch_line(int epoch, int step, double loss, double accuracy) {
  return fmt::format(
      R"({{"event":"epoch","epoch":{},"step":{},"train_loss":{},"train_samples":60000,"train_seconds":1.5,"samples_per_second":40000,"learning_rate":0.01,"test_loss":{},"test_accuracy":{},"test_samples":10000}})",
      epoch, step, loss, loss, accuracy);
}
inline std::string end_line(int step, double loss, double accuracy) {
  return fmt::format(
      R"({{"event":"end","step":{},"seconds":12.5,"test_loss":{},"test_accuracy":{},"test_samples":10000,"weights_sha256":"{}","published_hash":true}})",
      step, loss, accuracy, std::string(64, 'a'));
}

}  // namespace lockstep::testing
