// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The table jobs x ways. A job with each key that determines weights ends in the same bytes in every way: strategies,
/// devices, ranks, stops after each step, and is proved by the other device. A key without a row fails, and a row whose
/// key changes nothing; what a way refuses is listed. Runs are in this process, their ranks threads.
#include "common/error.hpp"
#include "tests/data/picture_fixture.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/test_settings.hpp"
#include "tests/trainer/end_to_end/program.hpp"
#include "trainer/config/job_schema.hpp"
#include "trainer/run/training_run.hpp"
#include "trainer/tools/prove.hpp"

#include <sched.h>

namespace lockstep::testing::ways_test {
namespace {

namespace fs = std::filesystem;

/// Four steps, the last one of an epoch smaller; layers with parameters in each of three stages.
constexpr const char* kJob =
    "model: three.yaml\n"
    "data: {set: synthetic, train_samples: 20, test_samples: 4, global_batch: 12}\n"
    "train: {epochs: 2, seed: 7, optimizer: {kind: sgd, lr: 0.1, momentum: 0.5}}\n"
    "parallel: {device: cpu, backend: thread, ranks: 1, grain: 4}\n"
    "run: {checkpoint_every_steps: 0, log_every_steps: 1, report: false, curve: false}\n";
constexpr std::int64_t kSteps = 4;

constexpr std::pair<const char*, const char*> kModels[] = {
    {"three.yaml",
     "layers:\n  - avg_pool: 7\n  - conv2d: {out: 3, kernel: 2}\n  - relu\n  - dropout: 0.2\n"
     "  - linear: {name: hidden, out: 6}\n  - layer_norm\n  - gelu\n  - linear: {name: fc, out: classes}\n"},
    {"normed.yaml",
     "layers:\n  - avg_pool: 7\n  - conv2d: {out: 3, kernel: 2}\n  - batch_norm: {momentum: 0.3}\n  - tanh\n"
     "  - conv2d: {out: 3, kernel: 3, padding: 1}\n  - batch_norm: {eps: 0.01, affine: false}\n  - add: "
     "tanh1\n"
     "  - relu\n  - linear: 6\n  - batch_norm\n  - linear: {name: fc, out: classes}\n"},
    {"flat.yaml", "layers:\n  - flatten\n  - linear: 6\n  - relu\n  - linear: {name: fc, out: classes}\n"},
    {"branched.yaml",
     "layers:\n  - avg_pool: 4\n  - conv2d: {out: 3, kernel: 3}\n  - tanh\n  - relu: {name: a}\n  - dropout: "
     "0.3\n"
     "  - conv2d: {out: 3, kernel: 3, padding: 1}\n  - gelu\n  - add: a\n  - relu\n  - add: tanh1\n  - "
     "sigmoid\n"
     "  - max_pool: 2\n  - global_avg_pool\n  - linear: 4\n  - gelu: {approximate: tanh}\n"
     "  - linear: {name: fc, out: classes}\n"},
    // Gradients for which the first units of sums are far too coarse, or far too fine.
    {"faint.yaml",
     "init: {normal: 1e-14}\nlayers:\n  - avg_pool: 7\n  - flatten\n  - linear: 4\n  - relu\n"
     "  - linear: {name: fc, out: classes}\n"},
    {"huge.yaml",
     "init: {normal: 1000}\nlayers:\n  - avg_pool: 7\n  - flatten\n  - linear: 4\n  - relu\n"
     "  - linear: 4\n  - relu\n  - linear: {name: fc, out: classes}\n"},
};

/// One core alone is the first.
constexpr const char* kWays[] = {
    "parallel.threads=1",
    "parallel.ranks=2 parallel.threads=2",
    "parallel.ranks=3 parallel.bucket_bytes=100 train.recompute=true",
    "parallel.device=emulated",
    "parallel.device=emulated parallel.ranks=2 parallel.graph=off data.micro_batch=4",
    "parallel.device=emulated parallel.ranks=3 parallel.split=chunk parallel.bucket_bytes=100",
    "parallel.strategy=pipeline parallel.stages=2",
    "parallel.strategy=pipeline parallel.stages=4 parallel.ranks=2 parallel.placement=[0,1,1,0]",
    "parallel.strategy=pipeline parallel.stages=3 parallel.ranks=3 parallel.schedule=gpipe",
    "parallel.strategy=pipeline parallel.stages=2 parallel.device=emulated",
    ("parallel.strategy=pipeline parallel.stages=2 parallel.ranks=4 parallel.device=emulated "
     "parallel.check_replicas_every_steps=1"),
    "parallel.strategy=pipeline parallel.stages=3 parallel.ranks=3 parallel.device=emulated",
};

/// The run must end differently with the key, in the job that has `with` besides, than without it.
struct Row {
  std::string key, value, with = {};
  std::string without = {};  ///< compared with this, in place of `with`
};

const std::vector<Row> kModelAndData = {
    {"model", "normed.yaml"},
    {"model", "flat.yaml"},
    {"model", "branched.yaml"},
    {"model", test::source_path("tests/arithmetic/modern.yaml"),
     "train.optimizer.kind=adam train.optimizer.lr=0.01"},
    {"model", "faint.yaml", "train.optimizer.lr=0.5"},
    {"model", "huge.yaml", "data.std=1e-4 train.optimizer.lr=1e-12"},
    {"data.set", "random", "model=flat.yaml"},
    {"data.global_batch", "16"},
    {"data.mean", "0.5"},
    {"data.std", "0.2"},
    {"data.shuffle", "false"},
    {"data.shuffle_window", "4"},
    {"data.balance_classes", "true"},
    {"data.train_samples", "15"},
    {"data.train_samples", "11", "data.set=pictures data.root=pictures data.validation=5",
     "data.set=pictures data.root=pictures data.validation=5 data.train_samples=0"},
    {"data.validation", "0.25"},
    {"data.validation", "0.25", "train.evaluate_every_steps=1"},
    {"data.validation", "files", "data.set=pictures data.root=pictures data.train_samples=0"},
    {"data.leave_out", "left.txt"},
    {"data.leave_out", "named.txt", "data.set=pictures data.root=pictures data.train_samples=0"},
    {"data.size", "14x21", "data.set=pictures data.root=pictures data.train_samples=0"},
    {"data.fit", "pad", "data.set=pictures data.root=pictures data.train_samples=0 data.size=21"},
    {"data.fit", "crop", "data.set=pictures data.root=pictures data.train_samples=0 data.size=21"},
    {"data.colour", "true", "data.set=pictures data.root=pictures data.train_samples=0"},
    {"data.label", "second", "data.set=webdataset data.root=tars data.train_samples=0"},
    {"data.label", "several",
     "data.set=webdataset data.root=tars data.train_samples=0 train.loss=binary_cross_entropy",
     "data.set=webdataset data.root=tars data.train_samples=0"},
};

const std::vector<Row> kAugmentations = {
    {"data.augment", "[{crop: {padding: 4}}]"},
    {"data.augment", "[{resized_crop: {scale: [0.3, 1]}}]"},
    {"data.augment", "[{flip: {horizontal: 0.5, vertical: 0.3}}]"},
    {"data.augment", "[{rotate: {degrees: 20}}]"},
    {"data.augment", "[{shift: {horizontal: 0.2, vertical: 0.1}}]"},
    {"data.augment", "[{scale: {factor: [0.8, 1.2]}}]"},
    {"data.augment", "[{jitter: {brightness: 0.3, contrast: 0.3}}]"},
    {"data.augment", "[{erase: {probability: 0.6}}]"},
    {"data.augment", "[{cutout: {size: 12}}]"},
    {"data.augment", "[{mixup: {alpha: 0.5}}]"},
    {"data.augment", "[{cutmix: {alpha: 0.8}}]"},
    {"data.augment",
     "[{crop: {padding: 3}}, {flip: {horizontal: 0.5}}, {rotate: {degrees: 15}}, {jitter: {contrast: 0.3}}, "
     "{cutout: {size: 7}}, {mixup: {alpha: 0.4, probability: 0.4}}, {cutmix: {probability: 0.6}}]",
     "train.label_smoothing=0.1"},
};

const std::vector<Row> kTraining = {
    {"train.seed", "8"},
    {"train.initial_weights", "earlier"},
    {"train.partial", "true", "train.initial_weights=earlier model=flat.yaml", "model=flat.yaml"},
    {"train.initial_scale", "0.3"},
    {"train.loss", "mse"},
    {"train.loss", "binary_cross_entropy"},
    {"train.precision", "int16"},
    {"train.precision", "int16", "model=branched.yaml train.loss=mse"},
    {"train.precision", "int16", "model=normed.yaml"},
    {"train.label_smoothing", "0.2"},
    {"train.label_smoothing", "0.2", "model=flat.yaml data.set=random"},
    {"train.class_weights", "[1, 0.5, 2, 0, 1, 3, 0.25, 1, 1.5, 1]", "train.label_smoothing=0.2"},
    {"train.class_weights", "[0.5, 2]", "model=flat.yaml data.set=random train.label_smoothing=0.2"},
    {"train.ema", "0.8"},
    {"train.swa.from_epoch", "1"},
    {"train.swa.from_epoch", "1", "train.ema=0.8 model=normed.yaml"},
    {"train.clip_norm", "0.3"},
    {"train.clip_norm", "0.3", "train.freeze=[fc.*]"},
    {"train.clip_norm", "0.3", "train.optimizer.kind=lamb train.groups=[{match: fc.b*, lr_factor: 3}]"},
    {"train.clip_value", "0.01"},
    {"train.groups", "[{match: fc.*, lr_factor: 3}, {match: '*.weight', weight_decay: 0.1}]"},
    {"train.groups", "[{match: '*', lr_factor: 3}]"},
    {"train.groups", "[{match: '*', weight_decay: 0.1}]"},
    {"train.freeze", "[conv1.*]"},
    {"train.freeze", "[fc.*]", "train.optimizer.weight_decay=0.1"},
    {"train.freeze", "[conv1.*, hidden.*, ln1.*]", "train.ema=0.8 train.swa.from_epoch=1"},
    {"train.freeze", "[hidden.*, ln1.*, fc.*]", "train.optimizer.kind=lars"},
    {"train.freeze", "[conv1.*]", "train.optimizer.kind=lamb train.optimizer.lr=0.01"},
    {"train.freeze", "[fc.*]", "train.groups=[{match: '*', lr_factor: 2}]"},
    {"train.freeze", "['*.bias', 'fc.*']", "train.optimizer.kind=adam train.optimizer.lr=0.01"},
};

const std::vector<Row> kOptimizers = {
    {"train.optimizer.kind", "adam"},
    {"train.optimizer.kind", "adamw"},
    {"train.optimizer.kind", "rmsprop"},
    {"train.optimizer.kind", "lars"},
    {"train.optimizer.kind", "lamb"},
    {"train.optimizer.kind", "lion"},
    {"train.optimizer.lr", "0.05"},
    {"train.optimizer.momentum", "0"},
    {"train.optimizer.momentum", "0.9", "train.optimizer.kind=rmsprop"},
    {"train.optimizer.weight_decay", "0.1"},
    {"train.optimizer.dampening", "0.3"},
    {"train.optimizer.nesterov", "true"},
    {"train.optimizer.maximize", "true"},
    {"train.optimizer.betas", "[0.5, 0.8]", "train.optimizer.kind=adam"},
    {"train.optimizer.amsgrad", "true", "train.optimizer.kind=adam train.optimizer.betas=[0.5, 0.5]"},
    {"train.optimizer.eps", "0.01", "train.optimizer.kind=adam"},
    {"train.optimizer.alpha", "0.5", "train.optimizer.kind=rmsprop"},
    {"train.optimizer.trust_coefficient", "0.1", "train.optimizer.kind=lars"},
    {"train.optimizer.decay_biases", "false", "train.optimizer.weight_decay=0.1"},
    {"train.optimizer.lr_scaling.rule", "linear", "", "train.optimizer.lr_scaling.rule=none"},
    {"train.optimizer.lr_scaling.rule", "sqrt", "", "train.optimizer.lr_scaling.rule=none"},
    {"train.optimizer.lr_scaling.base_batch", "6", "train.optimizer.lr_scaling.rule=linear"},
};

const std::vector<Row> kSchedules = {
    {"train.schedule.kind", "polynomial"},
    {"train.schedule.kind", "cosine"},
    {"train.schedule.kind", "one_cycle"},
    {"train.schedule.kind", "step", "train.schedule.step_size=1", " "},
    {"train.schedule.kind", "multistep", "train.schedule.milestones=[1]", " "},
    {"train.schedule.kind", "exponential", "train.schedule.gamma=0.5", " "},
    {"train.schedule.by", "step", "train.schedule.kind=cosine"},
    {"train.schedule.step_size", "2", "train.schedule.by=step train.schedule.kind=step",
     "train.schedule.kind=step train.schedule.by=step train.schedule.step_size=1"},
    {"train.schedule.milestones", "[2, 3]", "train.schedule.kind=multistep train.schedule.by=step", " "},
    {"train.schedule.gamma", "0.3", "train.schedule.kind=step train.schedule.step_size=1"},
    {"train.schedule.power", "2", "train.schedule.kind=polynomial"},
    {"train.schedule.min_lr", "0.05", "train.schedule.kind=cosine train.schedule.by=step"},
    {"train.schedule.total", "3", "train.schedule.kind=cosine train.schedule.by=step"},
    {"train.schedule.pct_start", "0.6", "train.schedule.kind=one_cycle"},
    {"train.schedule.div_factor", "4", "train.schedule.kind=one_cycle"},
    {"train.schedule.final_div_factor", "2", "train.schedule.kind=one_cycle"},
    {"train.schedule.anneal", "linear", "train.schedule.kind=one_cycle"},
    {"train.schedule.cycle_momentum", "false", "train.schedule.kind=one_cycle"},
    {"train.schedule.base_momentum", "0.3", "train.schedule.kind=one_cycle"},
    {"train.schedule.max_momentum", "0.99", "train.schedule.kind=one_cycle"},
    {"train.schedule.warmup_epochs", "1"},
    {"train.schedule.warmup_steps", "3"},
    {"train.schedule.warmup_start", "0.1", "train.schedule.warmup_steps=3"},
    {"parallel.grain", "2"},
};

/// Its off promises no bits (end_to_end_world_size_test).
constexpr const char* kWithoutRow = "parallel.determinism";

struct Refusal {
  std::string in_row, in_way, words;
} const kRefusals[] = {
    {"precision=int16", "device=emulated", "parallel.device: emulated has no train.precision int16"},
    {"model=normed.yaml", "strategy=pipeline", "batch_norm) looks at the whole global batch"},
    {"model=normed.yaml", "micro_batch",
     "layer bn1 (batch_norm) looks at the whole global batch, so a GPU keeps"},
};

// Runs.

/// Keys of a command line: split at spaces, but not within quotes or brackets.
std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> words;
  int depth = 0;
  bool ended = true;
  for (const char c : text) {
    depth += c == '[' || c == '{' ? 1 : c == ']' || c == '}' ? -1 : 0;
    if (c == ' ' && depth == 0) {
      ended = true;
    } else {
      if (std::exchange(ended, false)) words.emplace_back();
      words.back() += c;
    }
  }
  return words;
}

struct Result {
  std::string refusal;  ///< why it was not trained
  std::vector<nlohmann::json> metrics, norms;
  std::string trail, weights, optimizer;  ///< bytes of files
};

class WaysTest : public ::testing::Test {
 protected:
  WaysTest() {
    cpu_set_t one_core = {};  // ranks that share it do not spin
    CPU_SET(static_cast<unsigned>(sched_getcpu()), &one_core);
    sched_setaffinity(0, sizeof one_core, &one_core);
    fs::current_path(directory_.path());
    write_text("job.yaml", kJob);
    for (const auto& [name, text] : kModels) write_text(name, text);
  }
  ~WaysTest() override { fs::current_path("/"); }

