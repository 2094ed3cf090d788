// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// All-reduces of real ranks, for tests/bench/all_reduce, which says what it does.
///
///     mpirun -np N lockstep_real_sums check ROUNDS SEED      random parts of N ranks, lengths and numbers of sums
///     lockstep_real_sums threads MOST ROUNDS SEED            the same of up to MOST threads
///     mpirun -np N lockstep_real_sums time TURNS BYTES...    the schedules in turns
#include "comm/communicator.hpp"
#include "comm/mpi/mpi_all_reduce.hpp"
#include "comm/mpi/mpi_communicator.hpp"
#include "comm/mpi/mpi_runtime.hpp"
#include "comm/thread/thread_ranks.hpp"
#include "common/error.hpp"
#include "tests/scaling/step_plan.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep {
namespace {

constexpr std::chrono::seconds kDeadline{300};
constexpr std::size_t kMostElements = 40'000, kMostBuckets = 4;

std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {
  std::uint64_t x = (a ^ (b + 0x9e3779b97f4a7c15)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 29)) * 0x94d049bb133111eb;
  return x ^ (x >> 32);
}

/// Term of a member: a multiple of the element's number, so that the sum is known without the terms.
struct Term {
  std::uint64_t factor, shift;
  std::int64_t at(std::uint64_t element) const {
    return static_cast<std::int64_t>(factor * mixed(element, 1) + shift);
  }
};
Term term_of(std::uint64_t key, int member) {
  const auto number = static_cast<std::uint64_t>(member);
  return {mixed(key, 2 * number), mixed(key, 2 * number + 1)};
}
Term term_of_all(std::uint64_t key, int members) {
  Term all{0, 0};
  for (int member = 0; member < members; ++member) {
    const Term one = term_of(key, member);
    all.factor += one.factor;
    all.shift += one.shift;
  }
  return all;
}

/// One to four sums at once, of random lengths; many are short. @returns how many elements are wrong
std::size_t wrong_in_round(Communicator& comm, AllReduce& all_reduce, std::uint64_t key) {
  std::mt19937_64 random(key);
  const std::size_t buckets = 1 + random() % kMostBuckets;
  std::vector<std::vector<std::int64_t>> mine(buckets), sums(buckets);
  std::vector<std::unique_ptr<PendingCollective>> pending;
  for (std::size_t i = 0; i < buckets; ++i) {
    const double share = std::uniform_real_distribution<double>(0, 1)(random);
    mine[i].resize(static_cast<std::size_t>(std::pow(double{kMostElements}, share)));
    sums[i].resize(mine[i].size(), -1);
    const Term term = term_of(key + i, comm.rank());
    for (std::size_t at = 0; at < mine[i].size(); ++at) mine[i][at] = term.at(at);
    pending.push_back(all_reduce.start(std::span<const std::int64_t>(mine[i]), sums[i]));
  }
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < buckets; ++i) {
    comm.wait(*pending[i], "a random sum");
    const Term all = term_of_all(key + i, comm.size()), term = term_of(key + i, comm.rank());
    for (std::size_t at = 0; at < mine[i].size(); ++at)
      wrong += sums[i][at] != all.at(at) || mine[i][at] != term.at(at) ? 1 : 0;
  }
  return wrong;
}

int tell(std::size_t wrong, const std::string& what) {
  fmt::print("{}: {}\n", what, wrong == 0 ? "all sums right" : fmt::format("{} ELEMENTS WRONG", wrong));
  return wrong == 0 ? 0 : 1;
}

/// In each round the ranks are divided at random into two parts, each of which adds up, both at once. Then
/// all add up as on hosts of a random size, the last of which is mostly not full.
int check(const MpiRuntime& runtime, int rounds, std::uint64_t seed) {
  const auto all = make_mpi_communicator(runtime, kDeadline);
  std::int64_t wrong = 0;
  for (int round = 0; round < rounds; ++round) {
    const std::uint64_t key = mixed(seed, static_cast<std::uint64_t>(round));
    std::mt19937_64 random(key);
    const auto first = random() % static_cast<std::uint64_t>(all->size()) + 1;
    const bool scattered = random() % 2 == 0;
    const auto place = static_cast<std::uint64_t>(all->rank());
    const auto drawn = scattered ? mixed(key, place) % static_cast<std::uint64_t>(all->size()) : place;
    const auto part = all->split(drawn < first ? 0 : 1);
    wrong += static_cast<std::int64_t>(wrong_in_round(*part, part->host_all_reduce(), key));
    const int per_host = 1 + static_cast<int>(random() % static_cast<std::uint64_t>(all->size()));
    MpiAllReduce on_hosts(MPI_COMM_WORLD, all->rank(), all->size(), per_host);
    wrong += static_cast<std::int64_t>(wrong_in_round(*all, on_hosts, key + kMostBuckets));
  }
  all->all_reduce(std::span(&wrong, 1));
  if (all->rank() != 0) return 0;
  return tell(static_cast<std::size_t>(wrong),
              fmt::format("{} rounds of parts of {} MPI ranks, seed {}", rounds, all->size(), seed));
}

