// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "trainer/bench/allreduce_bench.hpp"

#include "trainer/bench/timing.hpp"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <span>
#include <string_view>
#include <vector>

namespace lockstep::bench {
namespace {

/// Small integers, so that fp32 sums are exact and every element can be checked.
template <typename T>
T element(std::size_t i, int rank) {
  return static_cast<T>(static_cast<int>(i % 251) + rank);
}

template <typename T>
std::int64_t count_wrong(std::span<const T> data, int ranks) {
  const int rank_sum = ranks * (ranks - 1) / 2;
  std::int64_t wrong = 0;
  for (std::size_t i = 0; i < data.size(); ++i) {
    if (data[i] != static_cast<T>(static_cast<int>(i % 251) * ranks + rank_sum)) ++wrong;
  }
  return wrong;
}

struct Result {
  double seconds = 0;
  std::int64_t wrong = 0;
};

template <typename T>
Result run_size(Communicator& comm, std::size_t bytes, int repetitions) {
  std::vector<T> data(bytes / sizeof(T));
  std::vector<double> times;
  Result result;
  for (int repetition = -2; repetition < repetitions; ++repetition) {  // two rounds to warm up
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = element<T>(i, comm.rank());
    comm.barrier();
    const auto start = std::chrono::steady_clock::now();
    comm.all_reduce(std::span<T>(data));
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (repetition >= 0) times.push_back(seconds);
    result.wrong += count_wrong<T>(data, comm.size());
  }
  std::array<std::int64_t, 1> wrong{result.wrong};
  comm.all_reduce(std::span<std::int64_t>(wrong));
  return {median(times), wrong[0]};
}

void print_row(const Communicator& comm, std::size_t bytes, std::string_view type, const Result& result) {
  if (comm.rank() != 0) return;
  const double algorithm = static_cast<double>(bytes) / result.seconds * 1e-9;
  const double bus = algorithm * 2 * (comm.size() - 1) / comm.size();
  fmt::print("{:>12} {:>10} {:>12.1f} {:>14.3f} {:>12.3f} {:>8}\n", bytes, type, result.seconds * 1e6,
             algorithm, bus, result.wrong);
}

}  // namespace

std::int64_t bench_allreduce(Communicator& comm, const AllreduceOptions& options) {
  if (comm.rank() == 0) {
    fmt::print("all-reduce (sum), backend {}, {} ranks, median of {}\n\n", comm.backend(), comm.size(),
               options.repetitions);
    fmt::print("{:>12} {:>10} {:>12} {:>14} {:>12} {:>8}\n", "bytes", "type", "latency us", "algbw GB/s",
               "busbw GB/s", "wrong");
  }
  std::int64_t wrong = 0;
  for (std::size_t bytes = options.min_bytes; bytes <= options.max_bytes; bytes *= 2) {
    const auto exact = run_size<std::int64_t>(comm, bytes, options.repetitions);
    print_row(comm, bytes, "int64", exact);
    const auto single = run_size<float>(comm, bytes, options.repetitions);
    print_row(comm, bytes, "fp32", single);
    wrong += exact.wrong + single.wrong;
  }
  return wrong;
}

}  // namespace lockstep::bench
