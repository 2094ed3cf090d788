// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Facts that a run writes down and knows again: events, positions, classes, its data, and its directory.
#include "comm/thread/thread_ranks.hpp"
#include "common/error.hpp"
#include "models/layer.hpp"
#include "models/network.hpp"
#include "tests/common/memory_env.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "tests/trainer/checkpoint/checkpoint_support.hpp"
#include "trainer/checkpoint/directory.hpp"
#include "trainer/checkpoint/rank_file.hpp"
#include "trainer/config/job_schema.hpp"
#include "trainer/run/class_order.hpp"
#include "trainer/run/data_record.hpp"
#include "trainer/run/progress.hpp"
#include "trainer/run/run_directory.hpp"
#include "trainer/run/run_events.hpp"
#include "trainer/run/run_state.hpp"
#include "trainer/run/saved_model.hpp"
#include "trainer/run/step_trace.hpp"
#include "trainer/run/stop_signal.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using Names = std::vector<std::string>;

// Lines of metrics.jsonl.

WideSum units_of(double loss) {
  return {{static_cast<std::int64_t>(loss * kLossScale)}};
}

RunState state_in_epoch_3() {
  RunState state;
  state.epoch = 2;
  state.step = 30;
  state.epoch_samples = 8;
  state.epoch_correct = 6;
  state.epoch_loss_units = units_of(16);
  return state;
}

const Evaluation kTested{.samples = 10, .correct = 9, .not_finite = 0, .loss = 0.5};
const Evaluation kValidated{.samples = 4, .correct = 1, .not_finite = 0, .loss = 1.5};

TEST(RunEventsTest, AStepHasWhatWasMeasured) {
  const RunState state = state_in_epoch_3();
  StepTotals totals;
  totals.samples = 4;
  totals.loss_units = units_of(10);
  LoggedStep step{.state = state, .totals = totals, .learning_rate = 0.5};
  EXPECT_EQ(step_event(step),
            Json::parse(R"({"event": "step", "epoch": 3, "step": 30, "loss": 2.5, "learning_rate": 0.5})"));
  step.answers = {2, 8, 6, {}};
  step.gradient_norm = 1.5;
  step.samples_per_second = 7;
  EXPECT_EQ(step_event(step),
            Json::parse(R"({"event": "step", "epoch": 3, "step": 30, "loss": 2.5, "learning_rate": 0.5,
                "train_accuracy": 0.75, "accuracy_steps": 2, "gradient_norm": 1.5, "samples_per_second": 7})"));
  EXPECT_EQ(loss_event(state, {3, 6, 0, units_of(12)}, 0.25),
            Json::parse(R"({"event": "loss", "epoch": 3, "step": 30, "steps": 3, "mean_loss": 2,
                "learning_rate": 0.25})"));
}

TEST(RunEventsTest, EvaluationsHaveTheirNames) {
  const RunState state = state_in_epoch_3();
  Evaluations evaluations{.test = kTested, .validation = kValidated};
  evaluations.averages = {
      {"ema", EvaluatedPart::kTest, {.samples = 10, .correct = 8, .not_finite = 0, .loss = 0.25}},
      {"swa", EvaluatedPart::kValidation, {.samples = 4, .correct = 3, .not_finite = 0, .loss = 0.75}}};
  EXPECT_EQ(evaluation_event(state, evaluations),
            Json::parse(R"({"event": "evaluation", "epoch": 3, "step": 30,
                "validation_loss": 1.5, "validation_accuracy": 0.25, "validation_samples": 4,
                "test_loss": 0.5, "test_accuracy": 0.9, "test_samples": 10,
                "ema_test_loss": 0.25, "ema_test_accuracy": 0.8,
                "swa_validation_loss": 0.75, "swa_validation_accuracy": 0.75})"));
  EXPECT_EQ(epoch_event({.state = state,
                         .evaluations = {.test = kTested, .validation = {}},
                         .learning_rate = 0.125,
                         .rounded_to_zero = 0.5}),
            Json::parse(R"({"event": "epoch", "epoch": 3, "step": 30, "train_loss": 2, "train_accuracy": 0.75,
                "train_samples": 8, "train_seconds": 0, "learning_rate": 0.125,
                "test_loss": 0.5, "test_accuracy": 0.9, "test_samples": 10, "rounded_to_zero": 0.5})"));
  EXPECT_EQ(end_event({.state = state,
                       .evaluations = {.test = kTested, .validation = {}},
                       .sha256 = "ab",
                       .published = {.same = false, .line = ""},
                       .seconds = 4,
                       .stopped_early = true,
                       .strategy = "pipeline",
                       .numbers = {{"bubble", 0.5}}}),
            Json::parse(R"({"event": "end", "step": 30, "seconds": 4,
                "test_loss": 0.5, "test_accuracy": 0.9, "test_samples": 10, "stopped_early": true,
                "pipeline": {"bubble": 0.5}, "weights_sha256": "ab", "published_hash": false})"));
}

