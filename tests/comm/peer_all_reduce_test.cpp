// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// All-reduce out of each other's memory between threads. On the emulator they share its one device; GPUs are taken in
/// turn, and where there are too few, the case is skipped.
#include "comm/agreement.hpp"
#include "comm/peers/peers.hpp"
#include "comm/staged/staged.hpp"
#include "comm/thread/thread_ranks.hpp"
#include "common/error.hpp"
#include "tests/comm/device_checks.hpp"
#include "tests/kernels/device/rig.hpp"
#include "tests/support/fake_gpu.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace lockstep::testing::peers {

bool has_devices(int ranks) {
  return test::platform_under_test().make_device(0)->kind() == "emulated" ||
         std::cmp_greater_equal(test::platform_under_test().devices().size(), ranks);
}

#define REQUIRE_DEVICES(ranks) \
  if (!has_devices(ranks)) GTEST_SKIP() << "needs " << (ranks) << " GPUs"

void on_ranks(int ranks, const std::function<void(const DeviceRank&)>& body,
              std::chrono::duration<double> timeout = std::chrono::minutes(5)) {
  run_thread_ranks(
      ranks,
      [&](Communicator& comm) {
        const auto devices = static_cast<int>(test::platform_under_test().devices().size());
        const auto device = test::platform_under_test().make_device(comm.rank() % devices);
        const auto all_reduce = make_peer_all_reduce(comm, *device, nullptr);
        body({comm, *device, *all_reduce});
      },
      timeout);
}

class PeerAllReduceTest : public ::testing::TestWithParam<std::tuple<DeviceAllReduceCase, int>> {};

TEST_P(PeerAllReduceTest, Holds) {
  const auto& [conformance, ranks] = GetParam();
  REQUIRE_DEVICES(ranks);
  on_ranks(ranks, conformance.check);
}

INSTANTIATE_TEST_SUITE_P(Threads, PeerAllReduceTest,
                         ::testing::Combine(::testing::ValuesIn(device_all_reduce_cases()),
                                            ::testing::Values(1, 2, 3, 8)),
                         [](const auto& param) {
                           return std::get<0>(param.param).name + std::to_string(std::get<1>(param.param));
                         });

/// Terms of a rank, from memory that begins at an address of any alignment, and their sums.
template <typename T>
class Terms {
 public:
  Terms(const DeviceRank& rank, std::size_t count, std::size_t offset)
      : rank_(rank),
        stream_(rank.device.make_stream()),
        memory_(rank.device, count + offset),
        offset_(offset) {}

  T* data() { return memory_.data() + offset_; }
  Stream& stream() { return *stream_; }
  void load(const std::vector<T>& values) {
    stream_->copy_to_device(data(), values.data(), values.size() * sizeof(T));
    stream_->synchronize();
  }
  std::vector<T> values() {
    const auto done = rank_.device.make_event();
    stream_->record(*done);
    wait_for(*done, rank_.comm, "a test's sums", &rank_.all_reduce);
    std::vector<T> values(memory_.size() - offset_);
    stream_->copy_to_host(values.data(), data(), values.size() * sizeof(T));
    stream_->synchronize();
    return values;
  }

 private:
  DeviceRank rank_;
  std::unique_ptr<Stream> stream_;
  DeviceBuffer<T> memory_;
  std::size_t offset_;
};

/// Any bits of an integer; floats whose sum hangs on the order.
template <typename T>
std::vector<T> random_terms(std::size_t count, std::uint64_t seed) {
  std::vector<T> terms(count);
  std::uint64_t state = seed * 0x9E3779B97F4A7C15U;
  for (T& term : terms) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    const std::uint64_t bits = state ^ (state >> 29);
    if constexpr (std::is_same_v<T, float>) {
      term = static_cast<float>(static_cast<std::int16_t>(bits)) * (bits % 7 == 0 ? 1e-6F : 3.1F);
    } else {
      term = std::bit_cast<T>(bits);
    }
  }
  return terms;
}

/// In order of rank; integers wrap around.
template <typename T>
std::vector<T> sums_of(int ranks, std::size_t count, std::uint64_t seed) {
  std::vector<T> sums = random_terms<T>(count, seed);
  for (int rank = 1; rank < ranks; ++rank)
    sum_into(std::span(sums), std::span<const T>(random_terms<T>(count, seed + static_cast<unsigned>(rank))));
  return sums;
}

