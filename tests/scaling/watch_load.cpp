// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Cost for rank 0 of watching many ranks: its own watchdog, and the heartbeats of all others in one thread. The
/// sockets are real. Prints which share of a core the thread of rank 0 takes, and how many connections it has.
///
///     lockstep_watch_load [RANKS...]      default 16 64 256 1024
#include "comm/thread/thread_ranks.hpp"
#include "comm/watch/rendezvous.hpp"
#include "comm/watch/watchdog_thread.hpp"
#include "tests/support/prelude.hpp"

#include <sys/resource.h>

#include <future>

namespace lockstep::watchdog {
namespace {

using asio::ip::tcp;
using std::chrono::milliseconds;

constexpr milliseconds kInterval{500}, kConnecting{4000}, kMeasured{20000};

std::int64_t thread_time_ns() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return time.tv_sec * std::int64_t{1'000'000'000} + time.tv_nsec;
}

/// Processor time of the thread that runs the context.
std::int64_t time_of_watchdog(asio::io_context& context) {
  std::promise<std::int64_t> time;
  asio::post(context, [&] { time.set_value(thread_time_ns()); });
  return time.get_future().get();
}

/// Ends at this port of connections that are established.
std::size_t connections_of(int port) {
  std::ifstream table("/proc/self/net/tcp");
  const std::string here = fmt::format(":{:04X}", port);
  std::size_t count = 0;
  for (std::string number, local, remote, state, rest; table >> number >> local >> remote >> state;) {
    std::getline(table, rest);
    count += state == "01" && local.ends_with(here) ? 1 : 0;
  }
  return count;
}

/// All ranks but rank 0.
class OtherRanks {
 public:
  OtherRanks(asio::io_context& context, std::vector<tcp::acceptor> acceptors, const Token& token,
             const std::vector<Peer>& peers)
      : context_(context), peers_(acceptors.size(), peers) {
    for (std::size_t i = 0; i < acceptors.size(); ++i) {
      heartbeats_.push_back(std::make_unique<Heartbeat>(
          context, std::move(acceptors[i]), static_cast<int>(i) + 1, token, peers_[i],
          Heartbeat::Callbacks{.make_beat = [] { return Beat{}; }, .changed = [] {}}));
      heartbeats_.back()->start();
    }
  }

  void run_for(milliseconds time) {
    const std::int64_t end = clock_ns() + std::chrono::nanoseconds(time).count();
    while (clock_ns() < end) {
      context_.run_for(kInterval);
      for (const auto& heartbeat : heartbeats_) heartbeat->beat();
    }
  }

 private:
  asio::io_context& context_;
  std::vector<std::vector<Peer>> peers_;
  std::vector<std::unique_ptr<Heartbeat>> heartbeats_;
};

void measure(int ranks, Communicator& comm) {
  auto own = std::make_unique<asio::io_context>(1);
  asio::io_context others_context(1), &context = *own;
  const tcp::endpoint anywhere(asio::ip::address_v4::loopback(), 0);
  Rendezvous roll{std::move(own), tcp::acceptor(context, anywhere), draw_token(), {}};
  std::vector<tcp::acceptor> acceptors;
  for (int rank = 1; rank < ranks; ++rank) acceptors.emplace_back(others_context, anywhere);
  for (int rank = 0; rank < ranks; ++rank) {
    Peer peer;
    peer.who = {.rank = rank, .host = fmt::format("node{}", rank / 8), .pid = 0, .addresses = {"127.0.0.1"}};
    const auto& acceptor = rank == 0 ? roll.acceptor : acceptors[static_cast<std::size_t>(rank) - 1];
    peer.who.port = acceptor.local_endpoint().port();
    roll.peers.push_back(peer);
  }
  const int port = roll.peers.front().who.port;
  OtherRanks others(others_context, std::move(acceptors), roll.token, roll.peers);
  WatchdogThread watchdog(comm, std::move(roll));
  others.run_for(kConnecting);
  const std::int64_t before = time_of_watchdog(context), began = clock_ns();
  others.run_for(kMeasured);
  const std::int64_t used = time_of_watchdog(context) - before;
  fmt::print("{:5} ranks: rank 0 takes {:.2f} % of a core, {} connections\n", ranks,
             100.0 * static_cast<double>(used) / static_cast<double>(clock_ns() - began),
             connections_of(port));
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
  for (int i = 1; i < count; ++i) ranks.push_back(static_cast<int>(std::strtol(words[i], nullptr, 10)));
  if (ranks.empty()) ranks = {16, 64, 256, 1024};
  for (const int each : ranks)
    lockstep::run_thread_ranks(
        1, [&](lockstep::Communicator& comm) { lockstep::watchdog::measure(each, comm); });
}
