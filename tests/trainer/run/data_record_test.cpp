// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A run's data as its checkpoints remember them, and their comparison with today's.
#include "trainer/run/data_record.hpp"

#include "common/error.hpp"
#include "data/sets/leave_out.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "tests/trainer/checkpoint/checkpoint_support.hpp"

namespace lockstep {
namespace {

using Names = std::vector<std::string>;

TrainTestData small_set() {
  TrainTestData data;
  data.train.name = "idx train";
  data.train.classes = 2;
  data.train.labels = {0, 1, 0};
  data.test.name = "idx test";
  data.test.labels = {1, 0};
  data.validation.name = "idx validation";
  data.class_names = {"a", "b"};
  data.directory = "/x/../y";
  data.origin = "/y";
  return data;
}

const SetFingerprints kPrints{{"t1", "t2"}, {"e1", "e2"}, {"v1", "v2"}};

TEST(DataRecordTest, AManifestSaysWhatARunWasTrainedOn) {
  Job job;
  job.data.set = "idx";
  std::map<std::string, std::string> expected = {
      {"set", "idx"},          {"train_samples", "3"},         {"test_samples", "2"},
      {"class_names", "a\nb"}, {"train_samples_sha256", "t1"}, {"train_labels_sha256", "t2"},
      {"directory", "/y"},     {"test_samples_sha256", "e1"},  {"test_labels_sha256", "e2"}};
  TrainTestData data = small_set();
  EXPECT_EQ(describe_data(job, data, kPrints, true), expected);
  data.validation.labels = {0};
  data.files = WholeHalves{.fingerprints = {}, .train = 5, .test = 4};
  data.fit = PictureFit::kCrop;
  data.columns = "c";
  data.directory = "";
  data.train.images = AlignedBuffer<std::uint8_t>(3);
  job.data.leave_out_file = "out.txt";
  job.data.set = "pictures";
  expected.erase("directory");
  for (const auto& [key, value] : {std::pair{"set", "pictures"},
                                   {"train_samples", "5"},
                                   {"test_samples", "4"},
                                   {"test_subset", "2"},
                                   {"validation_samples", "1"},
                                   {"validation_samples_sha256", "v1"},
                                   {"validation_labels_sha256", "v2"},
                                   {"fit", "crop"},
                                   {"pictures", "stored, upright"},
                                   {"background", "light"},
                                   {"columns", "c"},
                                   {"leave_out", "out.txt"}})
    expected[key] = value;
  EXPECT_EQ(describe_data(job, data, kPrints, true), expected);
  expected["background"] = "dark";
  EXPECT_EQ(describe_data(job, data, kPrints, false), expected);
}

CheckpointFacts facts_of_set() {
  Job job;
  job.data.set = "idx";
  CheckpointFacts facts;
  facts.step = 7;
  facts.seed = 5;
  facts.data = describe_data(job, small_set(), kPrints, false);
  facts.model = {{"set", "idx"}, {"mean", "0.5"}, {"std", "[0.25, 2]"}};
  return facts;
}

TEST(DataRecordTest, ARecordIsReadAsItWasWritten) {
  CheckpointFacts facts = facts_of_set();
  DataRecord record = read_data_record(facts, "ck");
  EXPECT_EQ(record.options.set, "idx");
  EXPECT_EQ(record.options.directory, "/y");
  EXPECT_EQ(record.options.mean, std::vector<double>{0.5});
  EXPECT_EQ(record.options.std, (std::vector<double>{0.25, 2}));
  EXPECT_EQ(record.options.seed, 5U);
  EXPECT_EQ(record.options.train_samples, 0);
  EXPECT_EQ(record.options.test_samples, 0);
  EXPECT_EQ(record.train_samples, 3);
  EXPECT_EQ(record.test_samples, 2);
  EXPECT_EQ(record.validation_samples, 0);
  EXPECT_EQ(record.class_names, (Names{"a", "b"}));
  EXPECT_EQ(record.fingerprints.train, kPrints.train);
  EXPECT_EQ(record.fingerprints.test, kPrints.test);
  EXPECT_EQ(record.fingerprints.validation, Fingerprint());
  EXPECT_FALSE(record.light_background);
  facts.data.insert({{"validation_samples", "4"},
                     {"validation_samples_sha256", "v1"},
                     {"validation_labels_sha256", "v2"},
                     {"test_subset", "1"},
                     {"background", "light"},
                     {"fit", "crop"},
                     {"leave_out", "out.txt"}});
  facts.job = {{"parallel.grain", "32"}, {"data.train_samples", "2"}, {"data.leave_out", "sha256:0"}};
  record = read_data_record(facts, "ck");
  EXPECT_EQ(record.validation_samples, 4);
  EXPECT_EQ(record.fingerprints.validation, kPrints.validation);
  EXPECT_EQ(record.options.train_samples, 2);
  EXPECT_EQ(record.options.test_samples, 1);
  EXPECT_TRUE(record.light_background);
  EXPECT_EQ(record.leave_out, "out.txt");
  EXPECT_EQ(record.leave_out_contents, "sha256:0");
  EXPECT_EQ(record.options.pictures.fit, PictureFit::kCrop);
  EXPECT_EQ(recorded_job(facts, "ck").parallel.grain, 32);
  facts.model["set"] = "synthetic";
  record = read_data_record(facts, "ck");
  EXPECT_EQ(record.options.train_samples, 3);
  EXPECT_EQ(record.options.test_samples, 2);
}

TEST(DataRecordTest, ValuesThatNoSetHasAreNamed) {
  using Section = std::map<std::string, std::string> CheckpointFacts::*;
  constexpr Section kModel = &CheckpointFacts::model, kData = &CheckpointFacts::data;
  const std::tuple<Section, const char*, const char*, const char*> rows[] = {
      {kModel, "mean", "[0.5, 0.5, 0.5]", " says mean 0.5, 0.5, 0.5, std 0.25, 2, 0 and 0 samples, and "},
      {kModel, "std", "[1, 0]", " says mean 0.5, std 1, 0, 0 and 0 samples, and "},
      {kModel, "std", "-1", " says mean 0.5, std -1, 0 and 0 samples, and "},
      {kData, "test_subset", "-1", " says mean 0.5, std 0.25, 2, 0 and -1 samples, and "},
      {kData, "test_subset", "2147483648", " says mean 0.5, std 0.25, 2, 0 and 2147483648 samples, and "},
      {&CheckpointFacts::job, "parallel.grain", "0",
       "'s job.parallel.grain is '0', not a whole number from 1 to 4096"},
      {kData, "train_samples", "many", "'s data.train_samples is 'many', not a number"},
      {kModel, "mean", "[]", "'s model.mean is '[]', not a number or a list of them"}};
  for (const auto& [section, key, value, said] : rows) {
    CheckpointFacts facts = facts_of_set();
    (facts.*section)[key] = value;
    const std::string end = said[std::strlen(said) - 1] == ' ' ? "no data set is like that" : "";
    EXPECT_EQ(test::error_of<DataError>([&facts] { read_data_record(facts, "ck"); }),
              "ck: the manifest" + std::string(said) + end);
  }
  CheckpointFacts facts = facts_of_set();
  facts.model["set"] = "mnits";
  expect_error<DataError>([&] { read_data_record(facts, "ck"); },
                          {"ck: the manifest's model.set is none of this program's: unknown data set "});
  facts.model = {{"set", "synthetic"}, {"mean", "[0.25, 0.5]"}, {"std", "1"}};
  facts.data["train_samples"] = "10000000";
  EXPECT_NO_THROW(read_data_record(facts, "ck"));
  facts.data["train_samples"] = "10000001";
  expect_error<DataError>([&] { read_data_record(facts, "ck"); },
                          {" says mean 0.25, 0.5, std 1, 10000001 and 2 samples, and "});
  facts.data.erase("class_names");
  EXPECT_EQ(message_of<DataError>([&] { read_data_record(facts, "ck"); }),
            "ck: the manifest does not say data.class_names");
}

TEST(DataRecordTest, EachDifferenceFromTodaysDataIsListed) {
  const DataRecord record = read_data_record(facts_of_set(), "ck");
  TrainTestData now = small_set();
  EXPECT_EQ(data_differences(record, now, kPrints), Names());
  now.train.classes = 3;
  now.class_names = {"a", "c"};
  now.train.labels = {0, 1};
  now.test.labels = {0};
  const SetFingerprints other{{"0123456789abcdefg", "t2"}, {"e1", "x"}, {}};
  EXPECT_EQ(
      data_differences(record, now, other),
      (Names{"the number of classes (2 then, 3 now)", "the name of class 1 (b then, c now)",
             "the number of idx train samples (3 then, 2 now)",
             "idx train samples (sha256 t1 then, 0123456789abcdef now)",
             "the number of idx test samples (2 then, 1 now)", "idx test labels (sha256 e2 then, x now)"}));
  now = small_set();
  now.class_names = {"a", "b", "c"};  // told by the number of classes
  EXPECT_EQ(data_differences(record, now, kPrints), Names());
  DataRecord validated = record;
  validated.validation_samples = 4;
  validated.fingerprints.validation = {"v1", "v2"};
  now = small_set();
  EXPECT_EQ(data_differences(validated, now, kPrints), Names());
  now.validation.labels = {0};
  EXPECT_EQ(data_differences(validated, now, kPrints),
            Names{"the number of idx validation samples (4 then, 1 now)"});
  validated.validation_samples = 0;
  EXPECT_EQ(data_differences(validated, now, {kPrints.train, kPrints.test, {}}), Names());
  DataRecord unnamed = record;
  for (const Names& names : {Names(), Names{"0", "1"}}) {
    unnamed.class_names = names;
    EXPECT_EQ(data_differences(unnamed, small_set(), kPrints), Names());
  }
  DataRecord table = record;
  table.columns = R"([{"name": "a"}, {"name": "b"}])";
  now = small_set();
  now.columns = R"([{"name": "a"}, {"name": "c"}])";
  EXPECT_EQ(data_differences(table, now, kPrints), Names{"the name of column 2 (b then, c now)"});
  now.columns = "";
  EXPECT_EQ(data_differences(table, now, kPrints), Names());
}

TEST(DataRecordTest, ARunThatGoesOnLooksForItsDataWhereTheyWere) {
  const TemporaryDirectory directory;
  CheckpointState state = make_state(7);
  state.facts.data = facts_of_set().data;
  state.facts.model = facts_of_set().model;
  const std::string checkpoint = save_checkpoint(Env::posix(), directory.path(), state);
  const auto found = [](const std::string& dir, const std::string& resume, const char* set = "idx") {
    Job job;
    job.data.set = set;
    job.run.dir = dir;
    job.run.resume = resume;
    return recorded_directory(job);
  };
  const std::string run = directory.path();
  for (const std::string& resume : {run, checkpoint, run + "@step:7", run + "@last"})
    EXPECT_EQ(found("new", resume), "/y") << resume;
  EXPECT_EQ(found(directory.path(), "auto"), "/y");
  EXPECT_EQ(found(directory.path(), "never"), "");
  EXPECT_EQ(found(directory.path(), "auto", "synthetic"), "");
  EXPECT_EQ(found(directory.path("none"), "auto") + found("auto", "auto") + found("new", "none"), "");
}

TEST(DataRecordTest, ARunGoesOnWithItsOwnDataOnly) {
  Job job;
  job.data.set = "idx";
  CheckpointFacts facts = facts_of_set();
  EXPECT_NO_THROW(require_same_data(facts, job, small_set(), kPrints));
  TrainTestData now = small_set();
  now.test.labels = {0};
  EXPECT_EQ(
      message_of<DataError>([&] { require_same_data(facts, job, now, kPrints); }),
      "the checkpoint of step 7 was trained on other data than these (/y): the number of idx test samples "
      "(2 then, 1 now). Its own were in /y: bring them back, or name their place with data.root; or start "
      "afresh with run.resume=never or another run.dir");
  job.data.set = facts.model["set"] = "synthetic";
  facts.data.erase("directory");
  EXPECT_NO_THROW(require_same_data(facts, job, now, {kPrints.train, {"other", "e2"}, {}}));
  now.train.labels = {0};
  expect_error<DataError>([&] { require_same_data(facts, job, now, kPrints); },
                          {"Its own were made in memory: "});
}

TEST(DataRecordTest, AListThatSaysSomethingElseByNowIsRefused) {
  const TemporaryDirectory directory;
  DataRecord record;
  EXPECT_EQ(recorded_leave_out(record, "ck"), nullptr);
  record.leave_out = directory.path("out.txt");
  std::ofstream(record.leave_out) << "3\n5\n";
  const std::string now = record.leave_out_contents = read_leave_out(record.leave_out).contents();
  EXPECT_EQ(recorded_leave_out(record, "ck")->entries.size(), 2U);
  record.leave_out_contents = "sha256:0";
  EXPECT_EQ(message_of<DataError>([&] { recorded_leave_out(record, "ck"); }),
            fmt::format("{}: names other samples than the list that ck was trained without (data.leave_out: "
                        "sha256:0 then, {} now); bring it back as it was",
                        record.leave_out, now));
}

TEST(DataRecordTest, NamesThatARunGetsAreSaid) {
  CheckpointFacts facts = facts_of_set();
  EXPECT_EQ(names_taken(facts, small_set()), "");
  facts.data["class_names"] = "0\n1";
  EXPECT_EQ(names_taken(facts, small_set()),
            "its classes had no names, and have those of /y from here on: a, b");
  TrainTestData unnamed = small_set();
  unnamed.class_names = {"0", "1"};
  EXPECT_EQ(names_taken(facts, unnamed), "");
}

TEST(DataRecordTest, EvaluatedSamplesAreThoseOfThePartThatWasAskedFor) {
  CheckpointFacts facts;
  EXPECT_EQ(evaluated_test_samples(facts), -1);
  facts.data["test_samples"] = "7";
  EXPECT_EQ(evaluated_test_samples(facts), 7);
  facts.data["test_subset"] = "3";
  EXPECT_EQ(evaluated_test_samples(facts), 3);
  facts.data["test_subset"] = "x";
  EXPECT_EQ(evaluated_test_samples(facts), -1);
}

TEST(DataRecordTest, ABackgroundIsThatOfMostImages) {
  Job job;
  job.data.set = "idx";
  const auto is_light = [&](const std::vector<int>& greys) {
    Dataset train;
    train.shape = ImageShape{1, 4, 4};
    train.labels.assign(greys.size(), 0);
    train.images = AlignedBuffer<std::uint8_t>(16 * greys.size());
    for (std::size_t i = 0; i < train.images.size(); ++i)
      train.images.span()[i] = static_cast<std::uint8_t>(greys[i / 16]);
    return has_light_background(job, train);
  };
  EXPECT_TRUE(is_light({250, 5, 250}));
  EXPECT_FALSE(is_light({250, 5}));
  std::vector<int> greys(1001, 5);
  std::fill_n(greys.begin(), 500, 250);
  greys.back() = 250;
  EXPECT_FALSE(is_light(greys)) << "half of the first thousand";
  EXPECT_FALSE(has_light_background(job, Dataset()));
  job.data.set = "pictures";
  EXPECT_FALSE(is_light({250}));
}

}  // namespace
}  // namespace lockstep