template <typename T>
void expect_random_sums(int ranks, std::span<const std::size_t> counts, std::uint64_t seed) {
  std::vector<std::vector<T>> expected;
  for (const std::size_t count : counts) expected.push_back(sums_of<T>(ranks, count, seed + 10 * count));
  on_ranks(ranks, [&](const DeviceRank& rank) {
    for (std::size_t i = 0; i < counts.size(); ++i) {
      Terms<T> terms(rank, counts[i], i % 2);  // an odd address, too
      terms.load(random_terms<T>(counts[i], seed + 10 * counts[i] + static_cast<unsigned>(rank.comm.rank())));
      rank.all_reduce.all_reduce(terms.stream(), terms.data(), counts[i]);
      const std::vector<T> sums = terms.values();
      EXPECT_TRUE(std::ranges::equal(std::as_bytes(std::span(sums)), std::as_bytes(std::span(expected[i]))))
          << counts[i] << " elements of " << sizeof(T) << " bytes, seed " << seed << ", rank "
          << rank.comm.rank() << " of " << ranks;
    }
  });
}

/// As the staged way has them, which the checks that all ways pass compare with what is expected, too.
TEST(PeerAllReduceBitsTest, AreThoseOfASumInOrderOfRankInEveryOrderOfThreads) {
  std::mt19937 random(1);
  for (const std::uint64_t order : test::thread_orders()) {
    const int ranks = 1 + static_cast<int>(random() % PeerSums::kMostRanks);
    if (!has_devices(ranks)) continue;
    test::set_thread_order(order);
    const std::size_t limit = kPeerSumBytes / sizeof(std::int64_t), any = random() % limit;
    const bool whole = order % 4 == 0;
    const std::vector<std::size_t> counts = {
        0, 1, any % 1000, any % 1000 + 1, whole ? limit : any % 7000, whole ? limit + 1 : 17};
    expect_random_sums<std::int64_t>(ranks, counts, random());
    expect_random_sums<float>(ranks, counts, random());
  }
  test::set_thread_order(0);
}

/// Many in a row, in graphs, where rank 0 may launch one by one what the others have captured.
void expect_replayed_sums(Stream::KernelOrder order, bool all_capture) {
  constexpr int kRanks = 3, kSums = 4, kReplays = 20;
  on_ranks(kRanks, [&](const DeviceRank& rank) {
    Terms<std::int64_t> terms(rank, 1001, 0);
    terms.load(std::vector<std::int64_t>(1001, rank.comm.rank() + 1));
    const auto sum = [&] { rank.all_reduce.all_reduce(terms.stream(), terms.data(), 1001); };
    const bool captures = all_capture || rank.comm.rank() > 0;
    std::unique_ptr<Graph> graph;
    if (captures) {
      terms.stream().begin_capture(order);
      for (int i = 0; i < kSums; ++i) sum();
      graph = terms.stream().end_capture();
    }
    std::uint64_t expected = kRanks * (kRanks + 1) / 2;
    sum();
    for (int replay = 0; replay < kReplays; ++replay) {
      if (captures) terms.stream().launch(*graph);
      for (int i = 0; !captures && i < kSums; ++i) sum();
      for (int i = 0; i < kSums; ++i) expected *= kRanks;
    }
    for (const std::int64_t value : terms.values()) ASSERT_EQ(static_cast<std::uint64_t>(value), expected);
  });
}

TEST(PeerAllReduceGraphTest, IsReplayed) {
  REQUIRE_DEVICES(3);
  expect_replayed_sums(Stream::KernelOrder::kInTurn, true);
}

TEST(PeerAllReduceGraphTest, MayBeCapturedOnSomeRanksOnly) {
  REQUIRE_DEVICES(3);
  expect_replayed_sums(Stream::KernelOrder::kInTurn, false);
}

TEST(PeerAllReduceGraphTest, KernelsMayOverlap) {
  REQUIRE_DEVICES(3);
  if (!test::platform_under_test().make_device(0)->properties().overlaps_kernels)
    GTEST_SKIP() << "needs compute capability 9.0";
  expect_replayed_sums(Stream::KernelOrder::kOverlapped, true);
}

/// What a rank is told that waits for rank 1, which does not come. `sum` queues the sum.
std::string told_of_missing_rank(const std::function<void(const DeviceRank&, Stream&, std::int64_t*)>& sum) {
  std::string text;
  const auto rank_1_never_comes = [&](const DeviceRank& rank) {
    if (rank.comm.rank() == 1) return rank.comm.barrier();
    Terms<std::int64_t> terms(rank, 10, 0);
    sum(rank, terms.stream(), terms.data());
    terms.values();
  };
  try {
    on_ranks(3, rank_1_never_comes, std::chrono::seconds(1));
  } catch (const PeerLostError& error) {
    text = error.what();
  }
  return text;
}

