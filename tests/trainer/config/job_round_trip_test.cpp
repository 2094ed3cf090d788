// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// parse_job(to_yaml(job)) is the job.
#include "common/error.hpp"
#include "common/yaml.hpp"
#include "data/sets/leave_out.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "trainer/config/job.hpp"
#include "trainer/config/job_schema.hpp"

#include <fmt/format.h>

#include <regex>

namespace lockstep {

namespace {

/// Key by key, by the schema's own writers: exact for doubles, since they are written to be read back
/// unchanged.
void expect_equal(const Job& a, const Job& b) {
  for (const JobKey& key : job_schema()) EXPECT_EQ(key.write(a), key.write(b)) << key.path;
}

/// Jobs that the parser accepts, with random values of the keys in the schema.
class RandomJobs {
 public:
  explicit RandomJobs(unsigned seed) : random_(seed) {}

  Job make() {
    static const std::vector<std::vector<std::string>> kBeginnings = {
        {},
        {"data.set=pictures", "data.root=photos", "data.size=8x9"},
        {"data.set=webdataset", "data.root=tars"},
        {"train.schedule.kind=step", "train.schedule.step_size=3"},
        {"train.schedule.kind=multistep", "train.schedule.milestones=[3, 8]"},
        {"train.schedule.kind=exponential", "train.schedule.gamma=0.9"},
        {"train.schedule.kind=one_cycle"},
        {"parallel.strategy=pipeline"},
        {"inject={rank: 1, step: 3, what: die}"},
        {"train.freeze=['a: b', \"it's\", '* &c']", "train.groups=[{match: 'x: [y, ', lr_factor: 0.3}]"}};
    std::vector<std::string> overrides = kBeginnings[random_() % kBeginnings.size()];
    overrides.push_back("model=" + text());
    Job job = parse_job("", "job.yaml", overrides);
    std::vector<const JobKey*> keys;
    for (const JobKey& key : job_schema()) keys.push_back(&key);
    std::ranges::shuffle(keys, random_);
    std::ranges::stable_sort(keys, {}, [](const JobKey* key) {  // keys that others depend on come first
      return key->leaf() == "kind" || key->leaf() == "strategy" ? 0 : key->choices.empty() ? 2 : 1;
    });
    for (const JobKey* key : keys) {
      if (key->path == "model" || !belongs(*key, job)) continue;
      if (key->leaf() != "kind" && random_() % 2 != 0) continue;
      overrides.push_back(key->path + "=" + value_of(*key));
      try {
        job = parse_job("", "job.yaml", overrides);
      } catch (const ConfigError&) {  // it does not go with those before it, or with this key
        overrides.pop_back();
      }
    }
    return job;
  }

