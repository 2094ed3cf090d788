// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "kernels/device_buffer.hpp"
#include "tests/comm/device_checks.hpp"
#include "tests/comm/known_sums.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::testing {
namespace {

// Nothing, less than an element a rank, odd; one piece of 1 MiB of int64 and its edge; several pieces.
constexpr std::size_t kCounts[] = {0, 1, 3, 1000, 131072, 131073, 300001};

/// A stream, a buffer on the device and, on either side of it, elements that must stay as they are.
template <typename T>
class GuardedBuffer {
 public:
  GuardedBuffer(const DeviceRank& rank, std::size_t count)
      : rank_(rank),
        stream_(rank.device.make_stream()),
        done_(rank.device.make_event()),
        memory_(rank.device, count + 2 * kGuards),
        count_(count) {}

  Stream& stream() { return *stream_; }
  T* data() { return memory_.data() + kGuards; }
  std::size_t count() const { return count_; }

  /// Blocks until it is there.
  void load(const std::vector<T>& values) {
    std::vector<T> all(memory_.size(), kGuard);
    std::copy(values.begin(), values.end(), all.begin() + kGuards);
    stream_->copy_to_device(memory_.data(), all.data(), memory_.bytes());
    stream_->synchronize();
  }
  void all_reduce() { rank_.all_reduce.all_reduce(*stream_, data(), count_); }
  /// Waits for the stream, with the deadline; expects the guards as they were.
  std::vector<T> values() {
    stream_->record(*done_);
    wait_for(*done_, rank_.comm, "a test's all-reduce", &rank_.all_reduce);
    std::vector<T> all(memory_.size());
    stream_->copy_to_host(all.data(), memory_.data(), memory_.bytes());
    stream_->synchronize();
    for (std::size_t i = 0; i < kGuards; ++i) {
      EXPECT_EQ(all[i], kGuard) << "written before the buffer of " << count_;
      EXPECT_EQ(all[kGuards + count_ + i], kGuard) << "written behind the buffer of " << count_;
    }
    return {all.begin() + kGuards, all.end() - kGuards};
  }

 private:
  static constexpr std::size_t kGuards = 8;
  static constexpr T kGuard = T{-77};

  DeviceRank rank_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Event> done_;
  DeviceBuffer<T> memory_;
  std::size_t count_;
};

void sums_integers_of_any_size(const DeviceRank& rank) {
  for (const std::size_t count : kCounts) {
    GuardedBuffer<std::int64_t> buffer(rank, count);
    buffer.load(terms(rank.comm.rank(), count));
    buffer.all_reduce();
    expect_sums(buffer.values(), rank.comm.size(), "sum");
  }
}

void sums_floats_to_the_same_bits_on_every_rank(const DeviceRank& rank) {
  for (const std::size_t count : kCounts) {
    std::vector<float> mine(count);
    for (std::size_t i = 0; i < count; ++i)
      mine[i] = 1.0F / static_cast<float>(i + 3 + 7 * static_cast<std::size_t>(rank.comm.rank()));
    GuardedBuffer<float> buffer(rank, count);
    buffer.load(mine);
    buffer.all_reduce();
    const std::vector<float> sums = buffer.values();
    const auto all = rank.comm.all_gather(std::as_bytes(std::span(sums)));
    if (count == 0) continue;
    EXPECT_EQ(std::memcmp(all.data(), sums.data(), count * sizeof(float)), 0)
        << count << " elements: other bits than on rank 0";
    for (const std::size_t i : {std::size_t{0}, count / 2, count - 1}) {
      double exact = 0;
      for (int r = 0; r < rank.comm.size(); ++r) exact += 1.0 / (static_cast<double>(i) + 3 + 7 * r);
      EXPECT_NEAR(sums[i], exact, 1e-6) << "element " << i << " of " << count;
    }
  }
}

void comes_behind_earlier_and_before_later_work_of_its_stream(const DeviceRank& rank) {
  constexpr std::size_t kCount = 200000;
  const auto mine = terms(rank.comm.rank(), kCount);
  GuardedBuffer<std::int64_t> source(rank, kCount), buffer(rank, kCount), result(rank, kCount);
  source.load(mine);
  buffer.load(std::vector<std::int64_t>(kCount, -1));
  result.load(std::vector<std::int64_t>(kCount, -2));
  Stream& stream = buffer.stream();
  stream.copy_on_device(buffer.data(), source.data(), kCount * sizeof(std::int64_t));
  buffer.all_reduce();
  stream.copy_on_device(result.data(), buffer.data(), kCount * sizeof(std::int64_t));
  stream.fill_zero(buffer.data(), kCount * sizeof(std::int64_t));
  EXPECT_EQ(buffer.values(), std::vector<std::int64_t>(kCount, 0));
  expect_sums(result.values(), rank.comm.size(), "copy behind the sum");
}

void sums_from_one_buffer_into_another(const DeviceRank& rank) {
  for (const std::size_t count : {std::size_t{1}, std::size_t{300001}}) {
    const auto mine = terms(rank.comm.rank(), count);
    GuardedBuffer<std::int64_t> source(rank, count), result(rank, count);
    source.load(mine);
    result.load(std::vector<std::int64_t>(count, -1));
    rank.all_reduce.all_reduce_into(result.stream(), source.data(), result.data(), count);
    expect_sums(result.values(), rank.comm.size(), "sum out of place");
    EXPECT_EQ(source.values(), mine);
  }
}

void serves_streams_in_turn(const DeviceRank& rank) {
  GuardedBuffer<std::int64_t> small(rank, 1000), large(rank, 200000);
  for (int round = 0; round < 3; ++round) {
    small.load(terms(rank.comm.rank(), small.count()));
    large.load(terms(rank.comm.rank(), large.count()));
    large.all_reduce();
    small.all_reduce();
    expect_sums(small.values(), rank.comm.size(), "small one");
    expect_sums(large.values(), rank.comm.size(), "large one");
  }
}

void sums_again_and_again_in_place(const DeviceRank& rank) {
  GuardedBuffer<std::int64_t> buffer(rank, 257);
  buffer.load(std::vector<std::int64_t>(buffer.count(), 1));
  std::uint64_t expected = 1;
  for (int i = 0; i < 50; ++i) {
    buffer.all_reduce();
    expected *= static_cast<std::uint64_t>(rank.comm.size());
  }
  for (const std::int64_t value : buffer.values()) {
    ASSERT_EQ(static_cast<std::uint64_t>(value), expected);
  }
}

}  // namespace

const std::vector<DeviceAllReduceCase>& device_all_reduce_cases() {
  static const std::vector<DeviceAllReduceCase> cases = {
      {"SumsIntegersOfAnySize", sums_integers_of_any_size},
      {"SumsFloatsToTheSameBitsOnEveryRank", sums_floats_to_the_same_bits_on_every_rank},
      {"ComesBehindEarlierAndBeforeLaterWorkOfItsStream",
       comes_behind_earlier_and_before_later_work_of_its_stream},
      {"SumsFromOneBufferIntoAnother", sums_from_one_buffer_into_another},
      {"ServesStreamsInTurn", serves_streams_in_turn},
      {"SumsAgainAndAgainInPlace", sums_again_and_again_in_place},
  };
  return cases;
}

}  // namespace lockstep::testing
