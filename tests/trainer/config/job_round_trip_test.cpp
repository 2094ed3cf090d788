// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// parse_job(to_yaml(job)) is the job.
#include "common/error.hpp"
#include "common/yaml.hpp"
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

/// The folder of a run has the name of its job file, which may have any bytes.
TEST(JobRoundTripTest, PathsThatNoJobFileHoldsAreNotWritten) {
  for (const auto& [path, said] : {std::pair{"runs/m\xE9", R"("runs/m\xe9" has bytes that are not UTF-8)"},
                                   {"runs/a\nb", R"("runs/a\x0ab" has a line break or a tab)"},
                                   {"runs/a\x01", R"("runs/a\x01" has a control character)"}}) {
    Job job = parse_job("model: net\n", "job.yaml");
    job.run.dir = path;
    EXPECT_EQ(
        message_of<ConfigError>([&] { to_yaml(job); }),
        fmt::format("run.dir: {}, and a job.yaml with it could not be read again; choose other names", said));
  }
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
  const std::string yaml =
      to_yaml(parse_job("{model: net, data: {mean: -1e-05, std: [1e-05], augment: [{flip: {horizontal: "
                        "1e-05, vertical: 0.5}}]},"
                        " train: {optimizer: {lr: 1e-05}, freeze: [off, 'x 1e-05']}, parallel: {graph: off}}",
                        "job.yaml"));
  find_scalars_read_otherwise(load_strict_yaml(yaml, "job.yaml"), &found);
  EXPECT_EQ(found, std::vector<std::string>());
  test::expect_words(yaml, {"    lr: 1.0e-05\n", "augment: [{flip: {horizontal: 1.0e-05, vertical: 0.5}}]",
                            "mean: -1.0e-05\n", "std: 1.0e-05\n", "freeze: [\"off\", \"x 1e-05\"]\n",
                            "  trace: \"off\"\n", "  graph: \"off\"\n"});
}

TEST(JobRoundTripTest, YamlIsNestedAsAPersonWouldWriteIt) {
  const std::string yaml = to_yaml(Job());
  EXPECT_EQ(yaml.substr(0, yaml.find("  root")), "model: net\ndata:\n  set: mnist\n");
  test::expect_words(yaml,
                     {"train:\n  epochs: 10\n  seed: 1234\n", "  optimizer:\n    kind: sgd\n    lr: 0.02\n",
                      "\nparallel:\n  strategy: data\n  device: auto\n"});
}

}  // namespace

}  // namespace lockstep