 private:
  std::string value_of(const JobKey& key) {
    if (!key.choices.empty()) return std::string(key.choices[random_() % key.choices.size()]);
    switch (random_() % 5) {
      case 0:
        return text();
      case 1:
        return std::to_string(random_() % 1000000000);
      case 2:
        return std::to_string(random_() % 10);
      case 3:
        return fmt::format("{}", std::uniform_real_distribution<double>(1e-6, 1)(random_));
      default:
        return example_of(key);
    }
  }
  std::string text() {
    static const std::vector<std::string> kPieces = {"a",  "Z",  "0", "-",        ":",    " ",  "#",  "'",
                                                     "\"", "\\", "{", "]",        ",",    "&",  "*",  "!",
                                                     "%",  "@",  "~", "\xc3\xa9", "null", ": ", " #", "\\n"};
    std::string result = "a";
    for (std::size_t i = random_() % 12; i > 0; --i) result += kPieces[random_() % kPieces.size()];
    return result + "a";
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

TEST(JobRoundTripTest, RandomJobsComeBackAndHaveEveryKey) {
  std::set<std::string> changed;
  RandomJobs random(2026);
  for (int i = 0; i < 300 && !::testing::Test::HasFailure(); ++i) {
    const Job job = random.make();
    SCOPED_TRACE(to_yaml(job));
    expect_equal(parse_job(to_yaml(job), "job.yaml"), job);
    for (const JobKey& key : job_schema())
      if (key.write(job) != key.write(Job())) changed.insert(key.path);
  }
  for (const JobKey& key : job_schema()) EXPECT_TRUE(changed.contains(key.path)) << key.path;
}

TEST(JobRoundTripTest, JobWithoutAFaultDoesNotSpeakOfOne) {
  EXPECT_EQ(to_yaml(parse_job("model: net\n", "job.yaml")).find("inject"), std::string::npos);
  const Job none = parse_job("{model: net, inject: {rank: 0, step: 0, what: none}}", "job.yaml");
  EXPECT_EQ(to_yaml(none).find("inject"), std::string::npos);
}

TEST(JobRoundTripTest, EveryChoiceComesBackWithItsKeysAndNoOthers) {
  for (const std::string_view optimizer : choices_of("train.optimizer")) {
    for (const std::string_view schedule : choices_of("train.schedule")) {
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

/// Finds plain scalars that a reader of YAML 1.1 (PyYAML) takes for another kind of value than ours. Or for
/// no number.
void find_scalars_read_otherwise(const YAML::Node& node, std::vector<std::string>* found) {
  static const std::regex whole("-?(0|[1-9][0-9]*)"), real(R"(-?[0-9]+\.[0-9]*([eE][-+][0-9]+)?)"),
      keyword("y|n|yes|no|on|off|null|~", std::regex::icase);
  if (node.IsMap())
    for (const auto& entry : node)
      for (const YAML::Node& part : {entry.first, entry.second}) find_scalars_read_otherwise(part, found);
  if (node.IsSequence())
    for (const auto& entry : node) find_scalars_read_otherwise(entry, found);
  if (!node.IsScalar() || node.Tag() == "!") return;
  const std::string& text = node.Scalar();
  const bool is_number = std::regex_match(text, whole) || std::regex_match(text, real);
  if (is_number != parse_double(text).has_value() || std::regex_match(text, keyword)) found->push_back(text);
}

TEST(JobRoundTripTest, ReadersOfYaml11FindTheSameValues) {
  std::vector<std::string> found;
  RandomJobs random(46);
  for (int i = 0; i < 50; ++i)
    find_scalars_read_otherwise(load_strict_yaml(to_yaml(random.make()), "job.yaml"), &found);
  const std::string yaml = to_yaml(
      parse_job("{model: net, data: {std: [1e-05], augment: [{flip: {horizontal: 1e-05, vertical: 0.5}}]},"
                " train: {optimizer: {lr: 1e-05}, freeze: [off, 'x 1e-05']}, parallel: {graph: off}}",
                "job.yaml"));
  find_scalars_read_otherwise(load_strict_yaml(yaml, "job.yaml"), &found);
  EXPECT_EQ(found, std::vector<std::string>());
  test::expect_words(
      yaml, {"    lr: 1.0e-05\n", "augment: [{flip: {horizontal: 1.0e-05, vertical: 0.5}}]", "std: 1.0e-05\n",
             "freeze: [\"off\", \"x 1e-05\"]\n", "  trace: \"off\"\n", "  graph: \"off\"\n"});
}

TEST(JobRoundTripTest, YamlIsNestedAsAPersonWouldWriteIt) {
  const std::string yaml = to_yaml(Job());
  EXPECT_EQ(yaml.substr(0, yaml.find("  root")), "model: net\ndata:\n  set: mnist\n");
  test::expect_words(yaml,
                     {"train:\n  epochs: 10\n  seed: 1234\n", "  optimizer:\n    kind: sgd\n    lr: 0.02\n",
                      "\nparallel:\n  strategy: data\n  device: auto\n"});
}

// Changes to a job that a resume must refuse.

std::vector<std::string> changes(const std::string& override_text, const std::string& base = "model: net") {
  const Job before = parse_job(base, "job.yaml");
  const Job after = parse_job(base, "job.yaml", {override_text});
  return differing_keys(determining_keys(before), determining_keys(after));
}

std::string advice_for(const std::vector<std::string>& overrides, int ranks = 4) {
  const std::string start = "run the same command again: it goes on from the last checkpoint, on ";
  const std::string text = restart_advice(parse_job("model: net", "job.yaml", overrides), ranks);
  return text.starts_with(start) ? text.substr(start.size()) : text;
}

TEST(RestartRuleTest, AdvicePromisesWhatTheJobHolds) {
  const std::string others = "; the weights will be others than without this loss";
  EXPECT_EQ(advice_for({}), "any number of ranks");
  EXPECT_EQ(advice_for({"parallel.determinism=off"}), "any number of ranks" + others);
  EXPECT_EQ(advice_for({"data.per_rank_batch=8"}), "4 ranks as before (data.per_rank_batch)");
  EXPECT_EQ(advice_for({"data.per_rank_batch=8"}, 1), "1 rank as before (data.per_rank_batch)");
  EXPECT_EQ(advice_for({"parallel.strategy=pipeline"}),
            "4 ranks as before, or as many as its stages come out on");
  EXPECT_EQ(advice_for({"parallel.strategy=hogwild", "parallel.determinism=off"}),
            "any number of ranks of one host" + others);
}

/// Each key that determines the weights has a row of end_to_end/ways_test.cpp, where it changes them, and no other has.
TEST(JobHashTest, ADifferenceIsNamedWithBothValues) {
  EXPECT_EQ(changes("train.seed=1"), std::vector<std::string>{"train.seed (was 1234, now 1)"});
}

/// A schedule that ends where the run ends would be another one in a longer run.
TEST(JobHashTest, EpochsDetermineTheWeightsWhereAScheduleIsAsLongAsTheRun) {
  const std::string cosine = "{model: net, train: {schedule: {kind: cosine}}}";
  EXPECT_EQ(changes("train.epochs=20", cosine),
            std::vector<std::string>{"train.schedule.total (was 10, now 20)"});
  EXPECT_EQ(changes("train.epochs=20", "{model: net, train: {schedule: {kind: cosine, warmup_epochs: 2}}}"),
            std::vector<std::string>{"train.schedule.total (was 8, now 18)"});
  EXPECT_EQ(changes("train.epochs=20", "{model: net, train: {schedule: {kind: cosine, warmup_steps: 2}}}"),
            std::vector<std::string>{
                "train.schedule.total (was to the end of 10 epochs, now to the end of 20 epochs)"});
  EXPECT_TRUE(changes("train.schedule.total=10", cosine).empty());
  EXPECT_TRUE(changes("train.max_steps=7", cosine).empty());
  EXPECT_TRUE(
      changes("train.epochs=20", "{model: net, train: {schedule: {kind: cosine, total: 10}}}").empty());
  EXPECT_FALSE(changes("train.epochs=20", "{model: net, train: {schedule: {kind: one_cycle}}}").empty());
  EXPECT_TRUE(
      changes("train.epochs=20", "{model: net, train: {schedule: {kind: exponential, gamma: 0.9}}}").empty());
}

/// The keys that checkpoints had before there were others than sgd.
TEST(ResumeTest, CheckpointFromBeforeThereWereSchedulesGoesOn) {
  auto stored = determining_keys(parse_job("model: net", "job.yaml"));
  std::erase_if(stored, [](const auto& entry) {
    return entry.first.starts_with("train.schedule.") ||
           entry.first.starts_with("train.optimizer.lr_scaling") ||
           entry.first == "train.optimizer.decay_biases";
  });
  EXPECT_NO_THROW(require_same_job(stored, parse_job("model: net", "job.yaml"), "c"));
  EXPECT_THROW(
      require_same_job(stored, parse_job("model: net", "job.yaml", {"train.schedule.kind=cosine"}), "c"),
      ConfigError);
}

TEST(JobHashTest, GrainMayChangeWhenSumsAreNotExact) {
  EXPECT_TRUE(changes("parallel.grain=32", "{model: net, parallel: {determinism: off}}").empty());
}

TEST(JobHashTest, KeyThatOnlyOneSideHasIsADifference) {
  EXPECT_EQ(differing_keys({{"a", "1"}}, {{"b", "2"}}),
            (std::vector<std::string>{"a (was 1, now not given)", "b (was not given, now 2)"}));
}

TEST(ResumeTest, EveryDifferingKeyIsNamedWithBothValues) {
  const Job before = parse_job("{model: net, train: {seed: 1}}", "job.yaml");
  const Job now = parse_job("{model: net, train: {seed: 2}, data: {shuffle: no}}", "job.yaml");
  auto stored = determining_keys(before);
  stored["old"] = "x";
  const std::string why =
      test::error_of<ConfigError>([&] { require_same_job(stored, now, "runs/a/checkpoints/step-00000001"); });
  EXPECT_TRUE(why.starts_with("runs/a/checkpoints/step-00000001: ")) << why;
  test::expect_words(
      why, {"train.seed (was 1, now 2)", "old (was x, now not given)", "data.shuffle (was true, now false)"});
  EXPECT_EQ(why.find("model"), std::string::npos) << why;
}

TEST(ResumeTest, TheMessageSaysHowToGoOn) {
  const auto refusal = [](const Job& then, const Job& now, const std::string& checkpoint) {
    return test::error_of<ConfigError>([&] { require_same_job(determining_keys(then), now, checkpoint); });
  };
  const Job net = parse_job("model: net", "job.yaml");
  EXPECT_EQ(
      refusal(net, parse_job("model: lenet", "job.yaml"), "c"),
      "c: was written by a job that trains other weights; what differs: model (was net, now lenet). Set "
      "these back, choose another run.dir, or start afresh with run.resume=never. To train on from its "
      "weights with these: train.initial_weights=c train.partial=true and another run.dir");
  const Job each = parse_job("{model: net, data: {per_rank_batch: 8}}", "job.yaml");
  EXPECT_EQ(
      refusal(for_ranks(each, 4), for_ranks(each, 2), "runs/a/checkpoints/c"),
      "runs/a/checkpoints/c: was written by a job that trains other weights; what differs: "
      "data.global_batch (was 32, now 16). Set these back, choose another run.dir, or start afresh with "
      "run.resume=never; with data.per_rank_batch 8, start 4 ranks, as then. To train on from its "
      "weights with these: train.initial_weights=runs/a and another run.dir");
  const Job odd = parse_job("{model: net, data: {global_batch: 30}}", "job.yaml");
  EXPECT_EQ(refusal(odd, for_ranks(each, 2), "c").find("as then"), std::string::npos);
}

TEST(ResumeTest, AListOfSamplesIsComparedByItsContents) {
  Job job = parse_job("model: net", "job.yaml");
  job.data.leave_out = std::make_shared<const LeaveOutList>(parse_leave_out("3\n", "list"));
  EXPECT_EQ(determining_keys(job).at("data.leave_out"), job.data.leave_out->contents());
}

TEST(ResumeTest, OfAScheduleAsLongAsTheRunTheKeyThatWasSetIsNamed) {
  const auto why = [](const std::string& schedule, const std::string& change) {
    const std::string yaml = "{model: net, train: {epochs: 10, schedule: {" + schedule + "}}}";
    return test::error_of<ConfigError>([&] {
      require_same_job(determining_keys(parse_job(yaml, "job.yaml")), parse_job(yaml, "job.yaml", {change}),
                       "c");
    });
  };
  const std::string length = "what differs: the length of the schedule, which ends with train.epochs ";
  const std::string by_epoch = why("kind: cosine", "train.epochs=12");
  test::expect_words(by_epoch, {length + "(was 10, now 12; train.schedule.total=10 keeps it). Set"});
  EXPECT_EQ(why("kind: cosine, total: 10", "train.epochs=12"), "");
  const std::string by_step = why("kind: cosine, by: step", "train.epochs=12");
  test::expect_words(by_step, {length + "(was to the end of 10 epochs, now to the end of 12 epochs). Set"});
  const std::string other_kind = why("kind: constant", "train.schedule.kind=cosine");
  test::expect_words(other_kind, {"what differs: train.schedule.kind (was constant, now cosine). Set"});
}

}  // namespace

}  // namespace lockstep