  /// Folders of pictures, wider than high, with a validation half; archives of them with other labels, one and several.
  static void write_pictures() {
    write_text("left.txt", "3\n0\n");
    write_text("named.txt", "train/0/3.png\ntrain/1/1.png\n");
    for (const auto& [half, count] : {std::pair{"train", 20}, {"val", 6}, {"test", 6}}) {
      const std::string tar = std::string("tars/") + half;
      fs::create_directories(tar);
      for (int i = 0; i < count; ++i) {
        Picture picture = sheet(28, 21, 20 + 7 * i);
        draw_digit(picture, i % 3, 14, 10, 12, 255, 1.5);
        const std::string folder = fmt::format("pictures/{}/{}", half, i % 3);
        fs::create_directories(folder);
        write_bytes(fmt::format("{}/{}.png", folder, i), encode_png(picture));
        write_bytes(fmt::format("{}/{:02}.png", tar, i), encode_png(picture));
        write_text(fmt::format("{}/{:02}.cls", tar, i), std::to_string(i % 3));
        write_text(fmt::format("{}/{:02}.json", tar, i),
                   fmt::format(R"({{"second": {}, "several": [{}, 2]}})", i / 2 % 3, i % 2));
      }
      EXPECT_EQ(run_shell(fmt::format("tar -C {0} --sort=name -cf {0}.tar .", tar)).exit_code, 0);
      fs::remove_all(tar);
    }
  }