TEST(RunEventsTest, AHundredNamesOfUnusedTensorsAreListed) {
  Json start = Json::object();
  add_initial_weights(start, {});
  EXPECT_EQ(start, Json::object());
  StartingWeights initial{.source = "f", .lines = {}, .taken = 2, .sha256 = "cd"};
  add_initial_weights(start, initial);
  EXPECT_EQ(start, Json::parse(R"({"initial_weights": "f", "initial_tensors": 2, "initial_sha256": "cd"})"));
  initial.fresh = {"new"};
  for (int i = 0; i < 101; ++i) initial.left_over.push_back(std::to_string(i));
  add_initial_weights(start, initial);
  EXPECT_EQ(start["new_tensors"], Json::array({"new"}));
  EXPECT_EQ(start["unused_tensors"].size(), 100U);
  EXPECT_EQ(start["unused_tensors"][99], "99");
}

TEST(RunEventsTest, FieldsOfAnEpochGoByTheirImportance) {
  const RunState state = state_in_epoch_3();
  const Evaluations evaluations{.test = kTested, .validation = kValidated};
  const auto fields = epoch_fields({.state = state, .evaluations = evaluations}, 10, "ema 97.00 %", 1,
                                   std::numeric_limits<double>::infinity());
  EXPECT_EQ(join(fields),
            "epoch  3/10  train loss 2.0000  validation loss 1.5000  accuracy 25.00 %  ema 97.00 %  1.0 s "
            "(0 samples/s)");
  std::vector<int> importance;
  for (const LineField& field : fields) importance.push_back(field.importance);
  EXPECT_EQ(importance, (std::vector<int>{9, 2, 3, 8, 7, 4, 1}));
}

// Positions of a run.

TEST(RunStateTest, SpacingOfLogsGrowsWithTheStepsTaken) {
  Job job;
  for (const auto& [taken, spacing] : std::vector<std::pair<std::int64_t, std::int64_t>>{{0, 1},
                                                                                         {99, 1},
                                                                                         {100, 2},
                                                                                         {199, 2},
                                                                                         {200, 5},
                                                                                         {499, 5},
                                                                                         {500, 10},
                                                                                         {999, 10},
                                                                                         {1000, 20},
                                                                                         {1999, 20},
                                                                                         {2000, 50},
                                                                                         {4999, 50},
                                                                                         {5000, 100}})
    EXPECT_EQ(log_spacing(job, taken), spacing) << taken;
  for (const std::int64_t spacing : {0, 7}) {
    job.run.log_every_steps = spacing;
    EXPECT_EQ(log_spacing(job, 5000), spacing);
  }
}

TEST(RunStateTest, TheShorterLimitCounts) {
  Job job;
  job.train.epochs = 3;
  for (const auto& [most, steps] : {std::pair{0, 12}, {5, 5}, {12, 12}, {20, 12}}) {
    job.train.max_steps = most;
    EXPECT_EQ(steps_asked(job, 4), steps) << most;
  }
}

TEST(RunStateTest, StepsAddUpUntilTheNextEpoch) {
  RunState state;
  state.test_accuracy = state.validation_accuracy = 0.5;
  state.add({});
  EXPECT_EQ(state.test_accuracy, 0.5);
  state.add({2, 32, 5, units_of(0.25)});
  state.add({1, 8, 4, units_of(0.5)});
  const LossWindow both{3, 40, 9, units_of(0.75)};
  EXPECT_EQ(state.step, 3);
  EXPECT_EQ(state.epoch_so_far(), both);
  EXPECT_EQ(state.unprinted, both);
  EXPECT_EQ(state.unlogged, both);
  EXPECT_EQ(state.epoch_loss(), 0.75);
  EXPECT_EQ(state.accuracy(), std::nullopt);
  state.start_next_epoch();
  RunState next;
  next.step = 3;
  next.epoch = 1;
  EXPECT_EQ(state, next);
  CheckpointPatience patience;
  for (const auto& [accuracy, best, without] : std::vector<std::tuple<double, double, int>>{
           {0, 0, 0}, {0.5, 0.5, 0}, {0.5, 0.5, 1}, {0.25, 0.5, 2}, {0.75, 0.75, 0}}) {
    patience.count(accuracy);
    EXPECT_EQ(patience, (CheckpointPatience{best, without, 0}));
  }
}

