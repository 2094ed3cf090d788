// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Pieces of equal and unequal length, empty ones, every root.
#include "comm/collectives.hpp"
#include "tests/comm/device_checks.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <string>

namespace lockstep::testing {
namespace {

using Counts = std::vector<std::size_t>;

/// Of a rank: a stream, and buffers that go to the device and come back.
class Bench {
 public:
  explicit Bench(const CollectiveRank& rank)
      : rank_(rank), stream_(rank.device.make_stream()), done_(rank.device.make_event()) {}

  Stream& stream() { return *stream_; }
  int rank() const { return rank_.comm.rank(); }
  int size() const { return rank_.comm.size(); }

  template <typename T>
  DeviceBuffer<T> put(const std::vector<T>& values) {
    DeviceBuffer<T> buffer(rank_.device, values.size());
    if (!values.empty()) stream_->copy_to_device(buffer.data(), values.data(), buffer.bytes());
    wait();
    return buffer;
  }
  template <typename T>
  std::vector<T> get(const DeviceBuffer<T>& buffer) {
    std::vector<T> values(buffer.size());
    if (!values.empty()) stream_->copy_to_host(values.data(), buffer.data(), buffer.bytes());
    wait();
    return values;
  }

 private:
  void wait() {
    stream_->record(*done_);
    wait_for(*done_, rank_.comm, "a test's collective", nullptr);
  }

