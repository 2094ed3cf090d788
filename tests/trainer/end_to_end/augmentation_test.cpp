// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Runs on augmented images, and evaluations that never see one. ways_test.cpp has ranks, devices, stops and proofs.
#include "data/augmentation.hpp"

#include "data/pictures/picture.hpp"
#include "data/sampler.hpp"
#include "data/sets/set_loading.hpp"
#include "kernels/cpu/ops.hpp"
#include "tests/support/prelude.hpp"
#include "tests/trainer/end_to_end/program.hpp"

namespace lockstep::testing {
namespace {

class AugmentedRunTest : public JobTest {
 protected:
  AugmentedRunTest() {
    write_job(
        "model: mlp\n"
        "data:\n"
        "  set: synthetic\n"
        "  train_samples: 300\n"
        "  test_samples: 40\n"
        "  global_batch: 64\n"
        "  augment:\n"
        "    - crop: {padding: 3}\n"
        "    - flip: {horizontal: 0.5}\n"
        "    - rotate: {degrees: 15}\n"
        "    - jitter: {contrast: 0.3}\n"
        "    - cutout: {size: 7}\n"
        "    - mixup: {alpha: 0.4, probability: 0.4}\n"
        "    - cutmix: {probability: 0.6}\n"
        "train: {epochs: 2, optimizer: {lr: 0.05}}\n"
        "parallel: {device: cpu, grain: 16}\n"
        "run: {checkpoint_every_steps: 0, log_every_steps: 1, report: false}\n");
  }
};

TEST_F(AugmentedRunTest, HogwildOfOneRankIsARunThatRoundsElsewhere) {
  const auto loss = [&](const std::string& run, const std::string& overrides) {
    return metrics_of(run, overrides).back()["test_loss"].get<double>();
  };
  const double exact = loss("exact", "");
  EXPECT_NEAR(loss("hogwild", "parallel.strategy=hogwild parallel.determinism=off"), exact, 1e-3);
  EXPECT_GT(std::abs(loss("plain", "data.augment=[]") - exact), 1e-2);
}

TEST_F(AugmentedRunTest, EvaluationsSeeImagesAsTheyAre) {
  const auto last = metrics_of("run", "data.validation=50").back();
  EXPECT_EQ(answer_of("eval " + path("run"))["loss"], last["test_loss"]);
  EXPECT_EQ(answer_of("eval " + path("run") + " --validation")["loss"], last["validation_loss"]);
}

TEST_F(AugmentedRunTest, ValidateShowsTheFirstBatchAsItIsTrainedOn) {
  write_job(
      "model: linear\ndata: {set: synthetic, train_samples: 300, test_samples: 40, global_batch: 50,\n"
      "  augment: [{crop: {padding: 4}}, {flip: {horizontal: 1}}]}\ntrain: {seed: 5}\n");
  expect_says(lockstep("validate " + path("job.yaml") + " --pictures " + path("batch.png")), 0,
              {"batch.png: 50 of 50 images of the first batch"});
  const Picture sheet = read_pictures(path("batch.png"))[0];
  EXPECT_EQ(sheet.pixels[28], 128) << "between two images";
  EXPECT_EQ(sheet.width, 8 * 30 - 2);
  EXPECT_EQ(sheet.height, 7 * 30 - 2);
  const auto data = load_dataset(
      {.set = "synthetic", .seed = 5, .train_samples = 300, .test_samples = 40, .validation = {}});
  const auto plan =
      make_augment_plan({{AugmentKind::kCrop, {{{4, 4}}}}, {AugmentKind::kFlip, {{{1, 1}}}}}, data.train, 5);
  const auto order = epoch_permutation(300, 5, 0);
  for (std::size_t i = 0; i < 50; ++i) {
    const auto sample = static_cast<std::uint32_t>(order[i]);
    std::vector<std::uint8_t> image(784), shown(784);
    cpu::augment_image(*plan, 0, sample, data.train.images.data() + std::size_t{sample} * 784, image.data());
    for (std::size_t at = 0; at < 784; ++at)
      shown[at] =
          sheet.pixels[(i / 8 * 30 + at / 28) * static_cast<std::size_t>(sheet.width) + i % 8 * 30 + at % 28];
    ASSERT_EQ(shown, image) << i;
  }
  expect_says(
      lockstep("validate " + path("job.yaml") + " data.global_batch=300 --pictures " + path("all.png")), 0,
      {"all.png: 256 of 300 images of the first batch"});
  const std::string features =
      "validate " + path("job.yaml") + " data.set=random --pictures " + path("no.png");
  expect_says(lockstep(features), 2, {"data.augment: only images of bytes can be augmented"});
  expect_says(lockstep(features + " 'data.augment=[]'"), 2, {"has features, and no images to show"});
}

TEST_F(AugmentedRunTest, ValidateShowsMixedImagesAndTheirLabels) {
  write_job(
      "model: linear\ndata: {set: synthetic, train_samples: 300, test_samples: 40, global_batch: 6,\n"
      "  augment: [{mixup: {probability: 0.5}}, {cutmix: {probability: 0.5}}]}\ntrain: {seed: 5}\n");
  const auto outcome = succeed("validate " + path("job.yaml") + " --pictures " + path("batch.png"));
  const Picture sheet = read_pictures(path("batch.png"))[0];
  const auto data = load_dataset(
      {.set = "synthetic", .seed = 5, .train_samples = 300, .test_samples = 40, .validation = {}});
  const std::vector<Augmentation> list = {{AugmentKind::kMixup, {{{1, 1}, {0.5, 0.5}}}},
                                          {AugmentKind::kCutmix, {{{1, 1}, {0.5, 0.5}}}}};
  const auto plan = make_augment_plan(list, data.train, 5);
  const auto order = epoch_permutation(300, 5, 0);
  const auto mixes = SampleMixer(list, data.train.shape, 5).draw(0, order, 0, 6);
  for (std::size_t i = 0; i < 6; ++i) {
    const auto image_of = [&](std::int32_t sample) {
      return data.train.images.data() + static_cast<std::size_t>(sample) * 784;
    };
    std::vector<std::uint8_t> image(image_of(order[i]), image_of(order[i]) + 784), shown(784);
    cpu::mix_images(*plan, mixes[i], image_of(mixes[i].partner), image.data());
    for (std::size_t at = 0; at < 784; ++at)
      shown[at] =
          sheet.pixels[(i / 3 * 30 + at / 28) * static_cast<std::size_t>(sheet.width) + i % 3 * 30 + at % 28];
    ASSERT_EQ(shown, image) << i;
    const auto label_of = [&](std::int32_t sample) {
      return data.train.labels[static_cast<std::size_t>(sample)];
    };
    const LabelPair pair = mixed_labels(mixes[i], label_of(order[i]), label_of(mixes[i].partner));
    const std::string labels = mixes[i].is_mixed()
                                   ? fmt::format("{:.2f} {} + {:.2f} {}\n", 1 - pair.second.share, pair.first,
                                                 pair.second.share, pair.second.label)
                                   : fmt::format("{}\n", pair.first);
    expect_words(outcome.out, {fmt::format("row {}, column {}: {}", i / 3 + 1, i % 3 + 1, labels)});
  }
}

}  // namespace
}  // namespace lockstep::testing