  /// Trains in this process, and is silent.
  static Result train(const std::string& run, const std::string& keys) {
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    Result result;
    try {
      if (const int code = lockstep::train(load_job("job.yaml", split(keys + " run.dir=" + run))); code != 0)
        result.refusal = fmt::format("exit code {}", code);
    } catch (const std::exception& error) {
      result.refusal = error.what();
    }
    ::testing::internal::GetCapturedStdout();
    const std::string said = ::testing::internal::GetCapturedStderr();
    if (!result.refusal.empty()) result.refusal += ": " + said;
    if (!result.refusal.empty()) return result;
    result.metrics = comparable_metrics(run);
    for (const auto& event : read_metrics(run))
      if (event.contains("gradient_norm")) result.norms.push_back(event["gradient_norm"]);
    result.trail = read_text(run + "/trail.bin");
    const auto steps = result.metrics.back()["step"].get<std::int64_t>();
    const std::string saved = fmt::format("{}/checkpoints/step-{:08}/", run, steps);
    result.weights = read_text(saved + "model.safetensors");
    result.optimizer = read_text(saved + "optimizer.safetensors");
    return result;
  }

  /// In this process, silently.
  static void expect_proved(const std::string& run, const std::string& device) {
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    ProveOptions options{.run = run, .data = {}, .question = {}, .parallel = {}};
    options.parallel.device = device;
    options.parallel.backend = "thread";
    options.parallel.ranks = 1;
    std::string why;
    try {
      if (const int code = prove(options); code != 0) why = fmt::format("exit code {}", code);
    } catch (const std::exception& error) {
      why = error.what();
    }
    const std::string said =
        ::testing::internal::GetCapturedStdout() + ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(why, "") << "proof on " << device << ": " << said;
  }

