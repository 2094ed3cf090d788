// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What a job's watchdogs cost: as many as there are ranks, in one process, over real sockets. Prints what share of a
/// core the thread of rank 0 takes, of the busiest and of the middle one, and how many connections rank 0 has.
#include "comm/thread/thread_ranks.hpp"
#include "comm/watch/rendezvous.hpp"
#include "comm/watch/watchdog_thread.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <future>
#include <string>
#include <thread>
#include <vector>

namespace lockstep::watchdog {
namespace {

using std::chrono::milliseconds;

constexpr std::int64_t kStepNs = 2'000'000;  ///< about one of net on a core
constexpr int kBuckets = 2;
constexpr milliseconds kBetweenReports{250}, kConnecting{5000};

std::int64_t thread_time_ns() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return time.tv_sec * std::int64_t{1'000'000'000} + time.tv_nsec;
}

/// Of the thread that runs the context.
std::int64_t time_of_watchdog(asio::io_context& context) {
  std::promise<std::int64_t> time;
  asio::post(context, [&] { time.set_value(thread_time_ns()); });
  return time.get_future().get();
}

/// Trains, as far as a watchdog sees it: all ranks take the same steps at the same time.
void train_for(milliseconds time, Communicator& comm) {
  const std::int64_t end = clock_ns() + std::chrono::nanoseconds(time).count();
  for (std::int64_t step = clock_ns() / kStepNs; clock_ns() < end;) {
    std::this_thread::sleep_for(kBetweenReports);
    comm.activity().begin_step(step);
    for (; step < clock_ns() / kStepNs; ++step) {
      for (int bucket = 0; bucket < kBuckets; ++bucket)
        comm.activity().arrivals().add({.step = step,
                                        .bucket = bucket,
                                        .grains = 1,
                                        .arrived_ns = step * kStepNs,
                                        .work_ns = kStepNs,
                                        .between_ns = kStepNs / 10});
    }
  }
}

/// Ends of TCP connections that this process holds; here each connection has two.
std::size_t sockets_of(std::uint16_t port) {
  std::ifstream table("/proc/self/net/tcp");
  const std::string here = fmt::format(":{:04X}", port);
  std::size_t count = 0;
  for (std::string number, local, remote, state, rest; table >> number >> local >> remote >> state;) {
    std::getline(table, rest);
    count += state == "01" && (local.ends_with(here)) ? 1 : 0;
  }
  return count;
}

void measure(int ranks, milliseconds time) {
  std::vector<double> share(static_cast<std::size_t>(ranks));
  std::size_t sockets = 0;
  const auto watch = [&](Communicator& comm) {
    auto roll = call_roll(comm);
    if (!roll) std::exit(1);
    asio::io_context& context = *roll->context;
    const auto port = roll->acceptor.local_endpoint().port();
    WatchdogThread watchdog(comm, std::move(*roll));
    train_for(kConnecting, comm);
    const std::int64_t before = time_of_watchdog(context), began = clock_ns();
    train_for(time, comm);
    const std::int64_t used = time_of_watchdog(context) - before;
    share[static_cast<std::size_t>(comm.rank())] =
        100.0 * static_cast<double>(used) / static_cast<double>(clock_ns() - began);
    if (comm.rank() == 0) sockets = sockets_of(port);
    comm.barrier();
  };
  run_thread_ranks(ranks, watch);
  const double rank_0 = share.front();
  std::ranges::sort(share);
  fmt::print(
      "{:5} ranks: rank 0 {:6.2f} %, the busiest {:6.2f} %, the middle {:6.2f} % of a core; {} connections\n",
      ranks, rank_0, share.back(), share[share.size() / 2], sockets);
  std::fflush(stdout);
}

}  // namespace
}  // namespace lockstep::watchdog

int main(int count, char** words) {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  std::vector<int> ranks;
  for (int i = 1; i < count; ++i) ranks.push_back(std::atoi(words[i]));
  if (ranks.empty()) ranks = {16, 64, 256, 1024};
  for (const int each : ranks) lockstep::watchdog::measure(each, std::chrono::seconds(10));
}