/// Three steps of 16, 16 and 8 samples an epoch.
TEST(RunStateTest, APositionIsOneOfTheJob) {
  const DistributedSampler sampler({.samples = 40, .global_batch = 16, .grain = 8});
  const auto at = [](std::int64_t epoch, std::int64_t step_in_epoch, std::int64_t samples) {
    CheckpointFacts facts;
    facts.epoch = epoch;
    facts.step_in_epoch = step_in_epoch;
    facts.step = 3 * epoch + step_in_epoch;
    facts.epoch_samples = facts.epoch_correct = samples;
    facts.unprinted = facts.unlogged = LossWindow{step_in_epoch, samples, samples, {}};
    return facts;
  };
  for (const auto& [steps, samples] : {std::pair{0, 0}, {1, 16}, {2, 32}, {3, 40}})
    EXPECT_NO_THROW(require_possible_position(at(1, steps, samples), sampler)) << steps;
  const std::function<void(CheckpointFacts&)> changes[] = {
      [](auto& facts) { facts.step_in_epoch = 4, facts.step = 7, facts.epoch_samples = 40; },
      [](auto& facts) { facts.step += 1; },
      [](auto& facts) { facts.step += 3; },
      [](auto& facts) { facts.step = INT64_MAX; },
      [](auto& facts) { facts.epoch = INT64_MAX; },
      [](auto& facts) { facts.step_in_epoch = INT64_MAX; },
      [](auto& facts) { facts.epoch = 2; },
      [](auto& facts) { facts.epoch = -1, facts.step = -1; },
      [](auto& facts) { facts.epoch_samples = 33; },
      [](auto& facts) { facts.epoch_correct = 33; },
      [](auto& facts) { facts.epoch_correct = -1, facts.unlogged.correct = -1; },
      [](auto& facts) { facts.epoch_loss_sum = std::numeric_limits<double>::infinity(); },
      [](auto& facts) { facts.unprinted->steps = 3; },
      [](auto& facts) { facts.unprinted->samples = 33; },
      [](auto& facts) { facts.unlogged.steps = 3; },
      [](auto& facts) { facts.unlogged.samples = 33; },
      [](auto& facts) { facts.unlogged.correct = 33; }};
  for (const auto& change : changes) {
    CheckpointFacts facts = at(1, 2, 32);
    change(facts);
    EXPECT_THROW(require_possible_position(facts, sampler), DataError) << &change - changes;
  }
  CheckpointFacts facts = at(1, 2, 32);
  facts.epoch_samples = 31;
  EXPECT_EQ(
      message_of<DataError>([&] { require_possible_position(facts, sampler); }),
      "the checkpoint of step 5 is after 1 epoch, 2 steps and 31 samples, where a run with 3 steps an "
      "epoch in batches of 16 cannot be: the data set has changed its size, or the manifest is damaged; "
      "bring the data back as they were, or start afresh with run.resume=never or another run.dir");
}

// Classes of a set and of a model.

TEST(ClassOrderTest, ASetIsNumberedAsTheModelIs) {
  const auto numbered = [](const Names& classes, Names names, TrainTestData data = {}) {
    data.class_names = std::move(names);
    data.origin = "sets/a";
    data.train.classes = 2;
    data.train.labels = {0, 1, 1};
    const std::string said = number_as(classes, data);
    return std::pair(said, data.train.labels);
  };
  const std::vector<std::int32_t> same = {0, 1, 1}, turned = {1, 0, 0};
  const Names set = {"dog", "cat"};
  EXPECT_EQ(numbered({}, set), std::pair(std::string(), same));
  EXPECT_EQ(numbered({"dog", "cat"}, set), std::pair(std::string(), same));
  EXPECT_EQ(numbered({"cat", "dog"}, set), std::pair(std::string("classes matched by name"), turned));
  EXPECT_EQ(numbered({"cat", "dog", "eel"}, set),
            std::pair(std::string("classes matched by name, no samples of eel"), turned));
  const std::pair by_number(std::string("classes go by number, since one side has no names for them"), same);
  EXPECT_EQ(numbered({"0", "1"}, set), by_number);
  EXPECT_EQ(numbered(set, {"0", "1"}), by_number);
  EXPECT_EQ(message_of<UsageError>([&] {
              numbered({"cat", "cow"}, set);
            }),
            "sets/a: the model does not know dog, only cat, cow; rename the classes that it knows, and leave "
            "others out");
  TrainTestData several;
  several.test.label_sets = {1, 0};
  EXPECT_EQ(message_of<UsageError>([&] {
              numbered({"cat", "dog", "eel"}, set, std::move(several));
            }),
            "sets/a: its samples have several labels, none of which says eel; label them, too");
}

