// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Sums of a device word by word: those that leave, those that come back, and the fingerprints of both.
#include "comm/device/device_gradient_reducer.hpp"
#include "comm/thread/thread_ranks.hpp"
#include "kernels/numerics/fingerprint.hpp"
#include "tests/kernels/device/rig.hpp"
#include "tests/support/saboteur.hpp"

namespace lockstep::test {
namespace {

using Words = std::vector<std::int64_t>;

/// As if another rank had the same sums, and saw no difference.
class EchoAllReduce final : public DeviceAllReduce {
 public:
  explicit EchoAllReduce(bool on_stream) : on_stream_(on_stream) {}

  std::string_view name() const override { return "echo"; }
  bool on_stream() const override { return on_stream_; }
  void all_reduce_into(Stream& stream, const std::int64_t* terms, std::int64_t* sums,
                       std::size_t count) override {
    Words words = download(stream, terms, count);
    sent.push_back(words);
    if (count > 1)  // not the count of differences
      for (std::int64_t& word : words) word *= 2;
    if (count > kCounterSlots) words[0] += added_to_counters;
    stream.copy_to_device(sums, words.data(), count * sizeof *sums);
    stream.synchronize();
  }
  void all_reduce_into(Stream& stream, const float* terms, float* sums, std::size_t count) override {
    std::vector<float> words = download(stream, terms, count);
    sent_floats.push_back(words);
    for (float& word : words) word *= 2;
    stream.copy_to_device(sums, words.data(), count * sizeof *sums);
    stream.synchronize();
  }
  void check() override {}

  std::vector<Words> sent;
  std::vector<std::vector<float>> sent_floats;
  std::int64_t added_to_counters = 0;  // on the way

 private:
  bool on_stream_;
};

Words twice(Words words) {
  for (std::int64_t& word : words) word *= 2;
  return words;
}

Words part_of(const Words& words, std::size_t first, std::size_t count) {
  const auto begin = words.begin() + static_cast<std::ptrdiff_t>(first);
  return {begin, begin + static_cast<std::ptrdiff_t>(count)};
}

Words words_of(std::span<const std::int64_t> words) {
  return {words.begin(), words.end()};
}

std::uint64_t fingerprint(const Words& words, std::size_t first) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < words.size(); ++i)
    sum += static_cast<std::uint64_t>(words[i]) * word_multiplier(kGradientBuffer, first + i);
  return sum;
}

/// Two tensors, of three and of two sums, in a bucket each. The last tensor leaves first.
class ComparedDeviceSumsTest : public ::testing::Test {
 protected:
  DeviceGradientReducer make(EchoAllReduce& all_reduce, Determinism determinism = Determinism::kWorld) {
    return {*device_, *ops_, &all_reduce, plan_, units_, determinism, sums_.data(), /*compares=*/true};
  }
  void load(const Words& words) {
    main_->copy_to_device(sums_.data(), words.data(), sums_.bytes());
    main_->synchronize();
  }
  Words loaded() { return download(*main_, sums_.data(), sums_.size()); }
  /// Sums 10, 20, ... behind the counters 100, 101, ...
  static Words terms(std::int64_t first_sum = 10) {
    Words words(kCounterSlots);
    std::iota(words.begin(), words.begin() + kStepCounters, 100);
    words.insert(words.end(), {first_sum, 20, 30, 40, 50});
    return words;
  }
  /// Fingerprints of both tensors.
  static SumFingerprints of_tensors(const Words& words) {
    return {fingerprint(part_of(words, kCounterSlots, 3), 0),
            fingerprint(part_of(words, kCounterSlots + 3, 2), 3)};
  }
  /// And of the counters.
  static SumFingerprints of_all(const Words& words) {
    SumFingerprints all = of_tensors(words);
    all.push_back(fingerprint(part_of(words, 0, kStepCounters), 5));
    return all;
  }
  /// Those that a rank sends on its way with its fingerprint, by bucket.
  static std::vector<Words> sent(Words words) {
    words[kFingerprintSlot] = static_cast<std::int64_t>(whole(of_all(words)));
    return {part_of(words, kCounterSlots + 3, 2), part_of(words, 0, kCounterSlots + 3)};
  }
  void reduce(DeviceGradientReducer& reducer) {
    reducer.begin();
    reducer.reduce_watched(*main_, *alone_, [] {});
  }
  SumRecord record_of_difference(DeviceGradientReducer& reducer) {
    try {
      reduce(reducer);
    } catch (const SumsDifferError& error) {
      return error.record();
    }
    ADD_FAILURE() << "not seen";
    return {};
  }

