// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A ring of samples. Each step's are there when they are awaited and as long as they are in use, whatever
/// comes after them; and a disk that fails or hangs ends the wait.
#include "comm/thread/thread_ranks.hpp"
#include "tests/support/messages.hpp"
#include "tests/trainer/training/sample_ring_fixture.hpp"

namespace lockstep::sample_ring_test {
namespace {

TEST_F(SampleRingTest, AStepsSamplesAreThereAndStayWhileItIsUnderWay) {
  run_thread_ranks(1, [&](Communicator& comm) {
    const auto ring = make_ring();
    for (const std::int64_t first : {0, 0, 2}) {  // again from the start, and further on
      for (std::int64_t step = first; step < 5; ++step) {
        ring->begin(step);
        ring->await(comm, *stream_, step + 1);
        std::this_thread::sleep_for(std::chrono::milliseconds(5));  // the ring fills up
        EXPECT_EQ(samples_of(*ring, step), expected(step));
      }
    }
  });
}

TEST_F(SampleRingTest, LateCopiesAreThereWhenTheirStepIsAwaited) {
  stream_.reset();
  device_ = std::make_unique<testing::HeldDevice>();
  stream_ = device_->make_stream();
  run_thread_ranks(1, [&](Communicator& comm) {
    const auto ring = make_ring();
    ring->begin(0);
    ring->await(comm, *stream_, 2);
    for (const std::int64_t step : {0, 1}) EXPECT_EQ(samples_of(*ring, step), expected(step));
  });
}

TEST_F(SampleRingTest, OthersLieBesideThoseOfSteps) {
  run_thread_ranks(1, [&](Communicator& comm) {
    SampleRing ring(*device_, set_, {.columns = kColumns, .steps = kRingSteps, .spare_columns = 2},
                    evaluated_rows(0, kStoredSamples, kColumns));
    ring.begin(0);
    ring.await(comm, *stream_, kRingSteps);
    const std::vector<std::int32_t> others{22, 7};
    const StreamedRows rows = ring.load_now(*stream_, others);
    std::vector<std::uint8_t> bytes(8);
    stream_->copy_to_host(bytes.data(), ring.data() + 4 * rows.first, bytes.size());
    stream_->synchronize();
    EXPECT_EQ(bytes, (std::vector<std::uint8_t>{22, 22, 22, 22, 7, 7, 7, 7}));
    for (std::int64_t step = 0; step < kRingSteps; ++step) EXPECT_EQ(samples_of(ring, step), expected(step));
  });
}

TEST_F(SampleRingTest, OthersStayAsLongAsTheyAreInUse) {
  SampleRing ring(*device_, set_, {.columns = kColumns, .steps = kRingSteps, .spare_columns = 1},
                  evaluated_rows(0, kStoredSamples, kColumns));
  LateStream late(device_->make_stream());
  std::array<std::uint8_t, 2> found{};
  for (std::size_t i = 0; i < found.size(); ++i) {
    const std::array others{static_cast<std::int32_t>(20 + i)};
    const StreamedRows rows = ring.load_now(late, others);
    late.copy_to_host(&found[i], ring.data() + 4 * rows.first, 1);
  }
  late.synchronize();
  EXPECT_EQ(found, (std::array<std::uint8_t, 2>{20, 21}));
}

TEST_F(SampleRingTest, AnErrorComesWithTheStepThatNeedsIt) {
  run_thread_ranks(1, [&](Communicator& comm) {
    store_->broken = 2 * kColumns + 1;
    const auto ring = make_ring();
    ring->begin(0);
    ring->await(comm, *stream_, 2);
    EXPECT_EQ(samples_of(*ring, 1), expected(1));
    EXPECT_THROW(ring->await(comm, *stream_, 3), IoError);
    store_->broken = -1;
    ring->begin(2);
    ring->await(comm, *stream_, 3);
    EXPECT_EQ(samples_of(*ring, 2), expected(2)) << "the disk is back";
  });
}

/// Those of a step are made ready while the step before it is read.
TEST_F(SampleRingTest, AsksForTheRowsOfEachStepOnceAndInOrder) {
  std::vector<std::int64_t> asked, ready(3 * kColumns);
  std::iota(ready.begin(), ready.end(), kColumns);
  const auto rows_of = [&](std::int64_t step) {
    asked.push_back(step);
    return evaluated_rows(0, kStoredSamples, kColumns)(step);
  };
  run_thread_ranks(1, [&](Communicator& comm) {
    SampleRing ring(*device_, set_, {.columns = kColumns, .steps = kRingSteps}, rows_of);
    ring.begin(0);
    ring.await(comm, *stream_, kRingSteps);
    EXPECT_EQ(asked, (std::vector<std::int64_t>{0, 1, 2, 3}));
    EXPECT_EQ(store_->prefetched, ready);
  });
}

TEST_F(SampleRingTest, WhatIsReadWhileAnotherStepBeginsIsDropped) {
  run_thread_ranks(1, [&](Communicator& comm) {
    const auto ring = make_ring();
    store_->hangs = true;
    ring->begin(0);
    while (!store_->is_asked) std::this_thread::yield();
    ring->begin(4);
    store_->hangs = false;
    ring->await(comm, *stream_, 5);
    EXPECT_EQ(samples_of(*ring, 4), expected(4));
  });
}

TEST_F(SampleRingTest, AStepOfMoreRowsThanItHasRoomForIsRefused) {
  run_thread_ranks(1, [&](Communicator& comm) {
    SampleRing ring(*device_, set_, {.columns = kColumns, .steps = kRingSteps},
                    evaluated_rows(0, kStoredSamples, kColumns + 1));
    ring.begin(0);
    EXPECT_THROW(ring.await(comm, *stream_, 1), InternalError);
  });
}

TEST_F(SampleRingTest, ADiskThatHangsIsNamedBeforeTheDeadline) {
  std::string message;
  run_thread_ranks(
      1,
      [&](Communicator& comm) {
        store_->hangs = true;
        const auto ring = make_ring();
        ring->begin(0);
        message = message_of<IoError>([&] { ring->await(comm, *stream_, 1); });
        store_->hangs = false;
      },
      std::chrono::duration<double>(0.3));
  EXPECT_TRUE(
      message.starts_with("counted train: no samples came for 0.27 s; check the disk, or the network "
                          "that it is on, or raise "))
      << message;
}

TEST_F(SampleRingTest, BeginsAnywhereAndKnowsItsEnd) {
  run_thread_ranks(1, [&](Communicator& comm) {
    const auto ring = make_ring();
    EXPECT_THROW(ring->await(comm, *stream_, 1), InternalError) << "nothing has begun";
    ring->begin(0);
    ring->await(comm, *stream_, kRingSteps);
    EXPECT_THROW(ring->await(comm, *stream_, kRingSteps + 1), InternalError) << "more than it holds";
    ring->begin(5);  // beyond what has come
    ring->await(comm, *stream_, 6);
    EXPECT_EQ(samples_of(*ring, 5)[2], kStoredSamples - 1);
    EXPECT_THROW(ring->await(comm, *stream_, 7), InternalError) << "behind the last one";
    ring->begin(0);
    ring->await(comm, *stream_, 1);
    EXPECT_EQ(samples_of(*ring, 0), expected(0));
  });
}

using RowNumbers = std::array<std::int64_t, 4>;  // first, partners, step_rows, steps

RowNumbers numbers(const StreamedRows& rows) {
  return {rows.first, rows.partners, rows.step_rows, rows.steps};
}

TEST_F(SampleRingTest, PartnersLieBehindTheSamplesOfTheirStepAndSpareRowsBehindAll) {
  SampleRing ring(*device_, set_,
                  {.columns = kColumns, .has_pairs = true, .steps = kRingSteps, .spare_columns = 2},
                  evaluated_rows(0, kStoredSamples, kColumns));
  EXPECT_EQ(ring.sizes().all_rows(), 3 * 8 + 4);
  EXPECT_EQ((RingSizes{.columns = 4, .steps = 3}.all_rows()), 3 * 4);
  EXPECT_EQ(numbers(ring.rows_by_state(3)), (RowNumbers{3, 4, 8, 3}));
  EXPECT_EQ(numbers(ring.rows_of_step(4, 1)), (RowNumbers{1 * 8 + 1, 4, 0, 1}));
  EXPECT_EQ(numbers(ring.load_now(*stream_, std::vector<std::int32_t>(4))), (RowNumbers{3 * 8, 2, 0, 1}));
  EXPECT_THROW(ring.load_now(*stream_, std::vector<std::int32_t>(5)), InternalError);
}

TEST_F(SampleRingTest, HasColumnsAndAtLeastTwoSteps) {
  for (const RingSizes& sizes : {RingSizes{.columns = 0, .steps = 2}, RingSizes{.columns = 1, .steps = 1}})
    EXPECT_THROW(SampleRing(*device_, set_, sizes, evaluated_rows(0, 1, 1)), InternalError);
  EXPECT_NO_THROW(SampleRing(*device_, set_, RingSizes{.columns = 1, .steps = 2}, evaluated_rows(0, 1, 1)));
}

TEST(RingStepsTest, AreAsManyAs128MiBHoldFromTwoTo32) {
  constexpr std::uint64_t kMebibyte = std::uint64_t{1} << 20;
  EXPECT_EQ(training_ring_steps(0), 32);
  EXPECT_EQ(training_ring_steps(4 * kMebibyte), 32);
  EXPECT_EQ(training_ring_steps(4 * kMebibyte + 1), 31);
  EXPECT_EQ(training_ring_steps(42 * kMebibyte), 3);
  EXPECT_EQ(training_ring_steps(1000 * kMebibyte), 2);
}

TEST(RingStepsTest, BatchesOfEvaluationsHave32MiBAtMost) {
  EXPECT_EQ(streamed_at_once(1000, 784), 1000);
  EXPECT_EQ(streamed_at_once(1000, 335'544), 100);
  EXPECT_EQ(streamed_at_once(1000, 335'545), 99);
  EXPECT_EQ(streamed_at_once(1000, std::uint64_t{1} << 30), 1);
  EXPECT_EQ(streamed_at_once(0, 784), 1) << "of an empty set";
  EXPECT_EQ(streamed_at_once(1000, 0), 1000);
}

// Rows of samples, by the number of a step.

using Rows = std::vector<std::int32_t>;

TEST(RowsOfStepsTest, OfAnEvaluationAreNeighboursUpToTheEndOfTheShare) {
  const auto rows = evaluated_rows(3, 10, 4);
  EXPECT_EQ(rows(0), (Rows{3, 4, 5, 6}));
  EXPECT_EQ(rows(1), (Rows{7, 8, 9}));
  EXPECT_EQ(rows(2), std::nullopt);
  EXPECT_EQ(evaluated_rows(3, 11, 4)(2), std::nullopt) << "the last batch is full";
}

TEST(RowsOfStepsTest, PartnersComeBehindAllColumns) {
  const Rows order{5, 3, 1, 0};
  EXPECT_EQ(rows_of_places(SampleMixer(), 2, order, 1, 2, 4), (Rows{3, 1}));
  const SampleMixer mixer({{.kind = AugmentKind::kMixup, .values = {{{1, 1}, {1, 1}}}}}, kShape, 7);
  const std::vector<SampleMix> mixes = mixer.draw(2, order, 1, 2);
  ASSERT_EQ(mixes.size(), 2U);
  Rows expected{3, 1, 1, 1};
  for (std::size_t i = 0; i < 2; ++i)
    expected.push_back(mixes[i].is_mixed() ? mixes[i].partner : order[1 + i]);
  EXPECT_EQ(rows_of_places(mixer, 2, order, 1, 2, 4), expected);
  EXPECT_EQ(rows_of_places(mixer, 2, order, 1, 0, 4), Rows());
}

/// Three grains a step, in an epoch's last one two: the second of two ranks has two, and then one.
TEST(RowsOfStepsTest, OfTrainingAreTheRanksShareEpochAfterEpoch) {
  const DistributedSampler::Options options{
      .samples = 10, .global_batch = 6, .grain = 2, .seed = 3, .rank = 1, .world_size = 2};
  DistributedSampler sampler(options);
  const auto rows = training_rows(sampler, SampleMixer(), 4);
  for (std::int64_t step = 0; step < 4; ++step) {
    sampler.set_epoch(step / 2);
    const auto share = step % 2 == 0 ? sampler.order().subspan(2, 4) : sampler.order().subspan(8, 2);
    EXPECT_EQ(rows(step), Rows(share.begin(), share.end())) << step;
  }
  const DistributedSampler idle(
      {.samples = 8, .global_batch = 6, .grain = 2, .seed = 3, .rank = 0, .world_size = 3});
  EXPECT_EQ(training_rows(idle, SampleMixer(), 2)(1), Rows()) << "no grain of the last batch";
}

}  // namespace
}  // namespace lockstep::sample_ring_test