int check_threads(int most, int rounds, std::uint64_t seed) {
  std::atomic<std::size_t> wrong = 0;
  for (int round = 0; round < rounds; ++round) {
    const std::uint64_t key = mixed(seed, static_cast<std::uint64_t>(round));
    const int ranks = 1 + static_cast<int>(key % static_cast<std::uint64_t>(most));
    run_thread_ranks(
        ranks, [&](Communicator& comm) { wrong += wrong_in_round(comm, comm.host_all_reduce(), key); },
        kDeadline);
  }
  return tell(wrong, fmt::format("{} rounds of 1 to {} threads, seed {}", rounds, most, seed));
}

// Time of each schedule, in turns.

/// Seconds of one sum, the slowest rank's.
double seconds_of_sum(Communicator& comm, ReduceKind kind, int per_host, std::size_t count,
                      ReceiveBuffers& buffers) {
  const Cluster cluster{
      .ranks = comm.size(), .ranks_per_node = per_host, .nodes_per_leaf = 16, .network = {}};
  std::vector<std::int64_t> mine(count, comm.rank() + 1), sum(count);
  comm.barrier();
  const auto start = std::chrono::steady_clock::now();
  MpiPendingSum<std::int64_t> pending(MPI_COMM_WORLD, 0,
                                      reduce_rounds(kind, cluster, comm.rank(), count, sizeof(std::int64_t)),
                                      mine, sum, buffers);
  comm.wait(pending, "a timed sum");
  const auto took = std::chrono::steady_clock::now() - start;
  const std::int64_t right = std::int64_t{comm.size()} * (comm.size() + 1) / 2;
  if (std::ranges::count(sum, right) != static_cast<std::ptrdiff_t>(count))
    throw InternalError(fmt::format("{}: a wrong sum of {} elements", name_of(kind), count));
  const std::int64_t ns = std::chrono::nanoseconds(took).count();
  std::int64_t slowest = 0;
  LOCKSTEP_MPI(MPI_Allreduce(&ns, &slowest, 1, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD));
  return static_cast<double>(slowest) * 1e-9;
}

int time_all(const MpiRuntime& runtime, int turns, const std::vector<std::size_t>& sizes) {
  const auto comm = make_mpi_communicator(runtime, kDeadline);
  ReceiveBuffers buffers;
  const int here = comm->local_size();
  int per_host = 1;
  LOCKSTEP_MPI(MPI_Allreduce(&here, &per_host, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
  if (comm->rank() == 0)
    fmt::print("{} ranks, {} on a host; median (least) of {} turns, milliseconds\n{:>9}", comm->size(),
               per_host, turns, "bytes");
  for (const std::string_view name : kReduceNames) {
    if (comm->rank() == 0) fmt::print("{:>22}", name);
  }
  for (const std::size_t bytes : sizes) {
    std::array<std::vector<double>, std::size(kReduceNames)> times;
    for (int turn = 0; turn < turns; ++turn) {
      for (std::size_t kind = 0; kind < times.size(); ++kind)
        times[kind].push_back(1e3 * seconds_of_sum(*comm, static_cast<ReduceKind>(kind), per_host,
                                                   bytes / sizeof(std::int64_t), buffers));
    }
    if (comm->rank() == 0) fmt::print("\n{:>9}", bytes);
    for (auto& each : times) {
      std::ranges::sort(each);
      if (comm->rank() == 0)
        fmt::print("{:>22}", fmt::format("{:.2f} ({:.2f})", each[each.size() / 2], each.front()));
    }
  }
  if (comm->rank() == 0) fmt::print("\n");
  return 0;
}

int run(const std::vector<std::string>& words) {
  const auto number = [&](std::size_t i) {
    return i < words.size() ? static_cast<int>(std::strtol(words[i].c_str(), nullptr, 10)) : 0;
  };
  if (words.size() == 4 && words[0] == "threads")
    return check_threads(std::max(1, number(1)), number(2), static_cast<std::uint64_t>(number(3)));
  const MpiRuntime runtime(nullptr, nullptr);
  try {
    if (words.size() == 3 && words[0] == "check")
      return check(runtime, number(1), static_cast<std::uint64_t>(number(2)));
    if (words.size() >= 3 && words[0] == "time") {
      std::vector<std::size_t> sizes;
      for (std::size_t i = 2; i < words.size(); ++i) sizes.push_back(static_cast<std::size_t>(number(i)));
      return time_all(runtime, std::max(1, number(1)), sizes);
    }
    throw UsageError("lockstep_real_sums: see tests/bench/all_reduce --help");
  } catch (const std::exception& error) {
    const auto [code, text] = explain(error);
    fmt::print(stderr, "rank {}: {}\n", runtime.rank(), text);
    MPI_Abort(MPI_COMM_WORLD, static_cast<int>(code));
    return static_cast<int>(code);
  }
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  try {
    return lockstep::run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    const auto [code, text] = lockstep::explain(error);
    fmt::print(stderr, "{}\n", text);
    return static_cast<int>(code);
  }
}