  std::unique_ptr<Device> device_ = platform_under_test().make_device(0);
  std::unique_ptr<DeviceOps> ops_ = platform_under_test().make_ops(*device_);
  std::unique_ptr<Stream> main_ = device_->make_stream();
  std::shared_ptr<Communicator> alone_ = make_lone_rank();
  std::vector<GradientRange> ranges_{{3, 2, 0}, {0, 3, 0}};
  BucketPlan plan_ = plan_buckets_of_size(ranges_, sizeof(std::int64_t), 1);
  GradientUnits units_{std::vector<std::size_t>{3, 2}, 1};
  DeviceBuffer<std::int64_t> sums_{*device_, kCounterSlots + 5};
};

TEST_F(ComparedDeviceSumsTest, BecomeThoseOfAllRanksAndTheirFingerprintsAreToldOnce) {
  for (const bool on_stream : {false, true}) {
    EchoAllReduce all_reduce(on_stream);
    DeviceGradientReducer reducer = make(all_reduce);
    if (on_stream) reducer.hold_buckets(true);
    std::vector<Words> expected = sent(terms());
    if (!on_stream) expected.push_back({0});  // ranks that saw a difference
    for (int step = 0; step < 2; ++step) {
      all_reduce.sent.clear();
      load(terms());
      reducer.begin();
      reducer.ready(*main_, 3, 2);
      reducer.finish(*main_);
      EXPECT_TRUE(all_reduce.sent.empty());
      int waits = 0;
      reducer.reduce_watched(*main_, *alone_, [&] {
        ++waits;
        EXPECT_EQ(all_reduce.sent.size(), 2U) << "waits for what is not queued";
      });
      EXPECT_EQ(waits, on_stream ? 1 : 0);
      EXPECT_EQ(all_reduce.sent, expected);
      EXPECT_EQ(loaded(), twice(terms()));
      const SumFingerprints own = of_tensors(terms());
      EXPECT_EQ(reducer.own_fingerprints(), own);
      EXPECT_EQ(reducer.take_fingerprints_that_left(), std::vector{whole(own)});
      EXPECT_EQ(reducer.take_fingerprints_that_left(), std::vector<std::uint64_t>());
    }
    load(terms(11));
    EXPECT_EQ(reducer.take_replayed(*main_), of_tensors(terms(11)));
    EXPECT_EQ(reducer.own_fingerprints(), of_tensors(terms())) << "those of the replay";
    EXPECT_EQ(loaded(), twice(terms())) << "the result was not put back";
  }
}

TEST_F(ComparedDeviceSumsTest, CountersThatChangedOnTheirWayAreSeen) {
  for (const bool on_stream : {false, true}) {
    EchoAllReduce all_reduce(on_stream);
    all_reduce.added_to_counters = 1;
    DeviceGradientReducer reducer = make(all_reduce);
    if (on_stream) reducer.hold_buckets(true);
    load(terms());
    const SumRecord record = record_of_difference(reducer);
    Words arrived = twice(terms());
    arrived[0] += 1;
    EXPECT_EQ(record.left, of_all(terms()));
    EXPECT_EQ(record.kept, of_all(terms()));
    EXPECT_EQ(record.arrived, of_all(arrived));
  }
}

TEST_F(ComparedDeviceSumsTest, ADifferenceThatAnotherRankSawStopsThisOne) {
  run_thread_ranks(2, [&](Communicator& comm) {
    std::int64_t differs = 1;
    if (comm.rank() == 1) return comm.all_reduce(std::span(&differs, 1));
    EchoAllReduce all_reduce(/*on_stream=*/true);
    DeviceGradientReducer reducer = make(all_reduce);
    reducer.hold_buckets(true);
    load(terms());
    reducer.begin();
    EXPECT_THROW(reducer.reduce_watched(*main_, comm, [] {}), SumsDifferError);
  });
}

