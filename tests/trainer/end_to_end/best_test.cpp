// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Accuracy in a checkpoint is that of its evaluation, and the best evaluated weights are kept. Three random
/// runs, or as many as LOCKSTEP_CAMPAIGN says.
#include "tests/data/idx_fixture.hpp"
#include "tests/support/prelude.hpp"
#include "tests/trainer/end_to_end/program.hpp"

namespace lockstep::testing {
namespace {

namespace fs = std::filesystem;

/// Ten noisy patterns, hard enough that the accuracy moves up and down.
void write_patterns(const std::string& directory) {
  std::mt19937 random(7);
  std::array<std::array<std::uint8_t, 784>, 10> patterns{};
  for (auto& pattern : patterns)
    for (auto& pixel : pattern) pixel = static_cast<std::uint8_t>(random() % 256);
  for (const auto& [half, count] : {std::pair{"train", 640U}, {"t10k", 250U}}) {
    test::Bytes images = test::idx_header({count, 28, 28}), labels = test::idx_header({count});
    for (std::uint32_t i = 0; i < count; ++i) {
      labels.push_back(static_cast<std::uint8_t>(random() % 10));
      for (const std::uint8_t pixel : patterns[labels.back()])
        images.push_back(random() % 8 == 0 ? pixel : static_cast<std::uint8_t>(random() % 256));
    }
    test::write_file(directory + "/" + half + "-images-idx3-ubyte", images);
    test::write_file(directory + "/" + half + "-labels-idx1-ubyte", labels);
  }
}
/// "93.20" of the first "accuracy  93.20 %"; nothing if there is none.
std::string accuracy_in(const std::string& text) {
  const auto end = text.find(" %", std::min(text.find("accuracy"), text.size()));
  if (end == std::string::npos) return "";
  return text.substr(text.rfind(' ', end - 1) + 1, end - text.rfind(' ', end - 1) - 1);
}

class BestTest : public ::testing::Test {
 protected:
  BestTest() { write_patterns(directory_.path("data/mnist")); }

  Outcome run(const std::string& arguments) {
    return run_shell("LOCKSTEP_DATA=" + directory_.path("data") + " $LOCKSTEP_PROGRAM " + arguments);
  }

  /// Highest test accuracy that the run has measured at a moment when it could save.
  static double best_measured(const std::string& run_directory) {
    double best = 0;
    for (const auto& event : read_metrics(run_directory))
      if (event.contains("test_accuracy")) best = std::max(best, event["test_accuracy"].get<double>());
    return best;
  }

  void expect_labels_hold(const std::string& run_directory) {
    std::string best_label = "none";
    double best = -1;
    for (const auto& entry : fs::directory_iterator(run_directory + "/checkpoints")) {
      const auto label = accuracy_in(run("inspect " + entry.path().string()).out);
      if (label.empty()) continue;
      EXPECT_EQ(label, accuracy_in(run("eval " + entry.path().string()).out)) << entry.path();
      if (std::stod(label) > best) best = std::stod(label), best_label = label;
    }
    EXPECT_GE(best, 100 * best_measured(run_directory) - 0.0051) << best_label;
  }

  TemporaryDirectory directory_;
};

TEST_F(BestTest, LabelsAreWhatAnEvaluationSays) {
  const char* campaign = std::getenv("LOCKSTEP_CAMPAIGN");
  const long runs = campaign != nullptr ? std::max(3L, std::strtol(campaign, nullptr, 10)) : 3;
  std::mt19937 random(20260301);
  for (int i = 0; i < runs && !HasFailure(); ++i) {
    const auto pick = [&](std::initializer_list<const char*> values) {
      return std::string(values.begin()[random() % values.size()]);
    };
    const auto job =
        "model: " + pick({"linear", "mlp", "net"}) +
        "\ndata: {set: mnist, global_batch: " + pick({"32", "64", "96"}) +
        "}\ntrain: {epochs: " + pick({"3", "5", "8"}) + ", max_steps: " + pick({"0", "0", "23", "31"}) +
        ", seed: " + std::to_string(random() % 1000) + ", optimizer: {lr: " + pick({"0.02", "0.1", "0.4"}) +
        "}}\nparallel: {device: cpu, grain: 32}\nrun: {checkpoint_every_steps: " +
        pick({"0", "3", "7", "10", "20"}) + ", keep: {last: " + pick({"1", "2"}) + "}}\n";
    SCOPED_TRACE(job);
    write_text(directory_.path("job.yaml"), job);
    const auto run_directory = directory_.path("run-" + std::to_string(i));
    // Stopped on the way, half of the times: the best may be from before and from after.
    if (random() % 2 == 0)
      run("train " + directory_.path("job.yaml") + " train.max_steps=13 run.dir=" + run_directory);
    ended_well(run("train " + directory_.path("job.yaml") + " run.dir=" + run_directory));
    expect_labels_hold(run_directory);
  }
}

TEST_F(BestTest, IsTheBestOfTheNewestTestSet) {
  write_text(
      directory_.path("job.yaml"),
      "model: linear\ndata: {set: mnist, global_batch: 64, test_samples: 2}\ntrain: {epochs: 6, patience: "
      "9,\n  optimizer: {lr: 0.4}}\nparallel: {device: cpu, grain: 32}\n");
  const std::string path = directory_.path("run");
  const std::string train = "train " + directory_.path("job.yaml") + " run.dir=" + path;
  ended_well(run(train));
  const std::string told = ended_well(run(train + " train.epochs=9 data.test_samples=200")).out;
  double best = -1;
  std::int64_t epoch = 0;
  for (const auto& event : read_metrics(path)) {
    if (event["event"] != "epoch" || event["test_samples"] != 200) continue;
    if (event["test_accuracy"].get<double>() > best) best = event["test_accuracy"], epoch = event["epoch"];
  }
  ASSERT_GE(epoch, 7);
  expect_words(told, {fmt::format("best: accuracy {:.2f} % after epoch {}, checkpoint {}@epoch:{}\n",
                                  100 * best, epoch, path, epoch)});
  EXPECT_EQ(accuracy_in(run("inspect " + path + "@best").out), fmt::format("{:.2f}", 100 * best));
  EXPECT_NE(run("prove " + path).exit_code, 1) << "refuted";
}

TEST_F(BestTest, WithoutItOnlyTheEndIsSaved) {
  write_text(directory_.path("job.yaml"),
             "model: linear\ntrain: {epochs: 3}\nparallel: {device: cpu}\nrun: {checkpoint_every_steps: 0, "
             "keep: {best: false}}\n");
  ended_well(run("train " + directory_.path("job.yaml") + " run.dir=" + directory_.path("run")));
  EXPECT_EQ(std::distance(fs::directory_iterator(directory_.path("run/checkpoints")), {}), 1);
}

}  // namespace
}  // namespace lockstep::testing
