// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Job files that are right.
#include "common/error.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/test_settings.hpp"
#include "trainer/config/job.hpp"
#include "trainer/config/job_schema.hpp"

#include <yaml-cpp/yaml.h>

namespace lockstep {

namespace {

Job parse(const std::string& yaml) {
  return parse_job("model: net\n" + yaml, "job.yaml");
}

TEST(JobParseTest, ASetBringsItsOwnNormalisation) {
  EXPECT_EQ(parse("").data.mean, std::vector<double>{0.1307});
  EXPECT_EQ(parse("data: {set: fashion-mnist, std: auto}").data.std, std::vector<double>{0.353});
  EXPECT_EQ(parse("data: {set: kmnist, mean: 0.5}").data.mean, std::vector<double>{0.5});
  EXPECT_TRUE(parse("data: {set: idx, root: d}").data.mean.empty());
  const Job job = parse("data: {set: idx, root: d, mean: [0.5, 0.25, 0]}");
  EXPECT_EQ(job.data.mean, (std::vector<double>{0.5, 0.25, 0}));
  EXPECT_EQ(parse_job(to_yaml(job), "again").data.mean, job.data.mean);
}

TEST(JobParseTest, NumbersMayBeWrittenAsPeopleWriteThem) {
  EXPECT_EQ(parse("train: {seed: 18446744073709551615}").train.seed,
            std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(parse("train: {optimizer: {lr: 1e-3}}").train.optimizer.lr, 1e-3);
  EXPECT_EQ(parse("data: {mean: -0.5}").data.mean, std::vector<double>{-0.5});
  EXPECT_FALSE(parse("data: {shuffle: no}").data.shuffle);
  EXPECT_EQ(parse("parallel: {bucket_bytes: 64KiB}").parallel.bucket_bytes, 65536U);
  EXPECT_EQ(parse("parallel: {graph: off}").parallel.graph, GraphUse::kOff);
}

TEST(JobParseTest, DeviceMayNameAGpu) {
  for (const char* device : {"auto", "cpu", "cuda", "cuda:0", "cuda:15", "emulated"})
    EXPECT_EQ(parse(std::string("parallel: {device: '") + device + "'}\n").parallel.device, device);
}

TEST(JobParseTest, EachOptimizerHasItsOwnDefaults) {
  EXPECT_EQ(parse("train: {optimizer: {kind: adam}}\n").train.optimizer.lr, 0.001);
  EXPECT_EQ(parse("train: {optimizer: {kind: adam}}\n").train.optimizer.weight_decay, 0);
  EXPECT_EQ(parse("train: {optimizer: {kind: adamw}}\n").train.optimizer.weight_decay, 0.01);
  EXPECT_EQ(parse("train: {optimizer: {kind: adam, lr: 0.5}}\n").train.optimizer.lr, 0.5);
  EXPECT_EQ(parse("train: {optimizer: {kind: adam, betas: [0.5, 0.75]}}\n").train.optimizer.betas,
            (std::vector<double>{0.5, 0.75}));
  EXPECT_EQ(parse("train: {schedule: {kind: cosine}}\n").train.schedule.by, "epoch");
  EXPECT_EQ(parse("train: {schedule: {kind: one_cycle}}\n").train.schedule.by, "step");
}

TEST(JobParseTest, SectionWithNothingInItKeepsItsDefaults) {
  EXPECT_EQ(parse("train:\n#  epochs: 3\n").train.epochs, Job().train.epochs);
}

TEST(JobParseTest, NothingMeansNoInitialWeights) {
  EXPECT_EQ(parse("train: {initial_weights: }").train.initial_weights, "");
  EXPECT_EQ(parse("train: {initial_weights: ''}").train.initial_weights, "");
}

TEST(JobParseTest, HelpDescribesEveryKeyOnItsOwnLineAndFitsANarrowPage) {
  const std::string help = schema_help();
  EXPECT_EQ(static_cast<std::size_t>(std::count(help.begin(), help.end(), '\n')), job_schema().size());
  const std::string narrow = schema_help(50);
  for (const JobKey& key : job_schema()) {
    EXPECT_NE(help.find(key.path + ' '), std::string::npos) << key.path;
    EXPECT_NE(narrow.find(key.path + "  "), std::string::npos) << key.path;
  }
  EXPECT_NE(help.find(" [sgd, rmsprop: 0, lars]\n"), std::string::npos)
      << "those who read train.optimizer.momentum";
  EXPECT_TRUE(schema_help(109).starts_with("model  (required)\n    the network: "));
  EXPECT_FALSE(schema_help(110).starts_with("model  (required)\n")) << "there is room for a table";
  std::istringstream lines(narrow);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 50U) << line;
}

TEST(JobParseTest, TheExampleOfEveryKeyIsReadAndIsNotItsDefault) {
  for (const JobKey& key : job_schema()) {
    Job job;
    EXPECT_TRUE(key.read(YAML::Load(example_of(key)), job)) << key.path << "=" << example_of(key);
    EXPECT_NE(key.write(job), key.write(Job())) << key.path << ": give an example with such_as()";
  }
}

TEST(JobParseTest, WordsForCompletionAreValuesThatTheKeyTakes) {
  for (const JobKey& key : job_schema()) {
    for (const std::string& word : value_words(key)) {
      Job job;
      EXPECT_TRUE(key.read(YAML::Load(word), job)) << key.path << "=" << word;
    }
  }
  using Words = std::vector<std::string>;
  EXPECT_EQ(value_words(*find_job_key("run.resume")), (Words{"auto", "never"}));
  EXPECT_EQ(value_words(*find_job_key("parallel.device")), (Words{"auto", "cpu", "cuda", "emulated"}));
  EXPECT_EQ(value_words(*find_job_key("data.shuffle")), (Words{"true", "false"}));
  EXPECT_EQ(value_words(*find_job_key("parallel.determinism")), (Words{"world", "off"}));
  EXPECT_EQ(value_words(*find_job_key("train.epochs")), Words{});
  for (const char* path : {"model", "run.dir", "run.resume", "data.leave_out"})
    EXPECT_TRUE(takes_path(*find_job_key(path))) << path;
  EXPECT_FALSE(takes_path(*find_job_key("train.epochs")));
}

TEST(JobParseTest, FactsOfAKeySayWhoReadsItAndWhatItDecides) {
  const auto fact = [](const char* key, std::string_view name) {
    for (const KeyFact& known : facts_of(*find_job_key(key)))
      if (known.name == name) return known.text;
    return std::string();
  };
  EXPECT_EQ(fact("train.schedule.step_size", "default"), "none, it must be given");
  EXPECT_EQ(fact("train.optimizer.betas", "read by"), "adam, adamw, lion, lamb (train.optimizer.kind)");
  EXPECT_EQ(fact("train.epochs", "read by"), "");
  EXPECT_NE(fact("train.seed", "weights"), fact("train.epochs", "weights"));
  EXPECT_TRUE(
      fact("parallel.strategy", "weights").starts_with("hogwild gives others than data and pipeline"));
  EXPECT_EQ(fact("parallel.timeout_seconds", "elsewhere"), "timeout");
  EXPECT_EQ(fact("inject.what", "example"), "inject.what=die");
  EXPECT_EQ(fact("data.augment", "example"),
            "'data.augment=[{crop: {padding: 4}}, {flip: {horizontal: 0.5}}]'");
}

std::string words_of(const std::string& text) {
  std::istringstream words(text);
  std::string joined;
  for (std::string word; words >> word;) joined += word + " ";
  return joined;
}

TEST(JobParseTest, TheReferencePageHasTheFactsOfEveryKey) {
  std::ifstream file(test::source_path("docs/reference/keys.md"));
  const std::string page(std::istreambuf_iterator<char>(file), {});
  for (const JobKey& key : job_schema()) {
    const std::string head = "\n### " + key.path + "\n\n<!-- output -->\n```\n", help = key_help(key, 120);
    const std::size_t found = page.find(head), begin = found + head.size();
    ASSERT_NE(found, page.npos) << key.path;
    EXPECT_EQ(words_of(page.substr(begin, page.find("\n```", begin) - begin)),
              words_of(help.substr(key.path.size())));
  }
}

TEST(TracedStepsTest, HaveBothEnds) {
  const TracedSteps steps{3, 5};
  EXPECT_EQ(steps.count(), 3);
  for (std::int64_t step = 1; step < 8; ++step) EXPECT_EQ(steps.holds(step), step >= 3 && step <= 5) << step;
  EXPECT_FALSE(TracedSteps().is_given() || TracedSteps().holds(0));
  EXPECT_TRUE((TracedSteps{1, 1}.is_given()));
}

TEST(JobParseTest, FactsOfAKeySayThatItMustStayWhereAResumeComparesIt) {
  const Job usual;
  for (const JobKey& key : job_schema()) {
    if (!belongs(key, usual)) continue;
    std::string facts;
    for (const KeyFact& fact : facts_of(key)) facts += fact.name == "weights" ? fact.text : "";
    Job changed = usual;
    ASSERT_TRUE(key.read(YAML::Load(example_of(key)), changed)) << key.path;
    EXPECT_EQ(determining_keys(changed) != determining_keys(usual),
              facts.ends_with("must stay when a run goes on"))
        << key.path << "=" << example_of(key) << ": " << facts;
  }
}

TEST(JobParseTest, KeysAreFoundBySectionAndByTheirNamesElsewhere) {
  EXPECT_EQ(keys_asked_for("learning_rate").front()->path, "train.optimizer.lr");
  EXPECT_EQ(keys_asked_for("run.keep").size(), 3U);
  EXPECT_TRUE(keys_asked_for("").empty());
  EXPECT_TRUE(keys_asked_for("train.").empty());
}

TEST(JobParseTest, LoadJobReadsTheFileAndMissesTheMissing) {
  const testing::TemporaryDirectory directory;
  const std::filesystem::path path = directory.path("job.yaml");
  std::ofstream(path) << "model: mlp\ntrain: {epochs: 2}\n";
  const Job job = load_job(path.string(), {"train.epochs=4"});
  EXPECT_EQ(job.model, "mlp");
  EXPECT_EQ(job.train.epochs, 4);
  std::filesystem::remove(path);
  EXPECT_THROW(load_job(path.string(), {}), MissingDataError);
}

TEST(JobParseTest, AFileThatIsAllEndingGivesNoName) {
  const testing::TemporaryDirectory directory;
  for (const auto& [file, name] :
       {std::pair(".yaml", Job().name), {".hidden.yaml", Job().name}, {"digits.yaml", "digits"}}) {
    std::ofstream(directory.path(file)) << "model: mlp\n";
    EXPECT_EQ(load_job(directory.path(file), {}).name, name) << file;
  }
}

TEST(BatchRemarksTest, SayWhatABatchDoesNotDoAndWhatItCosts) {
  const auto remarks = [](const std::string& yaml, bool on_gpu = false) {
    return batch_remarks(parse(yaml), 1000, on_gpu);
  };
  using Lines = std::vector<std::string>;
  EXPECT_EQ(remarks("data: {global_batch: 1000}\n"), Lines{});
  EXPECT_EQ(
      remarks("data: {global_batch: 1001}\n"),
      Lines{"data.global_batch 1,001 is more than the 1,000 training samples: every step takes all of them"});
  EXPECT_EQ(
      remarks("data: {global_batch: 2000}\ntrain: {optimizer: {lr_scaling: {rule: linear}}}\n"),
      Lines{"data.global_batch 2,000 is more than the 1,000 training samples: every step takes all of them; "
            "the learning rate is scaled for 2,000"});
  EXPECT_EQ(remarks("parallel: {grain: 24}\n"),
            Lines{"grains of 24 are padded to 32, a multiple of 16: 25 % of the arithmetic is for nothing; "
                  "parallel.grain=32 needs none"});
  EXPECT_EQ(remarks("data: {global_batch: 32}\nparallel: {grain: 24}\n"), remarks("parallel: {grain: 24}\n"));
  EXPECT_EQ(remarks("parallel: {grain: 24}\n", true), Lines{});
  EXPECT_EQ(remarks("data: {global_batch: 8}\n"),
            Lines{"batches of 8 are padded to 16, a multiple of 16: 50 % of the arithmetic is for nothing; "
                  "data.global_batch=16 needs none"});
  EXPECT_EQ(remarks("parallel: {grain: 1}\n"),
            Lines{"grains of 1 are padded to 16, a multiple of 16: 94 % of the arithmetic is for nothing; "
                  "parallel.grain=16 needs none"});
  EXPECT_EQ(
      batch_remarks(parse("data: {global_batch: 8192}\nparallel: {grain: 4081}\n"), 8192, false),
      Lines{"grains of 4081 are padded to 4096, a multiple of 16: 0.37 % of the arithmetic is for nothing; "
            "parallel.grain=4096 needs none"});
  const std::string without_cure = ", a multiple of 16: 25 % of the arithmetic is for nothing";
  for (const auto& [yaml, what] :
       {std::pair{"{global_batch: 24}\nparallel: {grain: 24}\n", "grains of 24 are padded to 32"},
        {"{global_batch: 12}\nparallel: {grain: 13}\n", "batches of 12 are padded to 16"}})
    EXPECT_EQ(remarks(std::string("data: ") + yaml), Lines{what + without_cure});
  EXPECT_EQ(batch_remarks(parse("data: {global_batch: 12}\n"), 12, false),
            Lines{"batches of 12 are padded to 16" + without_cure});
  const std::string micro_batch = "parallel: {grain: 32}\ndata: {micro_batch: ";
  EXPECT_EQ(remarks(micro_batch + "40}\n", true),
            Lines{"data.micro_batch 40: 32 samples are computed at a time, in whole grains of 32"});
  EXPECT_EQ(remarks(micro_batch + "40}\n"), Lines{});
  EXPECT_EQ(remarks(micro_batch + "64}\n", true), Lines{});
  EXPECT_EQ(remarks(micro_batch + "1000}\n", true), Lines{}) << "more than a batch of 128";
}

TEST(BatchOfARankTest, RanksMakeTheGlobalBatchThatNothingElseGives) {
  const auto batch = [](const std::string& data, int ranks) {
    return for_ranks(parse("data: {" + data + "}\n"), ranks).data.global_batch;
  };
  EXPECT_EQ(batch("global_batch: 20", 3), 20);
  EXPECT_EQ(batch("per_rank_batch: 8", 3), 24);
  EXPECT_EQ(batch("per_rank_batch: 8, global_batch: 24", 3), 24);
  EXPECT_EQ(batch("per_rank_batch: 1000000000", 1), 1'000'000'000);
  EXPECT_EQ(
      message_of<ConfigError>([&] { batch("per_rank_batch: 1000000000", 2); }),
      "job.yaml:2:24: data.per_rank_batch: 2 ranks with data.per_rank_batch 1000000000 make 2000000000, "
      "and a global batch has 1000000000 samples at most");
  EXPECT_EQ(message_of<ConfigError>([&] { batch("per_rank_batch: 8, global_batch: 20", 1); }),
            "job.yaml:2:41: data.global_batch: 20, but 1 rank with data.per_rank_batch 8 makes 8; remove "
            "data.global_batch, or set data.per_rank_batch=0 to have it count");
}

TEST(TextsOfKeysTest, AreThoseThatOneTypes) {
  auto texts = texts_of_keys(parse(
      "train: {freeze: ['a: b', conv1], groups: [{match: fc*, lr_factor: 0.5}], optimizer: {lr: 1e-5}}"));
  EXPECT_EQ(texts["model"], "net");
  EXPECT_EQ(texts["train.freeze"], "[\"a: b\", conv1]");
  EXPECT_EQ(texts["train.groups"], "[{match: fc*, lr_factor: 0.5}]");
  EXPECT_EQ(texts["train.optimizer.lr"], "1.0e-05");
  EXPECT_EQ(texts["run.trace"], "off");
  EXPECT_FALSE(texts.contains("train.optimizer.betas"));
  for (const std::string size : {"3MiB", "3KiB", "3000"})
    EXPECT_EQ(texts_of_keys(parse("parallel: {bucket_bytes: " + size + "}"))["parallel.bucket_bytes"], size);
  EXPECT_EQ(texts_of_keys(parse("run: {dir: 'a, b'}"))["run.dir"], "a, b");
}

}  // namespace

}  // namespace lockstep
