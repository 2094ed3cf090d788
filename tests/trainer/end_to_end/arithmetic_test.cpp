// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Weights and losses of short runs are known, the same on all processors and GPUs (docs/arithmetic.md).
/// tests/arithmetic/run is the same with more steps and in more ways; tests/arithmetic/cuts sees whether they
/// would notice. Who changes the order of a sum or the place of a cut on purpose changes
/// tests/arithmetic/hashes.txt, kArithmeticVersion, and writes why in docs/decisions.md.
#include "tests/support/prelude.hpp"
#include "tests/support/test_settings.hpp"
#include "tests/trainer/end_to_end/program.hpp"

namespace lockstep::testing {
namespace {

/// Shortest run of a job in hashes.txt and jobs.txt.
struct Known {
  std::string name, sha256, losses_sha256;
  int samples = 0;  ///< few where the emulator takes long
  std::string changes;
};

std::string folder() {
  return test::source_path("tests/arithmetic");
}

/// The rows of a file that are no comment.
std::vector<std::string> rows_of(const std::string& file) {
  std::istringstream text(read_text(folder() + "/" + file));
  std::vector<std::string> rows;
  for (std::string row; std::getline(text, row);)
    if (!row.starts_with("#")) rows.push_back(row);
  return rows;
}

std::vector<Known> known_runs(const std::string& jobs = "jobs.txt") {
  std::map<std::string, Known> shortest;
  for (const std::string& row : rows_of("hashes.txt")) {
    Known known;
    std::string samples, epochs;
    std::istringstream(row) >> known.name >> samples >> epochs >> known.sha256 >> known.losses_sha256;
    if (samples.starts_with("mnist") || epochs != "1") continue;
    known.samples = std::stoi(samples);
    const auto [at, is_new] = shortest.emplace(known.name, known);
    if (!is_new && known.samples < at->second.samples) at->second = known;
  }
  std::vector<Known> list;
  for (std::string row : rows_of(jobs)) {
    if (row.find("PICTURES") != std::string::npos) continue;  // tests/arithmetic/run draws them
    for (auto at = row.find("HERE"); at != std::string::npos; at = row.find("HERE"))
      row.replace(at, 4, folder());
    const auto end_of_name = row.find(' ');
    const auto found = shortest.find(row.substr(0, end_of_name));
    EXPECT_NE(found, shortest.end()) << "hashes.txt does not know " << row;
    if (found == shortest.end()) continue;
    list.push_back(found->second);
    list.back().changes = row.substr(end_of_name);
  }
  return list;
}

/// SHA-256 of the losses and accuracies in a run's metrics, a line each, as tests/arithmetic/run takes
/// it.
std::string losses_sha256(const std::string& run_dir) {
  const Outcome outcome =
      run_shell("grep -Eo '\"(loss|train_loss|(ema_|swa_)?test_loss|test_accuracy)\":[^,}]*' " + run_dir +
                "/metrics.jsonl | sha256sum | cut -c 1-64");
  return outcome.last_line();
}

/// `environment` stands before the command. The metrics, as text.
std::string train(const TemporaryDirectory& directory, const Known& known, int ranks,
                  const std::string& overrides, const std::string& environment = "") {
  static int runs = 0;
  const auto run_dir = directory.path("run-" + std::to_string(++runs));
  const auto arguments = "train " + folder() + "/job.yaml " + known.changes +
                         " data.train_samples=" + std::to_string(known.samples) + " run.dir=" + run_dir +
                         " " + overrides;
  const auto outcome =
      ended_well(ranks == 1 ? run_shell(environment + " " + std::getenv("LOCKSTEP_PROGRAM") + " " + arguments)
                            : lockstep_on_ranks(ranks, arguments));
  EXPECT_EQ(outcome.last_line(), "weights sha256 " + known.sha256)
      << known.name << " with " << ranks << " ranks, " << environment << " " << overrides << "\n"
      << outcome.everything();
  EXPECT_EQ(losses_sha256(run_dir), known.losses_sha256)
      << known.name << " with " << ranks << " ranks, " << environment << " " << overrides;
  std::string metrics;
  for (const auto& line : comparable_metrics(run_dir)) metrics += line.dump() + "\n";
  return metrics;
}

bool is_network(const Known& known) {
  return known.name == "net" || known.name == "lenet" || known.name == "mlp" || known.name == "linear" ||
         known.name == "layers" || known.name == "modern" || known.name == "transpose";
}

TEST(ArithmeticTest, EndsInTheKnownWeightsOnCpus) {
  const TemporaryDirectory directory;
  for (const Known& known : known_runs()) {
    const std::string alone = train(directory, known, 1, "parallel.device=cpu");
    if (!is_network(known)) continue;
    EXPECT_EQ(train(directory, known, 2, "parallel.device=cpu parallel.threads=2"), alone) << known.name;
    EXPECT_EQ(train(directory, known, 3, "parallel.device=cpu"), alone) << known.name;
  }
}

/// LOCKSTEP_SIMD chooses one; the best is that of the test above.
TEST(ArithmeticTest, EndsInTheKnownWeightsOnEveryInstructionSet) {
  const TemporaryDirectory directory;
  const std::string program = std::getenv("LOCKSTEP_PROGRAM");
  const auto none = run_shell("LOCKSTEP_SIMD=none " + program + " devices");
  EXPECT_EQ(none.exit_code, 2) << none.everything();
  std::vector<std::string> others;
  for (const std::string simd : {"avx2", "sse4", "portable"})
    if (none.err.find(" " + simd) != std::string::npos) others.push_back(simd);
  if (others.empty()) GTEST_SKIP() << "this processor has one instruction set only: " << none.err;
  for (const Known& known : known_runs()) {
    for (const std::string& simd : others) {
      if (!is_network(known) && simd != others.back()) continue;
      train(directory, known, 1, "parallel.device=cpu", "LOCKSTEP_SIMD=" + simd);
    }
  }
}

/// Those on data made in memory; tests/arithmetic/run --devices int16 has the large ones.
TEST(ArithmeticTest, EndsInTheKnownWeightsInIntegers) {
  const TemporaryDirectory directory;
  for (const Known& known : known_runs("int16_jobs.txt")) {
    train(directory, known, 1, "parallel.device=cpu");
    train(directory, known, 3, "parallel.device=cpu parallel.threads=2", "LOCKSTEP_INTEGER_ENGINE=doubles");
  }
}

TEST(ArithmeticTest, SaysThatMultiplyAddIsSoftware) {
  const TemporaryDirectory directory;
  const auto outcome =
      run_shell("LOCKSTEP_SIMD=portable " + std::string(std::getenv("LOCKSTEP_PROGRAM")) + " train " +
                folder() + "/job.yaml model=linear run.dir=" + directory.path("run"));
  if (outcome.exit_code == 69) GTEST_SKIP() << outcome.err;
  expect_says(outcome, 0, {"has no fused multiply-add (FMA)"});
}

TEST(ArithmeticTest, EndsInTheKnownWeightsOnTheEmulatedGpu) {
  const TemporaryDirectory directory;
  for (const Known& known : known_runs()) {
    const std::string emulated =
        train(directory, known, is_network(known) ? 2 : 1, "parallel.device=emulated");
    if (!is_network(known)) continue;
    const std::string cpu = train(directory, known, 1, "parallel.device=cpu");
    EXPECT_EQ(emulated, cpu) << known.name;
    if (known.samples < 40) continue;
    EXPECT_EQ(train(directory, known, 1, "parallel.device=emulated parallel.graph=off"), cpu) << known.name;
    EXPECT_EQ(train(directory, known, 3, "parallel.device=emulated"), cpu) << known.name;
  }
}

}  // namespace
}  // namespace lockstep::testing
