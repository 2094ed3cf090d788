// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Sums of a device: when they leave, on which stream, and where they are compared.
#include "comm/device/device_gradient_reducer.hpp"

#include "tests/support/late_device.hpp"
#include "tests/support/lone_all_reduce.hpp"
#include "tests/support/messages.hpp"

namespace lockstep::test {
namespace {

/// One tensor of four sums in one bucket.
class DeviceGradientReducerTest : public ::testing::Test {
 protected:
  static constexpr std::size_t kSize = 4;
  enum class Way { kNone, kHost, kStream };

  DeviceGradientReducer make(Way way, Determinism determinism = Determinism::kWorld, bool compares = false) {
    all_reduce_ = std::make_unique<LoneAllReduce>(*device_, kCounterSlots + kSize, way == Way::kStream);
    return {*device_,     *ops_,   way == Way::kNone ? nullptr : all_reduce_.get(),
            plan_,        units_,  determinism,
            sums_.data(), compares};
  }

  std::unique_ptr<Device> device_ = platform_under_test().make_device(0);
  std::unique_ptr<DeviceOps> ops_ = platform_under_test().make_ops(*device_);
  std::unique_ptr<Stream> main_ = device_->make_stream();
  BucketPlan plan_ = plan_buckets_of_size({{{0, kSize, 0}}}, sizeof(std::int64_t), 1);
  GradientUnits units_{std::vector{kSize}, 1};
  DeviceBuffer<std::int64_t> sums_{*device_, kCounterSlots + kSize};
  std::unique_ptr<LoneAllReduce> all_reduce_;
};

TEST_F(DeviceGradientReducerTest, AllThatRanksSumOnStreamsIsOnOneStream) {
  DeviceGradientReducer reducer = make(Way::kStream);
  reducer.begin();
  reducer.sum(*main_, sums_.data(), 2);
  reducer.ready(*main_, 0, kSize);
  reducer.finish(*main_);
  main_->synchronize();
  EXPECT_EQ(all_reduce_->calls(), 2);
  EXPECT_EQ(all_reduce_->streams().size(), 1);
  EXPECT_FALSE(all_reduce_->streams().contains(main_.get()));
}

TEST_F(DeviceGradientReducerTest, OneRankSumsNothing) {
  DeviceGradientReducer reducer = make(Way::kNone, Determinism::kWorld, true);
  EXPECT_FALSE(reducer.on_host() || reducer.compares_sums());
  reducer.begin();
  reducer.ready(*main_, 0, kSize);
  reducer.sum(*main_, sums_.data(), 2);
  reducer.finish(*main_);
  EXPECT_EQ(reducer.take_fingerprints_that_left(), std::vector<std::uint64_t>());
}

TEST_F(DeviceGradientReducerTest, ComparesExactSumsOnTheHostAndOnStreamsWhereItIsAsked) {
  struct Row {
    Way way;
    Determinism determinism;
    bool asked, compares;
  };
  for (const Row& row :
       {Row{Way::kHost, Determinism::kWorld, false, true}, Row{Way::kHost, Determinism::kOff, true, false},
        Row{Way::kStream, Determinism::kWorld, false, false},
        Row{Way::kStream, Determinism::kWorld, true, true},
        Row{Way::kStream, Determinism::kOff, true, false}}) {
    DeviceGradientReducer reducer = make(row.way, row.determinism, row.asked);
    EXPECT_EQ(reducer.on_host(), row.way == Way::kHost);
    EXPECT_EQ(reducer.compares_sums(), row.compares);
    EXPECT_EQ(reducer.fp32_sums() != nullptr, row.determinism == Determinism::kOff);
    if (row.compares) {
      EXPECT_NO_THROW(reducer.require_compared_sums());
    } else {
      expect_error<ConfigError>([&] { reducer.require_compared_sums(); },
                                {"sums that do not go by way of the host cannot be reached"});
    }
    if (row.compares && row.way == Way::kStream) {
      EXPECT_NO_THROW(reducer.hold_buckets(true));
    } else {
      EXPECT_THROW(reducer.hold_buckets(true), InternalError);
    }
    if (row.way == Way::kStream) {
      EXPECT_THROW(reducer.reduce(*main_), InternalError);
    }
  }
}

TEST_F(DeviceGradientReducerTest, AHeldBucketDoesNotLeaveByItself) {
  DeviceGradientReducer reducer = make(Way::kStream, Determinism::kWorld, true);
  for (const bool held : {true, false}) {
    reducer.hold_buckets(held);
    reducer.begin();
    reducer.ready(*main_, 0, kSize);
    reducer.finish(*main_);
    EXPECT_EQ(all_reduce_->calls(), held ? 0 : 1);
  }
  main_->synchronize();
}

TEST_F(DeviceGradientReducerTest, CountersTravelBesideSumsOfFloats) {
  DeviceGradientReducer reducer = make(Way::kStream, Determinism::kOff);
  main_->fill_zero(sums_.data(), sums_.bytes());
  reducer.begin();
  reducer.finish(*main_);
  main_->synchronize();
  EXPECT_EQ(all_reduce_->calls(), 2);
}

TEST_F(DeviceGradientReducerTest, RangesBeyondThePlanAreRefused) {
  DeviceGradientReducer reducer = make(Way::kStream);
  reducer.begin();
  expect_error<InternalError>([&] { reducer.ready(*main_, kSize, 1); }, {"no bucket holds this gradient"});
  EXPECT_THROW(reducer.ready(*main_, 0, kSize + 1), InternalError);
  reducer.ready(*main_, 0, 2);
  EXPECT_THROW(reducer.ready(*main_, 2, 2), InternalError) << "the bucket has one range";
  EXPECT_EQ(all_reduce_->calls(), 0);
}

/// Sums come back twice as large, late.
class LateDoubling final : public DeviceAllReduce {
 public:
  std::string_view name() const override { return "late"; }
  bool on_stream() const override { return true; }
  void all_reduce_into(Stream& stream, const std::int64_t* terms, std::int64_t* sums,
                       std::size_t count) override {
    dynamic_cast<LateStream&>(stream).queue([=] {
      for (std::size_t i = 0; i < count; ++i) sums[i] = 2 * terms[i];
    });
  }
  void all_reduce_into(Stream& /*stream*/, const float* /*terms*/, float* /*sums*/,
                       std::size_t /*count*/) override {
    ADD_FAILURE() << "sums of floats";
  }
  void check() override {}
};

TEST_F(DeviceGradientReducerTest, SumsOnStreamsFollowWhatIsQueuedAndComeBeforeWhatIsQueuedLater) {
  const std::vector<GradientRange> ranges{{3, 2, 0}, {0, 3, 0}};
  const BucketPlan plan = plan_buckets_of_size(ranges, sizeof(std::int64_t), 1);
  const GradientUnits units(std::vector<std::size_t>{3, 2}, 1);
  constexpr std::size_t kWords = kCounterSlots + 5;
  std::vector<std::int64_t> terms(kWords), doubled, seen(kWords), seen_words(2);
  std::iota(terms.begin(), terms.end(), 1);
  for (const std::int64_t term : terms) doubled.push_back(2 * term);
  for (const bool newest_first : {false, true}) {
    SCOPED_TRACE(newest_first);
    LateDevice late;
    Device& device = late;
    LateDoubling all_reduce;
    const auto stream = device.make_stream();
    const DeviceBuffer<std::int64_t> sums(device, kWords), words(device, 2);
    DeviceGradientReducer reducer(device, *ops_, &all_reduce, plan, units, Determinism::kWorld, sums.data(),
                                  /*compares=*/false);
    stream->copy_to_device(words.data(), terms.data(), words.bytes());
    reducer.sum(*stream, words.data(), words.size());
    stream->copy_to_host(seen_words.data(), words.data(), words.bytes());
    reducer.begin();
    constexpr std::size_t kFirst =
        kCounterSlots + 3;  // the bucket that leaves by itself; the other one is missing
    stream->copy_to_device(sums.data() + kFirst, &terms[kFirst], 2 * sizeof(std::int64_t));
    reducer.ready(*stream, 3, 2);
    stream->copy_to_device(sums.data(), terms.data(), kFirst * sizeof(std::int64_t));
    reducer.finish(*stream);
    stream->copy_to_host(seen.data(), sums.data(), sums.bytes());
    late.run_all(newest_first);
    EXPECT_EQ(seen_words, (std::vector<std::int64_t>{2, 4}));
    EXPECT_EQ(seen, doubled);
  }
}

}  // namespace
}  // namespace lockstep::test
