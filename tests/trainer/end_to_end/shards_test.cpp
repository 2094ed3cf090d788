// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Runs on images that stay on disk, in shards or as pictures. Those of a run in memory, on any ranks, after
/// any stop; and never on others. Runs on tables, from CSV to predictions.
#include "data/sets/shards.hpp"

#include "common/env.hpp"
#include "data/dataset.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/test_settings.hpp"
#include "tests/trainer/end_to_end/program.hpp"

namespace lockstep::testing {
namespace {

namespace fs = std::filesystem;

constexpr const char* kJob =
    "model: linear\n"
    "data: {set: shards, root: digits, global_batch: 128, validation: 0.1, shuffle_window: 100,\n"
    "       augment: [{shift: {horizontal: 0.1, vertical: 0.1}}, {mixup: {}}]}\n"
    "train: {epochs: 2, evaluate_every_steps: 2, optimizer: {lr: 0.05}}\n"
    "parallel: {device: cpu, grain: 16}\n"
    "run: {checkpoint_every_steps: 2, log_every_steps: 1, report: false}\n";

/// The job and its set, beside each other.
class ShardedRunTest : public JobTest {
 protected:
  ShardedRunTest() {
    write_in_shards(Env::posix(), {.set = "synthetic", .train_samples = 600, .test_samples = 90},
                    path("digits"), {.sizes = {.block_bytes = 4096, .shard_bytes = 65536}});
    write_job(kJob);
  }
};

TEST_F(ShardedRunTest, DiskAndMemoryRanksAndStopsGiveTheSameRun) {
  const auto in_memory = metrics_of("memory", "data.in_memory=true");
  EXPECT_EQ(metrics_of("disk", ""), in_memory);
  EXPECT_EQ(metrics_of("mpi", "", "mpirun -np 2"), in_memory);
  const std::string streamed = "parallel.device=emulated data.on_device=stream ";
  EXPECT_EQ(metrics_of("streamed", streamed + "parallel.backend=thread parallel.ranks=3 data.micro_batch=16 "
                                              "parallel.replay_every_steps=3"),
            in_memory);
  train_in_parts("steps");
  EXPECT_EQ(comparable_metrics(path("steps")), in_memory);
  EXPECT_NE(metrics_of("all", "data.shuffle_window=0").back(), in_memory.back());
}

/// More steps than a ring has; two stages; from memory and from disk.
TEST_F(ShardedRunTest, WhatStreamsPastADeviceGivesTheSameRun) {
  write_text(path("small.yaml"),  // little work for the emulator
             "layers:\n  - max_pool: 4\n  - linear: 8\n  - relu\n  - linear: classes\n");
  const std::string job = "model=" + path("small.yaml") +
                          " train.epochs=1 data.global_batch=16 parallel.grain=8 train.max_steps=34 ";
  const auto expected = metrics_of("cpu", job);
  const std::string streamed = job + "parallel.device=emulated data.on_device=stream ";
  EXPECT_EQ(
      metrics_of("stages", streamed + "parallel.strategy=pipeline parallel.backend=thread parallel.ranks=2"),
      expected);
  // The second pipeline has a grain more; each computes the share of the other again.
  const std::string uneven = "data.global_batch=24 ";
  EXPECT_EQ(
      metrics_of("pipelines", streamed + uneven +
                                  "parallel.strategy=pipeline parallel.stages=2 parallel.backend=thread "
                                  "parallel.ranks=4 parallel.replay_every_steps=5"),
      metrics_of("uneven", job + uneven));
  EXPECT_EQ(metrics_of("steps", streamed + "data.in_memory=true parallel.graph=off"), expected);
  EXPECT_GT(train_in_parts("resumed", streamed, 0.05), 1);
  EXPECT_EQ(comparable_metrics(path("resumed")), expected);
}

/// On any device and any rank, in steps and in evaluations. All ranks save the last whole step, and go on from there.
TEST_F(ShardedRunTest, ADiskThatFailsLeavesTheLastWholeStep) {
  const auto expected = metrics_of("calm", "");
  const std::string often = "run.checkpoint_every_steps=0 run.keep.best=false ";
  const auto expect_to_be_saved = [&](const std::string& run, const std::string& launcher,
                                      const std::string& overrides) {
    Outcome outcome = train(run, often + overrides, launcher);
    SCOPED_TRACE(run + "\n" + outcome.everything());
    expect_says(outcome, 74, {".shard: offset ", "is saved, and the same command goes on from there"});
    EXPECT_FALSE(fs::is_empty(path(run + "/checkpoints")));
    EXPECT_EQ(metrics_of(run, ""), expected);
  };
  expect_to_be_saved("step", read_faults(path("digits/train-0"), 900), "");
  expect_to_be_saved("evaluation", read_faults(path("digits/test-0"), 10), "");
  expect_to_be_saved("ranks", read_faults(path("digits/train-0"), 700) + "mpirun -np 2", "");
  expect_to_be_saved("device", read_faults(path("digits/train-0"), 900),
                     "parallel.device=emulated data.on_device=stream");
}

/// Shells allow a process 1,024 by themselves, and more if it asks. The two halves lie in 115 and 18 shards.
TEST_F(ShardedRunTest, ARunAloneMayHaveMoreFilesThanTheShellAllows) {
  write_in_shards(Env::posix(), {.set = "synthetic", .train_samples = 600, .test_samples = 90},
                  path("digits"), {.replace = true, .sizes = {.block_bytes = 4096, .shard_bytes = 4096}});
  ASSERT_TRUE(fs::exists(path("digits/train-00114.shard")));
  const std::string few = "ulimit -Sn 64;";
  expect_says(train("run", "train.epochs=1", few), 0);
  expect_says(run_shell(few + " $LOCKSTEP_PROGRAM eval " + path("run")), 0);
}

TEST_F(ShardedRunTest, AFlippedBitEndsTheRunOfAllRanks) {
  const std::string file = path("digits/train-00004.shard");
  std::string bytes = read_text(file);
  bytes[12345] ^= 2;
  write_text(file, bytes);
  for (const char* launcher : {"", "mpirun -np 2"}) {
    expect_says(train("run", "", launcher), 65,
                {"digits/train-00004.shard: bytes 12288 to 16383", "SHA-256 differs"});
  }
}

TEST_F(ShardedRunTest, AnotherSetInTheSamePlaceIsRefused) {
  expect_says(train("run", "run.max_seconds=0.001"), 75);
  write_in_shards(Env::posix(), {.set = "synthetic", .seed = 7, .train_samples = 600, .test_samples = 90},
                  path("digits"), {.replace = true});
  expect_says(train("run", ""), 65, {"shards train samples (sha256"});
}

TEST_F(ShardedRunTest, ATableGivesOneRunAndAnswersItsRows) {
  std::string csv = "id,far,near,kind\n";
  for (int i = 0; i < 90; ++i)
    csv += fmt::format("no {},{},{}e-3,{}\n", i, 1000 + 300 * (i % 3), i, i % 3 == 2 ? "upper" : "lower");
  write_text(path("rows.csv"), csv);
  expect_says(
      lockstep("convert " + path("rows.csv") + " " + path("rows") + " --drop id --label kind --test 10%"), 0,
      {"2 classes (lower, upper), 81 samples to train on, 9 to test with, 2 numbers each"});
  write_job(
      "model: linear\n"
      "data: {set: table, root: rows, global_batch: 32, validation: 0.1}\n"
      "train: {epochs: 10, optimizer: {lr: 0.5}}\n"
      "parallel: {device: cpu, grain: 8}\n");
  const auto metrics = metrics_of("run", "");
  EXPECT_EQ(metrics_of("gpu", "parallel.device=emulated"), metrics);
  EXPECT_EQ(metrics_of("mpi", "", "mpirun -np 2"), metrics);
  write_text(path("asked.csv"), "1600,0.01\n1000,?\n1000,3e38\n1000,0.02\n");
  const Outcome predicted = lockstep("predict " + path("run") + " " + path("asked.csv") + " --csv");
  expect_says(
      predicted, 65,
      {"asked.csv: line 2: column 2: '?' is missing", "asked.csv: line 3: value 1 is 3e+38, too far"});
  EXPECT_TRUE(predicted.out.starts_with("picture,class,probability,not_sure\n\"")) << predicted.out;
  expect_words(predicted.out, {R"(asked.csv: line 1","upper",)", R"(asked.csv: line 4","lower",)"});
  expect_says(lockstep("predict " + path("run") + " " + path("rows.csv")), 65);
  expect_says(lockstep("eval " + path("run") + " --data " + path("digits")), 65);
}

TEST_F(ShardedRunTest, AnArchiveOfNumpyWithHalvesIsASet) {
  const std::string npz = read_text(test::source_path("tests/fuzz/corpus/tables/npz-halves"));
  write_text(path("set.npz"), npz.substr(1));
  const std::string convert = "convert " + path("set.npz") + " " + path("set");
  expect_says(lockstep(convert), 0,
              {"[row][column][channel], which becomes [channel][row][column]",
               "2 classes (0, 1), 4 samples to train on, 2 to test with, 3 x 2 x 2", "set: shards"});
  expect_says(lockstep(convert + " --force --test 10%"), 2, {"halves of its own", "leave --test out"});
  EXPECT_EQ(answer_of(convert + " --force")["train_samples"], 4);
}

// Pictures as they are.

constexpr const char* kPictureJob =
    "model: linear\n"
    "data: {set: pictures, root: photos, size: 5x4, fit: pad, global_batch: 16, augment: [{mixup: {}}]}\n"
    "train: {epochs: 2, optimizer: {lr: 0.05}}\n"
    "parallel: {device: cpu, grain: 4}\n"
    "run: {checkpoint_every_steps: 2, log_every_steps: 1, report: false}\n";

/// A job and its photos, beside each other, in folders and in archives.
class PictureRunTest : public JobTest {
 protected:
  PictureRunTest() {
    for (const std::string half : {"train", "val"})
      for (int label = 0; label < 3; ++label)
        for (int i = 10; i < (half == "train" ? 30 : 14); ++i) {
          std::string picture = "P5 6 6 255\n";
          for (int pixel = 0; pixel < 36; ++pixel)
            picture += static_cast<char>(40 * label + (pixel * (i + 7) % 53));
          write(half + "/" + std::to_string(label) + "/" + std::to_string(i) + ".pgm", picture);
        }
    write_job(kPictureJob);
  }
  void write(const std::string& name, const std::string& picture) const {
    fs::create_directories(fs::path(path("photos/" + name)).parent_path());
    write_text(path("photos/" + name), picture);
  }
  /// The pictures in the same order, and a label beside each. Its number in .cls, and a name and a list in .json.
  void write_archives() const {
    const std::string script =
        "cd " + directory_.path("") +
        "; mkdir tars; for h in $(ls photos); do for c in 0 1 2; do (cd photos/$h;"
        " for f in $c/*.pgm; do printf $c > ${f%.pgm}.cls;"
        " printf '{\"name\": \"the %s\", \"tags\": [%s, 3], \"half\": 0.5}' $c $c > ${f%.pgm}.json; done;"
        " tar -cf ../../tars/$h-$c.tar --sort=name $c); done; done; rm photos/*/*/*.cls photos/*/*/*.json";
    EXPECT_EQ(run_shell(script).exit_code, 0);
  }
  /// So that val/ is for validation.
  void write_tests() const {
    for (const char* name : {"test/0/a.pgm", "test/1/b.pgm", "test/2/c.pgm"})
      write(name, "P5 6 6 255\n" + std::string(36, name[5]));
  }
  Outcome run(const std::string& arguments, const std::string& launcher = "") const {
    return run_shell("cd " + directory_.path("") + "; XDG_CACHE_HOME=" + path("cache") + " " + launcher +
                     " $LOCKSTEP_PROGRAM " + arguments);
  }
  Outcome train(const std::string& name, const std::string& more = "",
                const std::string& launcher = "") const {
    return run("train job.yaml run.dir=" + path(name) + " " + more, launcher);
  }
  std::string weights_of(const std::string& name, const std::string& more = "",
                         const std::string& launcher = "") const {
    return ended_well(train(name, more, launcher)).last_line();
  }
  /// Other bytes, as many and as old. @returns what they were
  static std::string damage(const std::string& file) {
    std::string whole = read_text(file);
    const auto time = fs::last_write_time(file);
    write_text(file, std::string(whole.size(), 'x'));
    fs::last_write_time(file, time);
    return whole;
  }
};

TEST_F(PictureRunTest, FoldersArchivesAndTheConvertedSetGiveTheSameRunOnAnyRanks) {
  expect_says(run("convert photos set --size 5x4 --fit pad"), 0,
              {"72 pictures of other proportions than 5 x 4 were padded with black\n"});
  const std::string weights =
      weights_of("converted", "data.set=shards data.root=set data.size=auto data.fit=squeeze");
  const Outcome folders = ended_well(train("folders"));
  EXPECT_EQ(folders.last_line(), weights);
  expect_words(folders.out, {"note: val/ is the test half, since there is no test/\n"});
  EXPECT_EQ(weights_of("memory", "data.in_memory=true parallel.backend=thread parallel.ranks=3"), weights);
  write_archives();
  const std::string tars = "data.set=webdataset data.root=tars ";
  EXPECT_EQ(weights_of("archives", tars, "mpirun -np 2"), weights);
  Outcome outcome;
  for (int starts = 0; starts < 20; ++starts) {
    outcome = train("steps", tars + "run.max_seconds=0.001 parallel.backend=thread parallel.ranks=" +
                                 std::to_string(1 + starts % 2));
    if (outcome.exit_code != 75) break;
  }
  EXPECT_EQ(ended_well(outcome).last_line(), weights);
  expect_says(run("eval " + path("archives") + " --classes"), 0);
}

TEST_F(PictureRunTest, AValidationHalfJudgesTheRunInEveryFormat) {
  write_tests();
  write_archives();
  expect_says(run("convert photos set --size 5x4 --fit pad"), 0);
  expect_says(
      run("convert set shards"), 0,
      {"60 images to train on, 12 to validate and 3 to test with", "root: shards, validation: files}"});
  const std::string files = "data.validation=files ", made = "data.size=auto data.fit=squeeze ";
  weights_of("by-folders", files);
  weights_of("by-set", files + made + "data.set=shards data.root=set", "mpirun -np 2");
  weights_of("by-shards",
             files + made + "data.set=shards data.root=shards parallel.backend=thread parallel.ranks=3");
  weights_of("by-tars", files + "data.set=webdataset data.root=tars");
  const auto metrics = comparable_metrics(path("by-folders"));
  EXPECT_EQ(metrics.back()["validation_samples"], 12);
  const std::string answer = run("predict " + path("by-folders") + " 'validation[3]' --json").out;
  expect_words(answer, {R"("original":"val/0/13.pgm")"});
  for (const char* name : {"by-folders", "by-set", "by-shards", "by-tars"}) {
    SCOPED_TRACE(name);
    auto others = comparable_metrics(path(name));
    EXPECT_EQ(others.back()["weights_sha256"], metrics.back()["weights_sha256"]);
    EXPECT_EQ(others.back()["validation_accuracy"], metrics.back()["validation_accuracy"]);
    const Outcome eval = ended_well(run("eval " + path(name) + " --validation --json"));
    EXPECT_EQ(nlohmann::json::parse(eval.out)["loss"], metrics.back()["validation_loss"]);
    const Outcome predicted =
        ended_well(run("predict " + path(name) + " 'validation[3]' photos/val/0/13.pgm --json"));
    const auto end = predicted.out.find('\n');
    const auto of_set = nlohmann::json::parse(predicted.out.substr(0, end)),
               of_file = nlohmann::json::parse(predicted.out.substr(end + 1));
    EXPECT_EQ(of_set["top"], nlohmann::json::parse(answer)["top"]);
    EXPECT_EQ(of_file["top"], of_set["top"]) << "pictures are padded without --fit";
  }
  expect_says(run("prove " + path("by-tars") + " --sample 5"), 0);
  expect_says(train("by-folders", "train.epochs=3"), 2);  // judged by something else
  expect_words(ended_well(train("unused")).everything(), {"note: the set has a validation half"});
  expect_says(run("eval " + path("unused") + " --validation"), 0);
  write("val/2/13.pgm", "P5 3 3 255\n123456789");
  expect_says(train("by-folders", files + "train.epochs=3"), 65, {"pictures validation samples (sha256"});
  fs::remove_all(path("photos/test"));
  expect_says(train("other", files), 2,
              {"data.validation: files: val/ is the test half, since there is no test/"});
}

TEST_F(PictureRunTest, LabelsMayBeNamesOrSeveral) {
  write_archives();
  const std::string tars = "data.set=webdataset data.root=tars ";
  EXPECT_EQ(weights_of("names", tars + "data.label=name"), weights_of("numbers", tars));
  expect_says(run("predict " + path("names") + " 'test[0]'"), 0, {"the 2"});
  const std::string several = tars + "data.label=tags data.augment=[] train.loss=binary_cross_entropy ";
  const std::string weights = weights_of("several", several);
  EXPECT_EQ(weights_of("ranks", several + "data.in_memory=true", "mpirun -np 2"), weights);
  expect_says(train("refused", tars + "data.label=tags"), 2);
  expect_says(train("refused", tars + "data.label=half"), 65, {"has no label under the key"});
}

TEST_F(PictureRunTest, WhatBecomesOfPicturesEndsTheRunAndLeavesItsCheckpoint) {
  expect_says(train("run", "run.max_seconds=0.001"), 75);
  const std::string file = path("photos/train/1/21.pgm"), whole = damage(file);
  expect_says(train("run", "", "mpirun -np 2"), 65,
              {"photos/train/1/21.pgm: neither PNG", "(sample 31 of pictures train)"});
  fs::remove(file);
  expect_says(train("run"), 65, {"was trained on other data"});
  write_text(file, whole);
  EXPECT_EQ(weights_of("run"), weights_of("at-once")) << "the checkpoint was there";
}

/// One of two ranks cannot read it, while the other waits for its sums.
TEST_F(PictureRunTest, APictureThatIsDamagedLaterEndsTheProofOfBothRanksThatShareItsStep) {
  weights_of("run",
             "data.mean=0.5 data.std=0.5 data.augment=[] run.checkpoint_every_steps=0 run.keep.best=false");
  damage(path("photos/train/1/21.pgm"));
  expect_says(run("prove " + path("run") + " --ranks 2 --timeout 5"), 65,
              {"photos/train/1/21.pgm: neither PNG"});
}

/// Its folders must not look as if they were not there.
TEST_F(PictureRunTest, ADiskThatFailsAtTheStartIsNoSmallerSet) {
  for (const int at : {1, 2, 3, 9}) {
    expect_says(train("failed", "", read_faults("photos/train/2", at, 1)), 74, {"Input/output error"});
  }
}

}  // namespace
}  // namespace lockstep::testing