/// Three classes of two features: fc.weight, then fc.bias.
TEST(ClassOrderTest, RowsOfTheLastLayerFollowTheirNames) {
  const Network network =
      Network::parse("layers:\n  - linear: {out: classes}\n", "m.yaml", ImageShape{2, 1, 1}, 3);
  const std::vector<float> before = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  const auto ordered = [&](const Names& known, const Names& classes) {
    std::vector<float> weights = before;
    const std::string said = order_last_layer(network, weights, known, classes);
    return std::pair(said, weights);
  };
  const Names abc = {"a", "b", "c"};
  for (const auto& [known, classes] : std::vector<std::pair<Names, Names>>{
           {abc, abc}, {abc, {"b", "a"}}, {abc, {"0", "1", "2"}}, {{"0", "1", "2"}, abc}})
    EXPECT_EQ(ordered(known, classes), std::pair(std::string(), before));
  EXPECT_EQ(ordered(abc, {"c", "a", "b"}),
            std::pair(std::string("the last layer's rows are put in the order of the set's classes, by name"),
                      std::vector<float>{5, 6, 1, 2, 3, 4, 9, 7, 8}));
  EXPECT_EQ(
      ordered(abc, {"c", "a", "x"}),
      std::pair(std::string("note: they answer for a, b, c, and the set's classes are c, a, x; the last "
                            "layer is taken as it is"),
                before));
}

// The record of a run's data.

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
  EXPECT_EQ(record.fingerprints.train.samples, "t1");
  EXPECT_EQ(record.fingerprints.train.labels, "t2");
  EXPECT_EQ(record.fingerprints.test.samples, "e1");
  EXPECT_EQ(record.fingerprints.test.labels, "e2");
  EXPECT_EQ(record.fingerprints.validation.samples, "");
  EXPECT_FALSE(record.light_background || record.was_read_as_before);
  facts.data.insert({{"validation_samples", "4"},
                     {"validation_samples_sha256", "v1"},
                     {"validation_labels_sha256", "v2"},
                     {"test_subset", "1"},
                     {"background", "light"},
                     {"leave_out", "out.txt"}});
  facts.job = {{"parallel.grain", "32"}, {"data.train_samples", "2"}, {"data.leave_out", "sha256:0"}};
  record = read_data_record(facts, "ck");
  EXPECT_EQ(record.validation_samples, 4);
  EXPECT_EQ(record.fingerprints.validation.samples, "v1");
  EXPECT_EQ(record.fingerprints.validation.labels, "v2");
  EXPECT_EQ(record.options.train_samples, 2);
  EXPECT_EQ(record.options.test_samples, 1);
  EXPECT_TRUE(record.light_background);
  EXPECT_EQ(record.leave_out, "out.txt");
  EXPECT_EQ(record.leave_out_contents, "sha256:0");
  EXPECT_EQ(recorded_job(facts, "ck").parallel.grain, 32);
  facts.model["set"] = "synthetic";
  record = read_data_record(facts, "ck");
  EXPECT_EQ(record.options.train_samples, 3);
  EXPECT_EQ(record.options.test_samples, 2);
  facts.model["set"] = "pictures";
  EXPECT_TRUE(read_data_record(facts, "ck").was_read_as_before);
}