  CollectiveRank rank_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Event> done_;
};

template <typename T>
std::byte* bytes_of(const DeviceBuffer<T>& buffer) {
  return reinterpret_cast<std::byte*>(buffer.data());
}

std::vector<std::int32_t> numbers(std::size_t count, int first = 0) {
  std::vector<std::int32_t> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

/// Of so many in pieces: equal ones, unequal ones, some of them empty, and all in the last.
std::vector<Counts> cuts_of(std::size_t each, int ranks) {
  const auto n = static_cast<std::size_t>(ranks);
  std::vector<Counts> cuts(3, Counts(n));
  cuts[0].assign(n, each);
  for (std::size_t i = 0; i < n; ++i) cuts[1][i] = i % 2 == 1 ? 0 : each + i;
  cuts[2].back() = each;
  return cuts;
}

template <typename T>
Counts in_bytes(Counts counts) {
  for (std::size_t& count : counts) count *= sizeof(T);
  return counts;
}

std::size_t sum_of(const Counts& counts, int ranks) {
  return std::accumulate(counts.begin(), counts.begin() + ranks, std::size_t{0});
}

template <typename T>
std::vector<T> piece_of(const std::vector<T>& whole, const Counts& counts, int rank) {
  const auto begin = whole.begin() + static_cast<std::ptrdiff_t>(sum_of(counts, rank));
  return {begin, begin + static_cast<std::ptrdiff_t>(counts[static_cast<std::size_t>(rank)])};
}

void replicates_what_the_root_has(const CollectiveRank& rank) {
  Bench bench(rank);
  for (int root = 0; root < bench.size(); ++root) {
    const auto data = bench.put(numbers(1001, 7 * bench.rank()));
    rank.collectives.replicate(bench.stream(), bytes_of(data), data.bytes(), root);
    EXPECT_EQ(bench.get(data), numbers(1001, 7 * root)) << "from " << root;
  }
}

void scatters_and_gathers_pieces_of_any_size(const CollectiveRank& rank) {
  Bench bench(rank);
  for (const Counts& counts : cuts_of(1000, bench.size())) {
    const auto values = numbers(sum_of(counts, bench.size()));
    const Counts bytes = in_bytes<std::int32_t>(counts);
    for (int root = 0; root < bench.size(); ++root) {
      const bool is_root = bench.rank() == root;
      const auto whole = bench.put(is_root ? values : std::vector<std::int32_t>());
      const auto mine =
          bench.put(std::vector<std::int32_t>(counts[static_cast<std::size_t>(bench.rank())], -1));
      rank.collectives.scatter(bench.stream(), bytes_of(whole), bytes, bytes_of(mine), root);
      EXPECT_EQ(bench.get(mine), piece_of(values, counts, bench.rank())) << "from " << root;
      const auto again = bench.put(std::vector<std::int32_t>(is_root ? values.size() : 0, -1));
      rank.collectives.gather_to(bench.stream(), bytes_of(mine), bytes, bytes_of(again), root);
      EXPECT_EQ(bench.get(again), is_root ? values : std::vector<std::int32_t>()) << "to " << root;
    }
  }
}

void gathers_on_every_rank(const CollectiveRank& rank) {
  Bench bench(rank);
  const auto mine = bench.put(numbers(333, 333 * bench.rank()));
  const auto all = bench.put(std::vector<std::int32_t>(333 * static_cast<std::size_t>(bench.size()), -1));
  rank.collectives.all_gather(bench.stream(), bytes_of(mine), mine.bytes(), bytes_of(all));
  EXPECT_EQ(bench.get(all), numbers(all.size()));
}

template <typename T>
void reduce_pieces(const CollectiveRank& rank, T first) {
  Bench bench(rank);
  for (const Counts& counts : cuts_of(500, bench.size())) {
    std::vector<T> terms(sum_of(counts, bench.size())), sums(terms.size());
    for (std::size_t i = 0; i < terms.size(); ++i) {
      terms[i] = first + static_cast<T>(i) * static_cast<T>(bench.rank() + 1);
      for (int r = 0; r < bench.size(); ++r) {
        const T term = first + static_cast<T>(i) * static_cast<T>(r + 1);
        if constexpr (std::is_integral_v<T>) {
          sums[i] = static_cast<T>(static_cast<std::uint64_t>(sums[i]) + static_cast<std::uint64_t>(term));
        } else {
          sums[i] += term;
        }
      }
    }
    const auto sent = bench.put(terms);
    const auto mine = bench.put(std::vector<T>(counts[static_cast<std::size_t>(bench.rank())]));
    rank.collectives.reduce_scatter(bench.stream(), sent.data(), counts, mine.data());
    EXPECT_EQ(bench.get(mine), piece_of(sums, counts, bench.rank()));
    EXPECT_EQ(bench.get(sent), terms) << "terms stay";
  }
}

/// Sums of these are exact in fp32; and of integers near their end they wrap around.
void reduces_and_scatters(const CollectiveRank& rank) {
  reduce_pieces<float>(rank, 0.5F);
  reduce_pieces<std::int64_t>(rank, std::numeric_limits<std::int64_t>::max() - 100'000);
}

void exchanges_with_both_neighbours(const CollectiveRank& rank) {
  Bench bench(rank);
  const int n = bench.size(), next = (bench.rank() + 1) % n, previous = (bench.rank() + n - 1) % n;
  const auto count_of = [](int r) {
    return static_cast<std::size_t>(r) * 1000;
  };  // rank 0 has nothing to say
  const auto mine = bench.put(numbers(count_of(bench.rank()), bench.rank()));
  const auto theirs = bench.put(std::vector<std::int32_t>(count_of(previous), -1));
  rank.collectives.send_and_receive(bench.stream(), {bytes_of(mine), mine.bytes()}, next,
                                    {bytes_of(theirs), theirs.bytes()}, previous);
  EXPECT_EQ(bench.get(theirs), numbers(count_of(previous), previous));
}

void collective_comes_between_work_of_its_stream(const CollectiveRank& rank) {
  Bench bench(rank);
  const auto source = bench.put(numbers(200'000, bench.rank()));
  const auto data = bench.put(std::vector<std::int32_t>(source.size(), -1));
  const auto result = bench.put(std::vector<std::int32_t>(source.size(), -2));
  bench.stream().copy_on_device(data.data(), source.data(), data.bytes());
  rank.collectives.replicate(bench.stream(), bytes_of(data), data.bytes(), bench.size() - 1);
  bench.stream().copy_on_device(result.data(), data.data(), data.bytes());
  bench.stream().fill_zero(data.data(), data.bytes());
  EXPECT_EQ(bench.get(result), numbers(source.size(), bench.size() - 1));
}

void collectives_do_not_complain(const CollectiveRank& rank) {
  EXPECT_FALSE(rank.collectives.name().empty());
  EXPECT_NO_THROW(rank.collectives.check());
}

}  // namespace

const std::vector<DeviceCollectivesCase>& device_collectives_cases() {
  static const std::vector<DeviceCollectivesCase> cases = {
      {"ReplicatesWhatTheRootHas", replicates_what_the_root_has},
      {"ScattersAndGathersPiecesOfAnySize", scatters_and_gathers_pieces_of_any_size},
      {"GathersOnEveryRank", gathers_on_every_rank},
      {"ReducesAndScatters", reduces_and_scatters},
      {"ExchangesWithBothNeighbours", exchanges_with_both_neighbours},
      {"CollectivesComeBehindEarlierAndBeforeLaterWork", collective_comes_between_work_of_its_stream},
      {"CollectivesHaveNothingToComplainOf", collectives_do_not_complain},
  };
  return cases;
}

}  // namespace lockstep::testing