/// On a GPU the host waits, too, and may lose patience first.
void expect_rank_1(const std::string& text) {
  const bool waits_in_kernel = test::platform_under_test().make_device(0)->kind() == "emulated";
  EXPECT_NE(text.find(waits_in_kernel ? "waited for the terms of rank 1" : "waited"), std::string::npos)
      << text;
}

TEST(PeerAllReduceErrorTest, AMissingRankIsAPeerLostAndNamed) {
  REQUIRE_DEVICES(3);
  const std::string text =
      told_of_missing_rank([](const DeviceRank& rank, Stream& stream, std::int64_t* terms) {
        rank.all_reduce.all_reduce(stream, terms, 10);
      });
  expect_rank_1(text);
}

TEST(PeerAllReduceErrorTest, SumsOfAGraphThatARankIsMissingInAreNotUsed) {
  REQUIRE_DEVICES(3);
  const std::string text =
      told_of_missing_rank([](const DeviceRank& rank, Stream& stream, std::int64_t* terms) {
        stream.begin_capture();
        rank.all_reduce.all_reduce(stream, terms, 10);
        stream.launch(*stream.end_capture());
      });
  expect_rank_1(text);
}

/// The line that all ranks end with.
std::string refusal(int ranks, const std::function<std::unique_ptr<Device>()>& make_device) {
  std::string text;
  try {
    run_thread_ranks(ranks, [&](Communicator& comm) {
      const auto device = make_device();
      make_peer_all_reduce(comm, *device, nullptr);
    });
  } catch (const AgreedError& error) {
    EXPECT_EQ(error.code(), ExitCode::kDeviceUnavailable);
    text = error.what();
  }
  return text;
}

TEST(PeerAllReduceErrorTest, MoreRanksThanReadEachOthersMemoryAreRefusedWithTheFix) {
  const std::string text = refusal(9, [] { return test::platform_under_test().make_device(0); });
  for (const char* part : {"backend peers", "there are 9 ranks", "at most 8", "use backend nccl"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " is not in: " << text;
}

TEST(PeerAllReduceErrorTest, ADeviceThatReadsNoOthersMemoryIsRefused) {
  const std::string text = refusal(2, [] { return std::make_unique<FakeGpu>("GPU-8f"); });
  EXPECT_NE(text.find("devices of kind cuda read no other's memory"), std::string::npos) << text;
}

/// On a GPU a kernel that waits may keep the one that it waits for from starting.
TEST(PeerAllReduceErrorTest, ThreadsThatShareAGpuAreRefused) {
  if (test::platform_under_test().make_device(0)->kind() == "emulated") GTEST_SKIP() << "needs a GPU";
  const std::string text = refusal(2, [] { return test::platform_under_test().make_device(0); });
  EXPECT_NE(text.find("start ranks that share a GPU as processes"), std::string::npos) << text;
}

/// What is asked of it goes to the other way only where it is work on a stream, and too large.
class OtherWay final : public DeviceAllReduce {
 public:
  OtherWay(bool on_stream, std::vector<std::size_t>& counts) : on_stream_(on_stream), counts_(counts) {}
  std::string_view name() const override { return "another way"; }
  bool on_stream() const override { return on_stream_; }
  void all_reduce(Stream& /*stream*/, std::int64_t* /*device*/, std::size_t count) override {
    counts_.push_back(count);
  }
  void all_reduce(Stream& /*stream*/, float* /*device*/, std::size_t /*count*/) override {}
  void check() override {}

 private:
  bool on_stream_;
  std::vector<std::size_t>& counts_;
};

std::vector<std::size_t> left_to_other_way(bool on_stream) {
  std::vector<std::size_t> counts;
  run_thread_ranks(1, [&](Communicator& comm) {
    const auto device = test::platform_under_test().make_device(0);
    const auto all_reduce =
        make_peer_all_reduce(comm, *device, std::make_unique<OtherWay>(on_stream, counts));
    EXPECT_EQ(all_reduce->name().find("above 512 KiB another way") != std::string_view::npos, on_stream)
        << all_reduce->name();
    const auto stream = device->make_stream();
    const DeviceBuffer<std::int64_t> data(*device, 65537);
    for (const std::size_t count : {65536, 65537}) all_reduce->all_reduce(*stream, data.data(), count);
    stream->synchronize();
  });
  return counts;
}

TEST(PeerAllReduceNameTest, LargeSumsAreLeftToTheOtherWayWhereThatIsWorkOnAStream) {
  EXPECT_EQ(left_to_other_way(true), std::vector<std::size_t>{65537});
  EXPECT_EQ(left_to_other_way(false), std::vector<std::size_t>{});
}

}  // namespace lockstep::testing::peers