TEST(DataRecordTest, ValuesThatNoSetHasAreNamed) {
  const auto refusal_of = [](const std::function<void(CheckpointFacts&)>& change) {
    CheckpointFacts facts = facts_of_set();
    change(facts);
    return message_of<DataError>([&] { read_data_record(facts, "ck"); });
  };
  const std::string normal = "ck: the manifest says mean 0.5, std ", none = ", and no data set is like that";
  EXPECT_EQ(refusal_of([](auto& facts) { facts.model["mean"] = "[0.5, 0.5, 0.5]"; }),
            "ck: the manifest says mean 0.5, 0.5, 0.5, std 0.25, 2, 0 and 0 samples" + none);
  EXPECT_EQ(refusal_of([](auto& facts) { facts.model["std"] = "[1, 0]"; }),
            normal + "1, 0, 0 and 0 samples" + none);
  EXPECT_EQ(refusal_of([](auto& facts) { facts.model["std"] = "-1"; }),
            normal + "-1, 0 and 0 samples" + none);
  EXPECT_EQ(refusal_of([](auto& facts) { facts.data["test_subset"] = "-1"; }),
            normal + "0.25, 2, 0 and -1 samples" + none);
  EXPECT_EQ(refusal_of([](auto& facts) {
              facts.model["set"] = "synthetic";
              facts.data["train_samples"] = "10000001";
            }),
            normal + "0.25, 2, 10000001 and 2 samples" + none);
  CheckpointFacts most = facts_of_set();
  most.model["set"] = "synthetic";
  most.data["train_samples"] = "10000000";
  EXPECT_NO_THROW(read_data_record(most, "ck"));
  EXPECT_EQ(refusal_of([](auto& facts) { facts.data["train_samples"] = "many"; }),
            "ck: the manifest's data.train_samples is 'many', not a number");
  EXPECT_EQ(refusal_of([](auto& facts) { facts.model["mean"] = "[]"; }),
            "ck: the manifest's model.mean is '[]', not a number or a list of them");
  EXPECT_EQ(refusal_of([](auto& facts) { facts.data.erase("class_names"); }),
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
  unnamed.class_names = {"0", "1"};
  EXPECT_EQ(data_differences(unnamed, small_set(), kPrints), Names());
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
  EXPECT_NE(message_of<DataError>([&] {
              require_same_data(facts, job, now, kPrints);
            }).find("Its own were made in memory: "),
            std::string::npos);
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
  EXPECT_FALSE(has_light_background(job, Dataset()));
  job.data.set = "pictures";
  EXPECT_FALSE(is_light({250}));
}

// A network that comes back from a checkpoint.

TEST(SavedModelTest, ACheckpointIsANetworkAgain) {
  const TemporaryDirectory directory;
  CheckpointState state = make_state(7);
  state.facts.data = facts_of_set().data;
  state.facts.gradient_units.exponents = {-40, 77};
  state.optimizer.clear();
  state.facts.model = {
      {"set", "idx"},    {"mean", "0.5"}, {"std", "0.25"}, {"classes", "3"},
      {"channels", "2"}, {"height", "1"}, {"width", "1"},  {"yaml", "layers:\n  - linear: {out: classes}\n"}};
  state.facts.job = {{"parallel.grain", "32"}, {"train.loss", "mse"}};
  state.facts.parameters = {{"fc.weight", {3, 2}}, {"fc.bias", {3}}};
  state.weights = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  const auto load = [&] {
    fs::remove_all(directory.path("checkpoints"));
    return load_saved_model(save_checkpoint(Env::posix(), directory.path(), state));
  };
  const SavedModel saved = load();
  EXPECT_EQ(saved.checkpoint, directory.path("checkpoints/step-00000007"));
  EXPECT_EQ(saved.network.classes(), 3);
  EXPECT_EQ(saved.grain, 32);
  EXPECT_EQ(saved.loss, LossKind::kMeanSquares);
  EXPECT_EQ(saved.data.class_names, (Names{"a", "b"}));
  EXPECT_TRUE(std::ranges::equal(std::span(saved.weights.data(), saved.weights.size()), state.weights));
  const auto refusal_of = [&](const std::string& key, const std::string& value) {
    const std::string before = std::exchange(state.facts.model[key], value);
    const std::string said = message_of<DataError>(load);
    state.facts.model[key] = before;
    return said.substr(std::min(said.size(), directory.path("checkpoints/step-00000007").size()));
  };
  EXPECT_EQ(refusal_of("mean", "[1, 2, 3]"), ": the manifest's model.mean has 3 numbers for 2 channels");
  EXPECT_EQ(refusal_of("std", "[1, 2, 3]"), ": the manifest's model.std has 3 numbers for 2 channels");
  EXPECT_EQ(refusal_of("classes", "4"), ": 9 weights, but its model has 12");
  EXPECT_EQ(refusal_of("classes", "0"), ": the manifest's model.classes is 0, not 1 or more");
  EXPECT_EQ(refusal_of("width", "-1"), ": the manifest's model.width is -1, not 1 or more");
  EXPECT_TRUE(refusal_of("yaml", "layers:\n  - lin: 3\n").ends_with("; the manifest's model is damaged"));
}

// The directory that a run takes.

/// Notes which directories are opened; `on_open_` may refuse them.
class ChosenDirectoryTest : public ::testing::Test {
 protected:
  ChosenDirectoryTest() {
    job_ = parse_job("model: linear\ndata: {set: synthetic}\nrun: {report: false}\n", "digits.yaml");
    job_.name = "digits";
    env_.make_directory("runs");
  }
  void write(const std::string& path, const std::string& text) {
    for (std::size_t at = 0; (at = path.find('/', at + 1)) != path.npos;)
      env_.make_directory(path.substr(0, at));
    env_.remove_file(path);
    write_synced(env_, path, std::as_bytes(std::span(text)));
  }
  /// A run of the job, begun or finished.
  void write_run(const std::string& name, bool finished = false, const std::string& more = "") {
    write("runs/" + name + "/job.yaml", first_line_of_job(job_) + "\n" + to_yaml(job_) + more);
    write("runs/" + name + "/metrics.jsonl",
          finished ? "{\"event\":\"end\",\"step\":3}\n" : "{\"event\":\"step\",\"step\":3}\n");
  }
  std::string choose() {
    opened_.clear();
    return choose_run_directory(env_, job_, [&](const std::string& path, bool wait) {
      opened_.push_back(path + (wait ? " wait" : ""));
      if (on_open_) on_open_(path);
    });
  }

  MemoryEnv env_;
  Job job_;
  std::function<void(const std::string&)> on_open_;
  Names opened_;
};

TEST_F(ChosenDirectoryTest, TheFirstOfAJobHasItsName) {
  for (const char* other : {"digits-02", "digits-old", "digits-1", "digitsx", "digit"}) write_run(other);
  EXPECT_EQ(choose(), "this run: runs/digits (the first of this job)");
  EXPECT_EQ(opened_, Names{"runs/digits"});
}

TEST_F(ChosenDirectoryTest, AnUnfinishedRunGoesOn) {
  write_run("digits");
  EXPECT_EQ(choose(), "going on with the unfinished run: runs/digits");
  EXPECT_EQ(opened_, Names{"runs/digits wait"});
  write_run("digits-10", true);
  EXPECT_EQ(choose(), "runs/digits-10 is finished; going on with the unfinished run: runs/digits");
  EXPECT_EQ(opened_, Names{"runs/digits"});
  write_run("digits", true);
  EXPECT_EQ(choose(), "runs/digits-10 is finished; this run: runs/digits-11");
}

TEST_F(ChosenDirectoryTest, AFinishedRunIsPassedOverUnlessItsPageIsMissing) {
  write_run("digits", true);
  EXPECT_FALSE(lacks_page(env_, "runs/digits", job_));
  EXPECT_EQ(choose(), "runs/digits is finished; this run: runs/digits-2");
  env_.make_directory("runs/digits/checkpoints");
  env_.make_directory("runs/digits/checkpoints/step-00000003");
  EXPECT_EQ(
      choose(),
      "runs/digits is finished; this run: runs/digits-2\nit starts anew; from the weights of runs/digits: "
      "train.initial_weights=runs/digits");
  job_.run.report = true;
  EXPECT_TRUE(lacks_page(env_, "runs/digits", job_));
  EXPECT_EQ(choose(), "going on with the unfinished run: runs/digits");
  write("runs/digits/report.html", "");
  EXPECT_FALSE(lacks_page(env_, "runs/digits", job_));
  job_.run.resume = "never";
  EXPECT_EQ(choose(), "run.resume is never; this run: runs/digits-2");
  EXPECT_EQ(opened_, Names{"runs/digits-2"});
  job_.run.resume = "old";
  EXPECT_EQ(choose(), "run.resume is old; this run: runs/digits-2");
  write_run("digits-3");
  EXPECT_FALSE(lacks_page(env_, "runs/digits-3", job_));
}

TEST_F(ChosenDirectoryTest, WhatIsNoRunOfTheJobIsLeftAlone) {
  write("runs/digits/lock", "");
  write("runs/digits/log/rank-0.log", "");
  EXPECT_EQ(choose(), "this run: runs/digits");
  write("runs/digits/notes", "");
  EXPECT_EQ(choose(), "runs/digits is not a run directory; this run: runs/digits-2");
  write_run("digits", false, "data: [\n");
  EXPECT_TRUE(choose().starts_with("runs/digits has a job.yaml that cannot be read (")) << choose();
  job_.train.seed = 5;
  write_run("digits");
  job_.train.seed = 6;
  EXPECT_TRUE(choose().starts_with("runs/digits differs in train.seed")) << choose();
  write("runs/digits/job.yaml", "# job 'digits-x'\n");
  EXPECT_EQ(choose(), "this run: runs/digits-2 (the first of this job)") << "another job's";
}

TEST_F(ChosenDirectoryTest, WhatCannotBeOpenedIsPassedOver) {
  write_run("digits");
  const auto refuse = [&](auto error) {
    on_open_ = [error](const std::string& path) {
      if (path == "runs/digits") throw error;
    };
    return choose();
  };
  EXPECT_EQ(refuse(RunInUseError("x")), "runs/digits is in use by another job; this run: runs/digits-2");
  EXPECT_EQ(refuse(ConfigError("x")), "runs/digits cannot be resumed (x); this run: runs/digits-2");
  EXPECT_EQ(refuse(DataError("x")), "runs/digits cannot be resumed (x); this run: runs/digits-2");
  EXPECT_THROW(refuse(IoError("x")), IoError);
}

TEST_F(ChosenDirectoryTest, ANewDirectoryIsOneThatNoOtherStartTakesMeanwhile) {
  on_open_ = [&](const std::string& path) {
    if (path == "runs/digits") throw RunInUseError("x");
    if (path == "runs/digits-2") write_run("digits-2");
  };
  EXPECT_EQ(choose(), "this run: runs/digits-3 (the first of this job)");
  EXPECT_EQ(opened_, (Names{"runs/digits", "runs/digits-2", "runs/digits-3"}));
}

/// A run directory on the disk.
class RunDirectoryFilesTest : public ::testing::Test {
 protected:
  RunDirectoryFilesTest() {
    job_.run.dir = directory_.path("run");
    fs::create_directory(job_.run.dir);
  }
  void write(const std::string& name, const std::string& text = "x") const {
    fs::create_directories(fs::path(job_.run.dir + "/" + name).parent_path());
    std::ofstream(job_.run.dir + "/" + name) << text;
  }
  std::set<std::string> names(const std::string& folder = "") const {
    std::set<std::string> found;
    for (const auto& entry : fs::directory_iterator(job_.run.dir + folder))
      found.insert(entry.path().filename());
    return found;
  }
  std::string refusal() const {
    return test::error_of<ConfigError>([&] { RunDirectory(Env::posix(), job_, false); });
  }
  /// Opens it at a step. @returns standard error
  std::string open(std::int64_t step) const {
    ::testing::internal::CaptureStderr();
    RunDirectory directory(Env::posix(), job_, false);
    std::move(directory).open(step, true, {});
    return ::testing::internal::GetCapturedStderr();
  }

  TemporaryDirectory directory_;
  Job job_;
};

TEST_F(RunDirectoryFilesTest, ADirectoryOfOthersIsRefused) {
  for (const char* name : {".hidden", "model.yaml", "other.yml", "lost+found"}) write(name);
  EXPECT_EQ(refusal(), "");
  fs::remove(job_.run.dir + "/lock");
  const std::string holds = "run.dir: " + job_.run.dir + " holds ",
                    own = "; a run needs its own directory: choose another name, or an empty directory";
  for (const char* name : {"a", "b", "c"}) write(name);
  EXPECT_EQ(refusal(), holds + "other files and no run (a, b, c)" + own);
  write("d");
  EXPECT_EQ(refusal(), holds + "other files and no run (a, b, c, ...)" + own);
  write("metrics.jsonl", "");
  EXPECT_NE(refusal(), "");
  write("job.yaml");
  EXPECT_EQ(refusal(), "") << "a copy of a run without its lock";
  fs::remove(job_.run.dir + "/lock");
  fs::remove(job_.run.dir + "/metrics.jsonl");
  EXPECT_EQ(refusal(), holds +
                           "a job.yaml that no run has written, and a run's own job.yaml would take its "
                           "place; choose another name, such as run.dir=" +
                           job_.run.dir + "/run, or give that file another name");
  write("trail.bin");
  EXPECT_EQ(refusal(), "");
}

TEST_F(RunDirectoryFilesTest, ARunThatBeginsAnewMovesAllOfTheOneBefore) {
  const std::set<std::string> moved = {
      "checkpoints", "metrics.jsonl", "trail.bin",   kRankFile,  kDoubtFile,
      "status.json", "job.yaml",      "report.html", kTraceFile, "events.out.tfevents.1.lockstep"};
  for (const std::string& name : moved)
    if (name != "checkpoints") write(name, name == "metrics.jsonl" ? "" : "x");
  write("notes");
  save_checkpoint(Env::posix(), job_.run.dir, make_state(1));
  fs::create_directory(job_.run.dir + "/previous-1");
  job_.run.resume = "never";
  EXPECT_EQ(open(0), "");
  EXPECT_EQ(names("/previous-2"), moved);
  EXPECT_EQ(names(), (std::set<std::string>{"job.yaml", "lock", "log", "metrics.jsonl", "notes", "previous-1",
                                            "previous-2", "status.json"}));
}

TEST_F(RunDirectoryFilesTest, ARunThatSavedNothingIsBegunOver) {
  for (const char* name :
       {"metrics.jsonl", "trail.bin", kRankFile, "events.out.tfevents.1.lockstep", "notes"})
    write(name, "");
  write("lock", "");
  EXPECT_EQ(open(0), "");
  EXPECT_EQ(names(),
            (std::set<std::string>{"job.yaml", "lock", "log", "metrics.jsonl", "notes", "status.json"}));
}

TEST_F(RunDirectoryFilesTest, LaterCheckpointsAreMovedAsideWithTheirMetrics) {
  for (const std::int64_t step : {1, 2, 3}) save_checkpoint(Env::posix(), job_.run.dir, make_state(step));
  const std::string lines = "{\"event\":\"step\",\"step\":1}\n{\"event\":\"step\",\"step\":2}\n";
  write("metrics.jsonl", lines);
  write(kTrailFile);
  const std::string aside = job_.run.dir + "/previous-1/checkpoints";
  EXPECT_EQ(open(1), "lockstep: " + aside + ": the checkpoints after step 1 were moved there\n");
  EXPECT_EQ(names("/previous-1"), (std::set<std::string>{"checkpoints", "metrics.jsonl", kTrailFile}));
  EXPECT_EQ(names("/previous-1/checkpoints"), (std::set<std::string>{"step-00000002", "step-00000003"}));
  EXPECT_EQ(names("/checkpoints"), std::set<std::string>{"step-00000001"});
  std::ifstream copy(job_.run.dir + "/previous-1/metrics.jsonl"), cut(job_.run.dir + "/metrics.jsonl");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(copy), {}), lines);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(cut), {}), lines.substr(0, lines.size() / 2));
}

