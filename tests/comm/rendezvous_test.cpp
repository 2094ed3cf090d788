// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Before the watch begins: the token, and the addresses and interfaces of ranks.
#include "comm/watch/rendezvous.hpp"

#include "comm/thread/thread_ranks.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/set_variable.hpp"

#include <fmt/ranges.h>
#include <sys/resource.h>
#include <unistd.h>

namespace lockstep::watchdog {
namespace {

TEST(RendezvousTest, EachJobHasATokenOfItsOwnThatItsRanksShare) {
  std::array<std::array<Token, 3>, 2> tokens{};
  for (auto& of_job : tokens) {
    run_thread_ranks(3, [&](Communicator& comm) {
      const std::int64_t before = clock_ns();
      const auto roll = call_roll(comm);
      ASSERT_TRUE(roll);
      of_job[static_cast<std::size_t>(comm.rank())] = roll->token;
      ASSERT_EQ(roll->peers.size(), 3U);
      for (int rank = 0; rank < 3; ++rank) {
        const Peer& peer = at(roll->peers, rank);
        const Identity& who = peer.who;
        EXPECT_EQ(who.rank, rank);
        EXPECT_EQ(who.host, comm.host());
        EXPECT_EQ(who.pid, ::getpid());
        EXPECT_EQ(who.addresses, std::vector<std::string>{"127.0.0.1"}) << "ranks of one machine";
        EXPECT_EQ(who.port == roll->acceptor.local_endpoint().port(), rank == comm.rank());
        EXPECT_GE(peer.heard_ns, before) << "at the roll call";
        EXPECT_EQ(peer.where.since_ns, peer.heard_ns);
      }
      EXPECT_EQ(roll->acceptor.local_endpoint().address(), asio::ip::address_v4::loopback());
    });
    EXPECT_EQ(of_job[0], of_job[1]);
    EXPECT_EQ(of_job[0], of_job[2]);
    EXPECT_NE(of_job[0], Token{});
  }
  EXPECT_NE(tokens[0][0], tokens[1][0]);
}

/// As many descriptors as a context needs, and none for the door.
TEST(RendezvousTest, WhereARankCannotListenNobodyIsWatched) {
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  bool watched = true;
  ::testing::internal::CaptureStderr();
  const auto meet = [&](Communicator& comm) {
    for (rlim_t most = 3; most < 4096; ++most) {
      const rlimit some{.rlim_cur = most, .rlim_max = before.rlim_max};
      setrlimit(RLIMIT_NOFILE, &some);
      try {
        watched = call_roll(comm).has_value();
        break;
      } catch (const std::system_error&) {
        continue;  // too few for the context
      }
    }
  };
  run_thread_ranks(1, meet, std::chrono::seconds(7));
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_EQ(
      ::testing::internal::GetCapturedStderr(),
      "lockstep: rank 0 cannot listen on the network (Too many open files): the ranks do not watch each "
      "other, and a rank that is lost shows when the others have waited for 7 s\n");
  EXPECT_FALSE(watched);
}

TEST(WatchdogAddressesTest, InterfacesOfMpiAreChosenAndBridgesComeLast) {
  const std::vector<Interface> all = {
      {"lo", 0x7f000001, true}, {"docker0", 0xac110001}, {"eth0", 0x0a000005}, {"ib0", 0x0a010005}};
  const auto names = [&](std::string_view included) {
    std::vector<std::string> found;
    for (const auto& interface : usable(all, included)) found.push_back(interface.name);
    return found;
  };
  EXPECT_EQ(names(""), (std::vector<std::string>{"eth0", "ib0", "docker0"}));
  EXPECT_EQ(names("ib0"), std::vector<std::string>{"ib0"});
  EXPECT_EQ(names("10.0.0.0/24"), std::vector<std::string>{"eth0"});
  EXPECT_EQ(names("eth9,10.1.0.0/16"), std::vector<std::string>{"ib0"});
  EXPECT_EQ(names("nonsense/99").size(), 3U);
  EXPECT_EQ(names("ib0,eth0"), (std::vector<std::string>{"eth0", "ib0"}));
}

TEST(WatchdogAddressesTest, OfSeveralInterfacesNoneIsBoundTo) {
  const Interface one{"eth0", 0x0a000005}, two{"ib0", 0x0a010005};
  const auto chosen = [](bool one_machine, const std::vector<Interface>& interfaces) {
    const Endpoint endpoint = choose_endpoint(one_machine, interfaces);
    return fmt::format("{} at {}", fmt::join(endpoint.addresses, " "), endpoint.bind_to.to_string());
  };
  EXPECT_EQ(chosen(true, {one, two}), "127.0.0.1 at 127.0.0.1");
  EXPECT_EQ(chosen(false, {one}), "10.0.0.5 at 10.0.0.5");
  EXPECT_EQ(chosen(false, {one, two}), "10.0.0.5 10.1.0.5 at 0.0.0.0");
  EXPECT_EQ(chosen(false, {}), " at 0.0.0.0");
}

TEST(WatchdogAddressesTest, TheLoopbackInterfaceIsAmongThoseHere) {
  EXPECT_TRUE(std::ranges::any_of(interfaces_here(), [](const Interface& interface) {
    return interface.loopback && interface.address == 0x7f000001 && !interface.name.empty();
  }));
}

TEST(WatchdogAddressesTest, InterfacesAreNamedAsForMpi) {
  using test::SetVariable;
  const SetVariable none("OMPI_MCA_btl_tcp_if_include", nullptr),
      of_oob("OMPI_MCA_oob_tcp_if_include", nullptr);
  EXPECT_EQ(included_interfaces(), "");
  const SetVariable of_launcher("OMPI_MCA_oob_tcp_if_include", "ib0");
  EXPECT_EQ(included_interfaces(), "ib0");
  const SetVariable empty("OMPI_MCA_btl_tcp_if_include", "");
  EXPECT_EQ(included_interfaces(), "ib0");
  const SetVariable of_messages("OMPI_MCA_btl_tcp_if_include", "eth0");
  EXPECT_EQ(included_interfaces(), "eth0");
}

}  // namespace
}  // namespace lockstep::watchdog
