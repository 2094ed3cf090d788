// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// key=value on the command line: as strict as the file. What is said of wrong ones: job_errors.txt.
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/test_settings.hpp"
#include "trainer/config/job.hpp"
#include "trainer/config/job_schema.hpp"
#include "trainer/training/optimizers/optimizers.hpp"

#include <iomanip>

namespace lockstep::job_override_test {

namespace {

Job with(const std::vector<std::string>& overrides) {
  return parse_job("model: net\ntrain: {epochs: 2, optimizer: {momentum: 0.25}}\n", "job.yaml", overrides);
}

std::string error_of(const std::string& override_text) {
  return message_of<ConfigError>([&] { with({override_text}); });
}

TEST(JobOverrideTest, OverridesWinOverTheFileAndOtherKeysKeepTheirValues) {
  EXPECT_EQ(with({"train.epochs=3", "train.epochs=4"}).train.epochs, 4);
  for (const char* rate : {"train.optimizer.lr=0.1", "train.optimizer={kind: sgd, lr: 0.1}"}) {
    const Job job = with({rate});
    EXPECT_EQ(job.train.optimizer.lr, 0.1) << rate;
    EXPECT_EQ(job.train.optimizer.momentum, 0.25) << rate;
    EXPECT_EQ(job.train.epochs, 2) << rate;
  }
  EXPECT_EQ(parse_job("", "job.yaml", {"model=lenet"}).model, "lenet");
  EXPECT_EQ(with({"run.dir=a=b"}).run.dir, "a=b") << "a value may hold equals signs";
  EXPECT_EQ(with({"train.initial_weights="}).train.initial_weights, "");
}

TEST(JobOverrideTest, ValuesAreTakenLiterally) {
  for (const std::string value : {"a #b", "#b", "a: b", "- a", "&a x", "*a", "!a", "a ", " a", "%a", "@a",
                                  "a, b", "---", "nothing's", "a}", "? a", "| a", "`a"})
    EXPECT_EQ(with({"run.dir=" + value}).run.dir, value);
  EXPECT_EQ(with({"train.freeze=[a#b]"}).train.freeze, std::vector<std::string>{"a#b"});
  EXPECT_EQ(with({"run.dir='a'"}).run.dir, "a") << "quotes are YAML's";
  EXPECT_EQ(with({"run.dir=\"it's\""}).run.dir, "it's");
}

TEST(JobOverrideTest, InQuotesOfYamlNothingIsAComment) {
  EXPECT_EQ(with({R"(run.dir="a #b")"}).run.dir, "a #b");
  EXPECT_EQ(with({R"(run.dir="#a \" #b")"}).run.dir, "#a \" #b");
  EXPECT_EQ(with({"run.dir='it''s #b'"}).run.dir, "it's #b");
  EXPECT_EQ(with({R"(train.freeze=["a #b", 'c #d',"e #f"])"}).train.freeze,
            (std::vector<std::string>{"a #b", "c #d", "e #f"}));
  for (const char* run : {"run={dir: 'a #b', resume: never}", "run=dir: 'a #b'"})
    EXPECT_EQ(with({run}).run.dir, "a #b") << run;
  EXPECT_EQ(with({R"(run={"dir":"a #b"})"}).run.dir, "a #b");
  for (const char* text :
       {R"(run.dir="a" #b)", R"(run.dir="a\\" #b)", "run.dir='a' #'b'", "train.freeze=[a #b]\n]",
        "train.freeze=[it's, b #'c'\n]", "train.freeze=[a 'b #c'\n]", "train.freeze=['a', b] #'c'",
        "run={dir: a:'b #c'\n}", "run=dir: a, 'b #c'", "run=dir: a 'b #c'"})
    test::expect_words(error_of(text), {": in YAML a comment begins with the '#'; remove it"});
}

TEST(JobOverrideTest, WhatWouldBeDroppedOrChangedIsRefused) {
  for (const char* text : {"train.epochs=3 ", "train.epochs= 3", "train.epochs=3\n", "train.epochs=3 # three",
                           "data.shuffle=no ", "run.dir=a\n", "run.dir=a\tb", "run.dir=~", "data.mean=[0.5] ",
                           "data.mean=[0.5] # one", "train={epochs: 3} # three", "train={epochs: 3}\n",
                           "parallel.placement=[0, 1] #", "train.seed=1 "})
    EXPECT_NE(error_of(text), "") << text;
}

TEST(JobOverrideTest, AnotherOptimizerLeavesTheFilesKeysOfTheFirstBehind) {
  const std::string file =
      "{model: net, train: {optimizer: {kind: sgd, lr: 0.3, momentum: 0.5, nesterov: true}}}";
  const Job job = parse_job(file, "job.yaml", {"train.optimizer.kind=adam"});
  EXPECT_EQ(job.train.optimizer.lr, 0.3);
  EXPECT_EQ(job.train.optimizer.momentum, Job().train.optimizer.momentum);
  EXPECT_EQ(to_yaml(job).find("nesterov"), std::string::npos);
  EXPECT_EQ(message_of<ConfigError>([&] {
              parse_job(file, "job.yaml", {"train.optimizer.kind=adam", "train.optimizer.nesterov=true"});
            }),
            "override 'train.optimizer.nesterov=true': train.optimizer.nesterov is for kind sgd; remove it "
            "for adam");
}

TEST(JobOverrideTest, RulesBetweenKeysNameTheOverrideThatBrokeThem) {
  EXPECT_EQ(message_of<ConfigError>([] {
              with({"train.optimizer.momentum=0", "train.optimizer.nesterov=true"});
            }),
            "override 'train.optimizer.nesterov=true': train.optimizer.nesterov needs momentum above 0; set "
            "train.optimizer.momentum");
}

}  // namespace

}  // namespace lockstep::job_override_test

namespace lockstep {

// The job files that ship with Lockstep.

namespace {

std::filesystem::path jobs_directory() {
  return test::source_path("launch/jobs");
}

TEST(ShippedJobsTest, AllAreValidAndLeaveTheirDirectoryToTheProgram) {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(jobs_directory())) {
    if (entry.path().extension() != ".yaml") continue;
    SCOPED_TRACE(entry.path().string());
    const Job job = load_job(entry.path().string(), {});
    EXPECT_EQ(job.run.dir, "auto");
    EXPECT_EQ(job.name, entry.path().stem());
    ++count;
  }
  EXPECT_GE(count, 5U);
  const std::vector<std::string> shipped = shipped_jobs();
  EXPECT_EQ(shipped.size(), count);
  EXPECT_TRUE(std::ranges::is_sorted(shipped));
}

TEST(ShippedModelsTest, TheHelpOfTheKeyModelNamesAll) {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(test::source_path("models"))) {
    if (entry.path().extension() != ".yaml") continue;
    const std::string name = entry.path().stem(), help = find_job_key("model")->meaning;
    EXPECT_TRUE(help.find(" " + name + ",") != help.npos) << name << " is not in: " << help;
    ++count;
  }
  EXPECT_GE(count, 6U);
}

TEST(ShippedJobsTest, MainJobHasWorkForEightRanksAndIsTheDefaultJobOtherwise) {
  const Job job = load_job((jobs_directory() / "mnist.yaml").string(), {});
  EXPECT_GE(job.data.global_batch / job.parallel.grain, 8);
  Job otherwise = parse_job("model: net\n", "job.yaml");
  otherwise.data.global_batch = job.data.global_batch;
  otherwise.train.optimizer.lr = job.train.optimizer.lr;
  otherwise.train.optimizer.nesterov = job.train.optimizer.nesterov;
  EXPECT_EQ(to_yaml(job), to_yaml(otherwise));
}

/// A new optimiser or schedule is to be computed with the same bits everywhere: tests/arithmetic trains it.
TEST(ArithmeticJobsTest, EveryOptimizerAndScheduleIsAmongThem) {
  const auto directory = std::filesystem::path(test::source_path("tests/arithmetic"));
  std::ifstream rows(directory / "jobs.txt");
  std::set<std::string_view> optimizers, schedules;
  std::vector<Job> jobs;
  for (std::string row; std::getline(rows, row);) {
    if (row.starts_with("#")) continue;
    std::istringstream words(row);
    std::vector<std::string> changes;
    std::string word;
    for (words >> word; words >> std::quoted(word, '\'');) {
      if (const auto at = word.find("HERE"); at != std::string::npos) word.replace(at, 4, directory.string());
      changes.push_back(word);
    }
    jobs.push_back(load_job((directory / "job.yaml").string(), changes));
  }
  for (const Job& job : jobs) {
    optimizers.insert(job.train.optimizer.kind);
    schedules.insert(job.train.schedule.kind);
  }
  for (const OptimizerKind& kind : optimizer_kinds())
    EXPECT_TRUE(optimizers.contains(kind.name)) << kind.name;
  for (const ScheduleKind& kind : schedule_kinds()) EXPECT_TRUE(schedules.contains(kind.name)) << kind.name;
}

}  // namespace

}  // namespace lockstep