TEST_F(RunDirectoryFilesTest, CheckpointsStayAsTheJobSays) {
  job_.run.keep = {.last = 5, .every_steps = 7, .best = false};
  const KeepPolicy policy = keep_policy(job_);
  EXPECT_EQ(policy.last, 5);
  EXPECT_EQ(policy.every_steps, 7);
  EXPECT_FALSE(policy.best);
}

/// Rank 0's word, to the launcher that asks for it.
TEST_F(RunDirectoryFilesTest, ALauncherIsToldWhereARunIs) {
  const std::string file = directory_.path("told");
  const auto tell = [&](const std::string& run) {
    return test::error_of<UsageError>(
        [&] { run_thread_ranks(1, [&](Communicator& comm) { tell_run_directory(comm, run); }); });
  };
  const auto text = [&] {
    std::ifstream stream(file);
    return std::string(std::istreambuf_iterator<char>(stream), {});
  };
  unsetenv("LOCKSTEP_RUN_FILE");
  EXPECT_EQ(tell("runs/a"), "");
  setenv("LOCKSTEP_RUN_FILE", "", 1);
  EXPECT_EQ(tell("runs/a"), "");
  setenv("LOCKSTEP_RUN_FILE", file.c_str(), 1);
  for (const char* run : {"runs/a", "runs/b"}) {
    EXPECT_EQ(tell(run), "");
    EXPECT_EQ(text(), run + std::string("\n"));
  }
  std::ofstream(file, std::ios::trunc).close();
  EXPECT_EQ(tell("runs/c"), "");
  for (const char* other : {"runs/a\nruns/b\n", "runs/a"}) {
    std::ofstream(file) << other;
    EXPECT_NE(tell("runs/a").find("LOCKSTEP_RUN_FILE: " + file +
                                  ": is there, and has other content than a run's line; name a new file"),
              std::string::npos);
    EXPECT_EQ(text(), other);
  }
  unsetenv("LOCKSTEP_RUN_FILE");
}

TEST(StopSignalTest, SignalsHaveNames) {
  for (const auto& [signal, name] : {std::pair{SIGINT, "SIGINT"},
                                     {SIGTERM, "SIGTERM"},
                                     {SIGHUP, "SIGHUP"},
                                     {SIGUSR1, "SIGUSR1"},
                                     {SIGUSR2, "SIGUSR2"},
                                     {SIGXCPU, "SIGXCPU (the limit on processor time, ulimit -S -t)"},
                                     {SIGSEGV, "a signal"}})
    EXPECT_STREQ(stop_signal_name(signal), name);
}

}  // namespace
}  // namespace lockstep