TEST_F(ComparedDeviceSumsTest, AnObserverSeesThemLeaveAndArrive) {
  for (const bool on_stream : {false, true}) {
    EchoAllReduce all_reduce(on_stream);
    DeviceGradientReducer reducer = make(all_reduce);
    if (on_stream) reducer.hold_buckets(true);
    load(terms());
    reduce(reducer);
    int shown = 0;
    std::int64_t change = 0;
    const auto look = [&](const ShownSums& sums, std::int64_t factor) {
      ++shown;
      EXPECT_EQ(sums.first, 0U);
      EXPECT_EQ(sums.all, 5U);
      EXPECT_EQ(words_of(sums.sums),
                (Words{factor * (shown == 4 ? 11 : 10), factor * 20, factor * 30, factor * 40, factor * 50}));
    };
    Saboteur<SumObserver> observer(
        [&](const ShownSums& sums) {
          look(sums, 1);
          EXPECT_EQ(words_of(sums.before), (Words{20, 40, 60, 80, 100}));
          sums.sums.front() += change;
        },
        [&](const ShownSums& sums) { look(sums, 2); });
    reducer.show_to(observer);
    load(terms());
    reduce(reducer);
    EXPECT_EQ(loaded(), twice(terms()));
    change = 1;
    load(terms());
    const SumRecord record = record_of_difference(reducer);
    EXPECT_EQ(shown, 4);
    EXPECT_EQ(record.left, of_all(terms()));
    EXPECT_EQ(record.kept, of_all(terms(11)));
    EXPECT_EQ(record.arrived, of_all(twice(terms(11))));
  }
}

TEST_F(ComparedDeviceSumsTest, BucketsThatAreNotHeldLeaveOnceTheyAreThereAndAreNotCompared) {
  EchoAllReduce all_reduce(/*on_stream=*/true);
  DeviceGradientReducer reducer = make(all_reduce);
  for (int step = 0; step < 2; ++step) {
    all_reduce.sent.clear();
    load(terms());
    reducer.begin();
    reducer.ready(*main_, 3, 2);
    EXPECT_EQ(all_reduce.sent, (std::vector<Words>{{40, 50}}));
    reducer.ready(*main_, 0, 3);
    EXPECT_EQ(all_reduce.sent.size(), 2U);
    reducer.reduce_watched(*main_, *alone_, [] { ADD_FAILURE() << "waits"; });
    EXPECT_EQ(all_reduce.sent.size(), 2U);
    EXPECT_EQ(loaded(), twice(terms()));
    EXPECT_EQ(reducer.take_fingerprints_that_left(), std::vector<std::uint64_t>());
  }
}

TEST_F(ComparedDeviceSumsTest, OtherSumsGoTheWayOfTheBuckets) {
  for (const bool on_stream : {false, true}) {
    EchoAllReduce all_reduce(on_stream);
    DeviceGradientReducer reducer = make(all_reduce);
    load(terms());
    reducer.sum(*main_, sums_.data(), 2);
    EXPECT_EQ(all_reduce.sent, (std::vector<Words>{{100, 101}}));
    EXPECT_EQ(part_of(loaded(), 0, 3), (Words{200, 202, 102}));
  }
}

TEST_F(ComparedDeviceSumsTest, FloatsHaveTheUnitsOfTheirTensorsAndCountersStayWhole) {
  const std::vector<std::int16_t> exponents{-1, -1, -1, 1, 1};
  for (const bool on_stream : {false, true}) {
    EchoAllReduce all_reduce(on_stream);
    DeviceGradientReducer reducer = make(all_reduce, Determinism::kOff);
    const auto on_device = upload(*device_, *main_, exponents);
    reducer.set_exponents(on_device.data());
    load(terms());
    reduce(reducer);
    EXPECT_EQ(all_reduce.sent_floats, (std::vector<std::vector<float>>{{80, 100}, {5, 10, 15}}));
    EXPECT_EQ(all_reduce.sent, std::vector<Words>(1, part_of(terms(), 0, kCounterSlots)));
    EXPECT_EQ(download(*main_, reducer.fp32_sums(), 5), (std::vector<float>{10, 20, 30, 160, 200}));
    EXPECT_EQ(part_of(loaded(), 0, kCounterSlots), part_of(twice(terms()), 0, kCounterSlots));
  }
}

TEST_F(ComparedDeviceSumsTest, ATimelineHasEachBucketOnATrackOfTheirStream) {
  Timeline timeline;
  DeviceTimeline marks(*device_);
  marks.record_into(&timeline);
  EchoAllReduce all_reduce(/*on_stream=*/true);
  DeviceGradientReducer reducer = make(all_reduce);
  load(terms());
  for (DeviceTimeline* const into : {&marks, static_cast<DeviceTimeline*>(nullptr)}) {
    reducer.record_into(into);
    timeline.open();
    marks.begin_step(*main_);
    reducer.begin();
    reducer.finish(*main_);
    main_->synchronize();
    marks.end_step();
    timeline.close();
    std::string said;
    for (const TimeSlice& slice : timeline.slices())
      said += timeline.tracks()[slice.track].name + ": " + describe(slice) + "\n";
    EXPECT_EQ(said, into == nullptr ? ""
                                    : "device: buckets: bucket 0 all-reduce\n"
                                      "device: buckets: bucket 1 all-reduce\n");
  }
}

}  // namespace
}  // namespace lockstep::test
