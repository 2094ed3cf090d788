// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Every way in which a job file can be wrong, with the whole message: job_errors.txt, and what is no text.
#include "data/sets/catalogue.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/test_settings.hpp"
#include "trainer/config/job.hpp"
#include "trainer/config/job_schema.hpp"

#include <fmt/ranges.h>
#include <yaml-cpp/yaml.h>

namespace lockstep::job_error_test {
namespace {

/// Of a job whose first line is `model: net`, so that the given text starts on line 2.
std::string error_of(const std::string& yaml) {
  return message_of<ConfigError>([&] { parse_job("model: net\n" + yaml, "job.yaml"); });
}

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size())
    text.replace(at, from.size(), to);
}

std::string without_escapes(std::string text) {
  replace_all(text, "\\n", "\n");
  replace_all(text, "\\\n", "\\n");  // there was a backslash before
  return text;
}

/// What is said of a line of job_errors.txt, behind the place that it begins with.
std::string said_of(const std::string& job) {
  if (!job.starts_with("= ")) return error_of(without_escapes(job)).substr(std::strlen("job.yaml:"));
  const std::string change = job.substr(2), begin = "override '" + change + "'";
  const std::string said = message_of<ConfigError>([&] { parse_job("model: net\n", "job.yaml", {change}); });
  EXPECT_TRUE(said.starts_with(begin)) << said;
  return said.substr(std::min(begin.size(), said.size()));
}

void expect_said(const std::string& job, std::string message) {
  SCOPED_TRACE(job);
  replace_all(message, "{optimizers}", fmt::format("{}", fmt::join(choices_of("train.optimizer"), ", ")));
  replace_all(message, "{sets}", fmt::format("{}", fmt::join(set_names(), ", ")));
  std::string said = said_of(job);
  if (message.ends_with("...")) {
    message.resize(message.size() - 3);
    said.resize(std::min(said.size(), message.size()));
  }
  EXPECT_EQ(said, message);
}

/// job_errors.txt says how it is read.
TEST(JobErrorTest, EveryWrongJobIsToldWhatTheTableSays) {
  std::ifstream table(test::source_path("tests/trainer/config/job_errors.txt"));
  std::vector<std::string> jobs;
  std::string around, in_front;
  int cases = 0;
  for (std::string line; std::getline(table, line);) {
    if (line.empty() || line.starts_with("# ")) {
      around = in_front = "";
    } else if (line.starts_with("with ")) {
      around = line.substr(5);
    } else if (line.starts_with("at ")) {
      in_front = line.substr(3);
    } else if (!line.starts_with("    ")) {
      jobs.push_back(around.empty() ? line : std::string(around).replace(around.find('@'), 1, line));
    } else {
      EXPECT_FALSE(jobs.empty()) << line;
      for (const std::string& job : jobs) expect_said(job, in_front + line.substr(4));
      cases += static_cast<int>(jobs.size());
      jobs.clear();
    }
  }
  EXPECT_GT(cases, 200) << "the table was not read";
}

TEST(JobErrorTest, NetworkInPlaceOfAJobIsToldSo) {
  EXPECT_EQ(message_of<ConfigError>([] { parse_job("name: mine\nlayers: [flatten]\n", "mine.yaml"); }),
            "mine.yaml:2:9: this file describes a network, not a job; a job names it: 'model: mine.yaml', or "
            "'model=mine.yaml' behind another job file");
}

/// Whatever the key: what is 0, or no longer below 1, once it is a float.
TEST(JobErrorTest, NumbersThatFp32CannotHoldAreRefused) {
  parse_job("{model: net, train: {optimizer: {lr: 1.4e-45, momentum: 0.99999994}}}", "job.yaml");
  int looked_at = 0;
  for (const JobKey& key : job_schema()) {
    Job job;
    const bool takes_a_number = key.read(YAML::Node("0.5"), job) || key.read(YAML::Node("5.5"), job);
    if (!takes_a_number || !key.choices.empty() || key.read(YAML::Node("text"), job)) continue;
    ++looked_at;
    EXPECT_FALSE(key.read(YAML::Node("1e-50"), job)) << key.path;
    if (key.read(YAML::Node("0.99999999"), job)) {
      EXPECT_TRUE(key.read(YAML::Node("1"), job)) << key.path << " is 1 as fp32";
    }
  }
  EXPECT_GT(looked_at, 15);
  test::expect_words(
      error_of("train: {optimizer: {kind: adam, betas: [0.9, 0.99999999]}}") +
          error_of("train: {optimizer: {lr: 1e-40, lr_scaling: {rule: linear, base_batch: 1000000000}}}"),
      {"1 as fp32", "is 0 as fp32"});
}

TEST(JobErrorTest, ModelMustBeGiven) {
  EXPECT_EQ(message_of<ConfigError>([] { parse_job("train: {epochs: 3}\n", "job.yaml"); }),
            "job.yaml: no model given; add a line such as 'model: net'");
  EXPECT_EQ(message_of<ConfigError>([] { parse_job("", "job.yaml"); }),
            "job.yaml: no model given; add a line such as 'model: net'");
}

TEST(JobErrorTest, ListsOfNamesAreNeitherLongNorOfLongNames) {
  EXPECT_NE(error_of("train: {freeze: " + std::string(201, 'a') + "}\n"), "");
  std::string many;
  for (int i = 0; i < 1001; ++i) many += "a, ";
  EXPECT_NE(error_of("train: {freeze: [" + many + "]}\n"), "");
}

TEST(JobErrorTest, JobFilesOfEarlierRunsMayHaveWhatWent) {
  EXPECT_NO_THROW(
      parse_job("model: net\nparallel: {count_lost_updates: false, on_wrong: stop}\n", "job.yaml"));
  parse_job("model: net\ntrain: {clip_value: 1}\nparallel: {strategy: hogwild, determinism: off}\n",
            "job.yaml");
}

}  // namespace
}  // namespace lockstep::job_error_test