  static void expect_same(const Result& run, const Result& alone) {
    ASSERT_EQ(run.refusal, "");
    EXPECT_EQ(run.metrics, alone.metrics);
    EXPECT_TRUE(run.norms.empty() || run.norms == alone.norms) << "gradient norms differ";
    EXPECT_TRUE(run.trail == alone.trail) << "trails differ";
    EXPECT_TRUE(run.weights == alone.weights) << "model.safetensors differs";
    EXPECT_TRUE(run.optimizer == alone.optimizer) << "optimizer.safetensors differs";
  }

  /// @returns whether it is on the list, and was refused as that says
  static bool is_refused(const std::string& row, const std::string& way, const Result& run) {
    for (const Refusal& refusal : kRefusals) {
      if (row.find(refusal.in_row) == std::string::npos || way.find(refusal.in_way) == std::string::npos)
        continue;
      EXPECT_NE(run.refusal.find(refusal.words), std::string::npos) << run.refusal;
      return true;
    }
    return false;
  }

  /// Stops after each step; the next one is taken in the next way.
  static void relay(const std::string& keys, std::size_t way, const Result& alone) {
    Result last;
    std::string ways, where;
    for (std::int64_t step = 1; step <= kSteps; ++step) {
      do {
        where = kWays[way++ % std::size(kWays)];
        last = train("relay", fmt::format("{} {} train.max_steps={}", keys, where, step < kSteps ? step : 0));
      } while (is_refused(keys, where, last));
      ways += fmt::format("\nstep {}: {}", step, where);
    }
    SCOPED_TRACE("stopped after each step" + ways);
    last.norms.clear();  // devices tell none
    expect_same(last, alone);
    expect_proved("relay", keys.find("precision=int16") == keys.npos && way % 2 == 0 ? "emulated" : "cpu");
    fs::remove_all("relay");
  }

