// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// parse_job(to_yaml(job)) is the job.
#include "trainer/config/job.hpp"
#include "trainer/config/job_schema.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace lockstep {
namespace {

/// Key by key, by the schema's own writers: exact for doubles, since they are written to be read back
/// unchanged.
void expect_equal(const Job& a, const Job& b) {
  for (const JobKey& key : job_schema()) EXPECT_EQ(key.write(a), key.write(b)) << key.path;
}

class RandomJob {
 public:
  explicit RandomJob(unsigned seed) : random_(seed) {}

  Job make() {
    Job job;
    job.model = text();
    job.data = {pick({"random", "synthetic"}),
                text(),
                whole(1, 1000000000),
                whole(0, 1000000000),
                {real(-1e6, 1e6)},
                {real(1e-6, 1e6)},
                flip(),
                whole(0, 1000000),
                whole(0, 1000000)};
    job.train = {
        whole(1, 1000000000), random_(), whole(0, 4294967295),
        flip() ? text() : "", 0,         {"sgd", real(1e-12, 1e6), real(1e-9, 0.999), real(0, 1e6), flip()}};
    job.parallel.device = pick({"auto", "cpu", "cuda", "cuda:3", "emulated"});
    job.parallel.backend = pick({"auto", "thread"});
    job.parallel.kernels = flip() ? Kernels::kNative : Kernels::kVendor;
    job.parallel.graph = flip() ? GraphUse::kOn : GraphUse::kOff;
    job.parallel.ranks = static_cast<int>(whole(0, 4096));
    job.parallel.threads = static_cast<int>(whole(1, 1024));
    job.parallel.bucket_bytes = static_cast<std::size_t>(whole(4, 1 << 20) << (flip() ? 10 : 0));
    job.parallel.determinism = flip() ? Determinism::kWorld : Determinism::kOff;
    job.parallel.grain = static_cast<int>(whole(1, 4096));
    job.parallel.split = flip() ? BatchSplit::kEven : BatchSplit::kChunk;
    job.parallel.check_replicas_every_steps = whole(0, 1000000000000);
    job.parallel.timeout_seconds = real(1e-9, 1e9);
    job.run = {text(),
               whole(0, 1000),
               whole(0, 1000),
               text(),
               pick({"stop", "continue"}),
               real(0, 1e9),
               whole(0, 1000),
               flip(),
               flip(),
               flip(),
               {whole(1, 1000), whole(0, 1000), flip()}};
    if (flip()) job.inject = {whole(0, 1000), whole(1, 1000), pick({"die", "delay 0.5s", "slow 12%", "nan"})};
    return job;
  }

 private:
  bool flip() { return random_() % 2 == 0; }
  std::int64_t whole(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random_);
  }
  double real(double low, double high) { return std::uniform_real_distribution<double>(low, high)(random_); }
  std::string pick(const std::vector<std::string>& words) { return words[random_() % words.size()]; }
  std::string text() {
    static const std::vector<std::string> kPieces = {"a",  "Z",  "0", "-",        ":",    " ",  "#",  "'",
                                                     "\"", "\\", "{", "]",        ",",    "&",  "*",  "!",
                                                     "%",  "@",  "~", "\xc3\xa9", "null", ": ", " #", "\\n"};
    std::string result;
    for (std::int64_t i = whole(1, 12); i > 0; --i) result += pick(kPieces);
    if (result.front() == '~') result.front() = 'a';  // a home has been expanded by then
    return result;
  }

  std::mt19937_64 random_;
};

std::string required_keys(std::string_view schedule) {
  if (schedule == "step") return ", step_size: 3";
  if (schedule == "multistep") return ", milestones: [3, 8]";
  return schedule == "exponential" ? ", gamma: 0.9" : "";
}

TEST(JobRoundTripTest, DefaultsComeBack) {
  const Job job = parse_job("model: net\n", "job.yaml");
  expect_equal(parse_job(to_yaml(job), "job.yaml"), job);
  expect_equal(parse_job(to_yaml(Job()), "job.yaml"), job);
}

TEST(JobRoundTripTest, RandomJobsComeBack) {
  RandomJob random(2026);
  for (int i = 0; i < 500; ++i) {
    const Job job = random.make();
    SCOPED_TRACE(to_yaml(job));
    expect_equal(parse_job(to_yaml(job), "job.yaml"), job);
    if (testing::Test::HasFailure()) break;
  }
}

TEST(JobRoundTripTest, EveryKeyOfADefaultJobReadsBackThroughItsOwnReader) {
  const Job defaults = parse_job("model: net\n", "job.yaml");
  for (const JobKey& key : job_schema()) {
    if (!belongs(key, defaults)) continue;
    const Job job = parse_job("model: net\n", "job.yaml", {key.path + "=" + key.write(defaults)});
    EXPECT_EQ(key.write(job), key.write(defaults)) << key.path;
  }
}

TEST(JobRoundTripTest, JobWithoutAFaultDoesNotSpeakOfOne) {
  EXPECT_EQ(to_yaml(parse_job("model: net\n", "job.yaml")).find("inject"), std::string::npos);
  const Job none = parse_job("{model: net, inject: {rank: 0, step: 0, what: none}}", "job.yaml");
  EXPECT_EQ(to_yaml(none).find("inject"), std::string::npos);
}

TEST(JobRoundTripTest, EveryChoiceComesBackWithItsKeysAndNoOthers) {
  for (const std::string_view optimizer : optimizer_names()) {
    for (const std::string_view schedule : schedule_names()) {
      const std::string yaml = "{model: net, train: {optimizer: {kind: " + std::string(optimizer) +
                               ", lr_scaling: {rule: sqrt}}, schedule: {kind: " + std::string(schedule) +
                               required_keys(schedule) + "}}}";
      SCOPED_TRACE(yaml);
      const Job job = parse_job(yaml, "job.yaml");
      expect_equal(parse_job(to_yaml(job), "job.yaml"), job);
      for (const JobKey& key : job_schema()) {
        const bool is_written = to_yaml(job).find(" " + std::string(key.leaf()) + ": ") != std::string::npos;
        EXPECT_TRUE(is_written == belongs(key, job) || key.section() != "train.schedule") << key.path;
      }
    }
  }
}

TEST(JobRoundTripTest, YamlIsNestedAsAPersonWouldWriteIt) {
  const std::string yaml = to_yaml(Job());
  EXPECT_EQ(yaml.substr(0, yaml.find("  root")), "model: net\ndata:\n  set: mnist\n");
  EXPECT_NE(yaml.find("train:\n  epochs: 10\n  seed: 1234\n"), std::string::npos) << yaml;
  EXPECT_NE(yaml.find("  optimizer:\n    kind: sgd\n    lr: 0.02\n"), std::string::npos) << yaml;
  EXPECT_NE(yaml.find("\nparallel:\n  strategy: data\n  device: auto\n"), std::string::npos) << yaml;
}

}  // namespace
}  // namespace lockstep
