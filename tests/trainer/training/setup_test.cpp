// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Setup of a job: checks of each strategy, and options that reach its steps.
#include "tests/support/messages.hpp"
#include "tests/trainer/training/setup_fixture.hpp"

namespace lockstep::setup_test {
namespace {

TEST(HogwildChecksTest, ItNeedsCpusOfOneHost) {
  const Job job = job_of("hogwild");
  EXPECT_EQ(refusal_of(job, 2), "");
  EXPECT_EQ(refusal_of(job, 2, emulated_gpu()),
            "parallel.strategy: hogwild trains on CPUs, and parallel.device chose Emulated GPU; add "
            "parallel.device=cpu");
  const Network network = six_layers();
  run_thread_ranks(2, [&](Communicator& comm) {
    EXPECT_EQ(test::error_of<OptionError>([&] {
                find_strategy(job).setup.check(job, network, samples_of(network, 128), {}, LonelyRank(comm));
              }),
              "parallel.strategy: hogwild shares the memory of one host, and 1 of 2 ranks are on " +
                  comm.host() + "; start all ranks on one host, or use parallel.strategy=data");
    EXPECT_TRUE(find_strategy(job).setup.plan(job, network, {}, comm).buckets.empty());
  });
}

TEST(DataParallelChecksTest, AGpuDoesNotRecompute) {
  Job job = job_of("data");
  EXPECT_EQ(refusal_of(job, 1, emulated_gpu()), "");
  job.train.recompute = true;
  EXPECT_EQ(refusal_of(job, 1), "");
  EXPECT_EQ(refusal_of(job, 1, emulated_gpu()),
            "train.recompute: a GPU keeps all activations; remove the key, and where they do not fit, use "
            "data.micro_batch, more GPUs, or parallel.device=cpu");
}

/// Epochs are of two steps.
TEST(SamplingChecksTest, ARunIsLongEnoughForItsPatienceAndWarmup) {
  for (const char* strategy : {"data", "hogwild"}) {
    Job job = job_of(strategy);
    job.train.patience = 1;
    EXPECT_EQ(refusal_of(job, 1), "");
    job.train.max_steps = 2;
    EXPECT_EQ(refusal_of(job, 1), "");
    job.train.max_steps = 1;
    const std::string too_short =
        "train.patience: a run of train.max_steps=1 ends before its first evaluation, which is after 2 "
        "steps; set train.evaluate_every_steps=1 or less, or leave train.patience out";
    EXPECT_EQ(refusal_of(job, 1), too_short);
    job.train.evaluate_every_steps = 5;
    EXPECT_EQ(refusal_of(job, 1), too_short);
    job.train.evaluate_every_steps = 1;
    EXPECT_EQ(refusal_of(job, 1), "");
    job.train.evaluate_every_steps = 0;
    job.train.patience = 0;
    EXPECT_EQ(refusal_of(job, 1), "");
    job.train.max_steps = 0;
    job.train.epochs = 3;
    job.train.schedule.warmup_steps = 6;
    EXPECT_EQ(
        refusal_of(job, 1),
        "train.schedule.warmup_steps: 6 is not shorter than the run, which has 6 steps (train.epochs: 3 "
        "of 2)");
    job.train.schedule.warmup_steps = 5;
    EXPECT_EQ(refusal_of(job, 1), "");
    job.train.freeze = {"nothing"};
    EXPECT_EQ(refusal_of(job, 1).substr(0, 14), "train.freeze: ");
    job.train.freeze = {};
    EXPECT_NE(refusal_of(job, 5), "") << "four grains";
  }
}

TEST(PlacesTest, StagesMayFollowFromTheStrategyAlone) {
  Job job;
  const auto text = [&](const char* option) { return std::string(with_place(job, {option, "no"}).what()); };
  EXPECT_EQ(text("parallel.stages"), "parallel.stages: no");
  job.places["parallel.strategy"] = "job.yaml:3:5: ";
  EXPECT_EQ(text("parallel.stages"), "job.yaml:3:5: parallel.stages: no");
  EXPECT_EQ(text("parallel.placement"), "job.yaml:3:5: parallel.placement: no");
  EXPECT_EQ(text("train.freeze"), "train.freeze: no");
  job.places["parallel.stages"] = "job.yaml:4:5: ";
  EXPECT_EQ(text("parallel.stages"), "job.yaml:4:5: parallel.stages: no");
}

TEST(PlanBucketsTest, ASizeThatIsGivenCounts) {
  const Network network = six_layers();
  run_thread_ranks(1, [&](Communicator& comm) {
    Job job = job_of("data");
    const auto buckets = [&](const DeviceChoice& device) {
      return plan_buckets(job, network, device, comm).buckets.size();
    };
    EXPECT_EQ(buckets({}), 1U);
    EXPECT_EQ(buckets(emulated_gpu()), 1U);
    job.parallel.bucket_bytes = 1;
    EXPECT_EQ(buckets({}), 3U);
    EXPECT_EQ(buckets(emulated_gpu()), 3U);
  });
}

TEST(ArithmeticTest, KernelsOfTheVendorHaveTheirs) {
  Job job;
  EXPECT_EQ(arithmetic_of(job, 10, emulated_gpu()), Arithmetic::kCanonical);
  job.parallel.kernels = Kernels::kVendor;
  EXPECT_EQ(arithmetic_of(job, 10, emulated_gpu()), Arithmetic::kVendor);
  EXPECT_EQ(arithmetic_of(job, 10, {}), Arithmetic::kCanonical);
  EXPECT_EQ(describe(Arithmetic::kVendor), "that of cuDNN and cuBLAS");
  EXPECT_EQ(describe(static_cast<Arithmetic>(99)), "version 99, which this program does not know");
  EXPECT_EQ(how_to_have(Arithmetic::kVendor, Arithmetic::kCanonical),
            "--device cuda --kernels vendor, on such a GPU");
  EXPECT_EQ(how_to_have(Arithmetic::kSmoothedPair, Arithmetic::kVendor),
            "the kernels of this program: leave out --kernels vendor");
  EXPECT_EQ(how_to_have(static_cast<Arithmetic>(99), Arithmetic::kVendor), "the version that made it");
}

TEST(SetUpTest, TheJobsOptionsReachItsSteps) {
  Job job = job_of("data");
  job.model = "linear";
  job.train.seed = 77;
  job.data.on_device = OnDevice::kStream;
  job.data.augment = {{.kind = AugmentKind::kFlip}, {.kind = AugmentKind::kMixup, .values = {{{1, 1}}}}};
  job.parallel.graph = GraphUse::kOff;
  const TrainingOptions options = training_options(job);
  EXPECT_EQ(options.seed, 77U);
  EXPECT_TRUE(options.mixes && options.fingerprints && !options.recompute);
  const DatasetFuture data = load_in_advance(job);
  for (const bool on_gpu : {false, true}) {
    job.parallel.device = on_gpu ? "emulated" : "cpu";
    run_thread_ranks(1, [&](Communicator& comm) {
      const JobSetup setup = set_up(job, comm, data);
      EXPECT_EQ(setup.streams, on_gpu);
      EXPECT_EQ(setup.on_device().streams, on_gpu);
      EXPECT_EQ(setup.on_device().graph, GraphUse::kOff);
      EXPECT_EQ(setup.processor, setup.device.description);
      EXPECT_TRUE(setup.augment.has_value() && setup.mixer.mixes());
      EXPECT_EQ(setup.fingerprints, data.get().fingerprints);
      EXPECT_EQ(setup.network.input_shape(), kInput);
    });
  }
  run_thread_ranks(1, [&](Communicator& comm) {
    const JobSetup setup =
        set_up(job, comm, data, kDataParallelSetup, [](const Dataset&) { return six_layers(); });
    EXPECT_EQ(setup.network.layers().size(), 6U);
  });
  Dataset features;
  features.shape = kInput;
  EXPECT_EQ(message_of<ConfigError>([&] { augment_plan_of(job, features); }),
            "data.augment: only images of bytes can be augmented, and this set has features; remove "
            "data.augment");
}

}  // namespace
}  // namespace lockstep::setup_test