  static void check(const std::vector<Row>& rows) {
    for (const Row& row : rows) {
      const std::string keys = row.with + " " + row.key + "=" + row.value;
      SCOPED_TRACE(keys);
      const Result alone = train("alone", keys),
                   other = train("other", row.without.empty() ? row.with : row.without);
      ASSERT_EQ(alone.refusal, "");
      ASSERT_EQ(other.refusal, "");
      EXPECT_GE(alone.norms.size(), 2U);
      EXPECT_NE(alone.weights, "");
      EXPECT_FALSE(alone.weights == other.weights && alone.optimizer == other.optimizer &&
                   alone.metrics.back() == other.metrics.back())
          << "the key changes nothing";
      for (const char* way : std::span(kWays).subspan(1)) {
        SCOPED_TRACE(way);
        const Result run = train("run", keys + " " + way);
        if (!is_refused(keys, way, run)) expect_same(run, alone);
        fs::remove_all("run");
      }
      relay(keys, static_cast<std::size_t>(&row - rows.data()) * 5, alone);
      for (const char* run : {"alone", "other"}) fs::remove_all(run);
    }
  }

 private:
  TemporaryDirectory directory_;
};

// The table.

TEST_F(WaysTest, EveryKeyThatDeterminesWeightsHasARowAndNoOther) {
  std::vector<std::string> given;
  for (const auto* rows : {&kModelAndData, &kAugmentations, &kTraining, &kOptimizers, &kSchedules})
    for (const Row& row : *rows) {
      given.push_back(row.key + "=" + row.value);
      EXPECT_NE(find_job_key(row.key)->determines, Determines::kNothing) << row.key;
      for (const std::string& key : split(row.with)) given.push_back(key);
    }
  const Job base = load_job("job.yaml", {});
  for (const JobKey& key : job_schema()) {
    if (key.determines == Determines::kNothing) continue;
    const auto has = [&](const std::string& begin) {
      return std::ranges::any_of(given, [&](const std::string& one) { return one.starts_with(begin); });
    };
    const bool is_listed = key.path == kWithoutRow;
    EXPECT_NE(has(key.path + "="), is_listed) << key.path << ": add a row, or why it can have none";
    if (is_listed || key.path == "data.set") continue;  // contents of a set leave no trace either: tests/data
    for (const std::string_view choice : key.choices)
      EXPECT_TRUE(has(fmt::format("{}={}", key.path, choice)) || key.write(base) == choice ||
                  key.write(Job{}) == choice)
          << key.path << " " << choice << ": add a row";
  }
}

TEST_F(WaysTest, ModelAndDataLeaveNoTraceOfWays) {
  write_pictures();
  check(kModelAndData);
}

TEST_F(WaysTest, AugmentationsLeaveNoTraceOfWays) {
  check(kAugmentations);
}

TEST_F(WaysTest, LossesUpdatesAndAveragesLeaveNoTraceOfWays) {
  train("earlier", "train.seed=3 train.max_steps=2");
  check(kTraining);
}

TEST_F(WaysTest, OptimizersLeaveNoTraceOfWays) {
  check(kOptimizers);
}

TEST_F(WaysTest, SchedulesAndGrainsLeaveNoTraceOfWays) {
  check(kSchedules);
}

}  // namespace
}  // namespace lockstep::testing::ways_test
