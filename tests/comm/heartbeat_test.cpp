// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Two ranks that hear each other over real sockets, and strangers at the door of one of them.
#include "comm/watch/heartbeat.hpp"

#include "comm/thread/thread_ranks.hpp"
#include "comm/watch/message.hpp"
#include "comm/watch/rendezvous.hpp"
#include "comm/watch/watchdog_thread.hpp"
#include "common/error.hpp"
#include "tests/comm/heartbeat_ranks.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/set_variable.hpp"
#include "tests/support/temporary_directory.hpp"

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

namespace lockstep::watchdog {
namespace {

using asio::ip::tcp;
using Bytes = std::vector<std::uint8_t>;

Bytes bytes_of(const std::string& text) {
  return {text.begin(), text.end()};
}

/// Two ranks, which have met.
class HeartbeatTest : public HeartbeatRanks {
 protected:
  explicit HeartbeatTest(std::int64_t hello_within_ns = Heartbeat::kHelloWithinNs)
      : HeartbeatRanks(2, {"no address", "127.0.0.1"}, hello_within_ns) {
    until("they meet", [this] { return peer(0, 1).watched && peer(1, 0).watched; });
  }

  int disturbances() { return of(0).changes + of(1).changes; }
  tcp::socket stranger() {
    tcp::socket socket(context);
    socket.connect({asio::ip::address_v4::loopback(), static_cast<asio::ip::port_type>(peer(0, 0).who.port)});
    return socket;
  }
  /// True if the other side has hung up.
  /// @param heard  grows by the bytes that it sent before
  static bool is_closed(tcp::socket& socket, std::size_t& heard) {
    std::array<char, 4096> bytes{};
    asio::error_code error;
    socket.non_blocking(true);
    heard += socket.read_some(asio::buffer(bytes), error);
    return error && error != asio::error::would_block;
  }
  static bool is_closed(tcp::socket& socket) {
    std::size_t heard = 0;
    return is_closed(socket, heard);
  }
  void expect_disconnected(const Bytes& said, const std::string& why) {
    SCOPED_TRACE(why);
    tcp::socket socket = stranger();
    asio::write(socket, asio::buffer(said));
    std::size_t heard = 0;
    until("a stranger is disconnected", [&] { return is_closed(socket, heard); });
    EXPECT_EQ(heard, 0U) << "it was taken for a rank, and told the token";
  }
  /// Rank 1 is where it was: connected, heard anew, and nothing has happened.
  void expect_rank_1_undisturbed() {
    const std::int64_t before = peer(0, 1).heard_ns;
    until("rank 1 is heard", [&] { return peer(0, 1).heard_ns > before; });
    EXPECT_TRUE(peer(0, 1).watched);
    EXPECT_FALSE(peer(0, 1).dead || peer(0, 1).leaving);
    EXPECT_EQ(disturbances(), 0);
  }
};

TEST_F(HeartbeatTest, StrangersAreDisconnectedAndChangeNothing) {
  expect_disconnected(bytes_of("GET / HTTP/1.1\r\n\r\n"), "another protocol");
  expect_disconnected(encode(Hello{draw_token(), 1, 2}), "another token");
  for (std::size_t byte = 0; byte < token.size(); ++byte) {
    Token nearly = token;
    nearly[byte] ^= 1U;
    expect_disconnected(encode(Hello{nearly, 1, 2}), "a token that differs in a bit");
  }
  expect_disconnected(encode(Hello{token, 7, 2}), "a rank that is not there");
  expect_disconnected(encode(Hello{token, 0, 2}), "the rank itself");
  expect_disconnected(encode(Hello{token, 1, 3}), "a job of another size");
  expect_disconnected(encode(Leaving{71, 1, true}), "a message before the hello");
  expect_rank_1_undisturbed();
}

TEST_F(HeartbeatTest, RankThatSaysGoodbyeIsNoLongerWatched) {
  of(1).heartbeat->send_last(Goodbye{});
  until("it is no longer watched", [this] { return !peer(0, 1).watched; });
  EXPECT_FALSE(peer(0, 1).dead || peer(0, 1).leaving);
}

TEST_F(HeartbeatTest, TheFirstReasonStaysUntilItIsSpokenForAll) {
  const auto farewell = [this] {
    const Leaving& said = peer(0, 1).farewell;
    return std::tuple(said.code, said.because, said.spoken);
  };
  of(1).heartbeat->send_to_all(Leaving{71, 0, false});
  until("it leaves", [this] { return peer(0, 1).leaving; });
  EXPECT_EQ(farewell(), std::tuple(71, 0, false));
  of(1).heartbeat->send_to_all(Leaving{72, 0, true});
  until("it has spoken", [this] { return peer(0, 1).farewell.spoken; });
  of(1).heartbeat->send_to_all(Leaving{74, -1, false});
  of(1).heartbeat->send_last(Goodbye{});
  until("it has ended", [this] { return peer(0, 1).ended; });
  EXPECT_EQ(farewell(), std::tuple(72, 0, true));
  EXPECT_EQ(disturbances(), 2) << "the others were no news";
}

/// A rank whose run ends before the two have met: the other one must not take it for dead.
TEST_F(HeartbeatTest, ARankThatHasSaidHelloAndIsNotAnsweredYetSaysGoodbye) {
  tcp::acceptor low = listen();
  std::vector<Peer> peers = of(1).peers;
  peers[0].who.port = low.local_endpoint().port();
  peers[0].who.addresses = {"127.0.0.1"};
  Heartbeat high(context, listen(), 1, token, peers, {.make_beat = [] { return Beat{}; }, .changed = {}});
  high.start();
  tcp::socket socket = low.accept();
  socket.non_blocking(true);
  const auto expect_heard = [&](const Bytes& message) {
    Bytes bytes(message.size());
    std::size_t heard = 0;
    until("all is heard", [&] {
      asio::error_code error;
      heard += socket.read_some(asio::buffer(bytes.data() + heard, bytes.size() - heard), error);
      return heard == bytes.size();
    });
    EXPECT_EQ(bytes, message);
  };
  expect_heard(encode(Hello{token, 1, 2}));
  high.send_last(Goodbye{});
  expect_heard(encode(Goodbye{}));
  until("all is sent", [&] { return high.all_sent(); });
}

TEST_F(HeartbeatTest, ARankThatHasSaidGoodbyeAnswersNoHello) {
  of(0).heartbeat->send_last(Goodbye{});
  until("rank 0 is no longer watched", [this] { return !peer(1, 0).watched; });
  expect_disconnected(encode(Hello{token, 1, 2}), "a rank that is late");
}

TEST_F(HeartbeatTest, AThousandSilentStrangersCostNoRankItsPlace) {
  const Bytes hello = encode(Hello{draw_token(), 1, 2});
  std::deque<tcp::socket> silent;  // some with half a message, which could become a hello
  for (int i = 0; i < 1000; ++i) {
    silent.push_back(stranger());
    if (i % 2 == 0) asio::write(silent.back(), asio::buffer(hello.data(), hello.size() / 2));
    if (silent.size() > 500) silent.pop_front();  // this process has descriptors for so many
    context.restart();
    context.poll();
  }
  expect_rank_1_undisturbed();
  // The house is full; a rank whose connection broke finds a place.
  tcp::socket again = stranger();
  asio::write(again, asio::buffer(encode(Hello{token, 1, 2})));
  Beat last;
  last.where.step = 3;
  asio::write(again, asio::buffer(encode(last)));
  until("it finds a place", [this] { return peer(0, 1).where.step == 3; });
  EXPECT_EQ(disturbances(), 0);
  const auto held = std::ranges::count_if(silent, [](tcp::socket& socket) { return !is_closed(socket); });
  EXPECT_LE(held, 64);
  EXPECT_GE(held, 1) << "or no rank was there to take a place";
}

/// Its times become those of rank 0's clock; nothing lies in the future. The real rank 1 is cut off meanwhile.
TEST_F(HeartbeatTest, ABeatTellsWhereItsRankIs) {
  of(1).heartbeat->drop_network([](int) { return true; });
  const auto hears = [this](const Beat& beat) {
    tcp::socket socket = stranger();
    Bytes said = encode(Hello{token, 1, 2});
    const Bytes more = encode(beat);
    said.insert(said.end(), more.begin(), more.end());
    asio::write(socket, asio::buffer(said));
    until("it is heard", [&] { return peer(0, 1).where.step == beat.where.step; });
    return peer(0, 1);
  };
  Beat beat{.sent_ns = 1000, .where = {.step = 7, .phase = Phase::kSaving, .since_ns = 400}};
  beat.witnessed_rank = 1;
  beat.witnessed_state = 'T';
  put_text("cuda:3", beat.device);
  Peer rank_1 = hears(beat);
  EXPECT_EQ(rank_1.heard_ns - rank_1.where.since_ns, 600);
  EXPECT_EQ(rank_1.where.phase, Phase::kSaving);
  EXPECT_EQ(rank_1.device, "cuda:3");
  EXPECT_EQ(rank_1.state, 'T');
  EXPECT_FALSE(rank_1.traced);
  beat.where.step = 8;
  beat.where.since_ns = 1001;
  beat.witnessed_rank = 2;
  beat.traced = true;
  rank_1 = hears(beat);
  EXPECT_EQ(rank_1.where.since_ns, rank_1.heard_ns) << "not later than it was sent";
  EXPECT_TRUE(rank_1.traced);
  beat.where.step = 9;
  beat.where.since_ns = -1;
  beat.witnessed_rank = 0;
  beat.traced = false;
  rank_1 = hears(beat);
  EXPECT_EQ(rank_1.where.since_ns, rank_1.heard_ns);
  EXPECT_EQ(rank_1.state, '?') << "it goes on";
  EXPECT_EQ(peer(0, 0).state, '?') << "each knows best of itself";
}

class ImpatientHeartbeatTest : public HeartbeatTest {
 protected:
  ImpatientHeartbeatTest() : HeartbeatTest(200'000'000) {}
};

TEST_F(ImpatientHeartbeatTest, StrangersWhoSayNothingAreDisconnected) {
  tcp::socket silent = stranger();
  const auto waited = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!is_closed(silent) && std::chrono::steady_clock::now() < waited)
    expect_rank_1_undisturbed();  // also its beats, which look after connections
  EXPECT_TRUE(is_closed(silent));
}

TEST(RendezvousTest, EachJobHasATokenOfItsOwnThatItsRanksShare) {
  std::array<std::array<Token, 3>, 2> tokens{};
  for (auto& of_job : tokens) {
    run_thread_ranks(3, [&](Communicator& comm) {
      const auto roll = call_roll(comm);
      ASSERT_TRUE(roll);
      of_job[static_cast<std::size_t>(comm.rank())] = roll->token;
      ASSERT_EQ(roll->peers.size(), 3U);
      for (int rank = 0; rank < 3; ++rank) {
        const Identity& who = roll->peers[static_cast<std::size_t>(rank)].who;
        EXPECT_EQ(who.rank, rank);
        EXPECT_EQ(who.host, comm.host());
        EXPECT_EQ(who.pid, ::getpid());
        EXPECT_EQ(who.addresses, std::vector<std::string>{"127.0.0.1"}) << "ranks of one machine";
        EXPECT_EQ(who.port == roll->acceptor.local_endpoint().port(), rank == comm.rank());
      }
      EXPECT_EQ(roll->acceptor.local_endpoint().address(), asio::ip::address_v4::loopback());
    });
    EXPECT_EQ(of_job[0], of_job[1]);
    EXPECT_EQ(of_job[0], of_job[2]);
    EXPECT_NE(of_job[0], Token{});
  }
  EXPECT_NE(tokens[0][0], tokens[1][0]);
}

/// As when the machine slept: a rank that was away has heard nothing, and the others are not to blame.
TEST(WatchdogThreadTest, RanksThatWereAllAwayLoseNoneOfThem) {
  constexpr std::chrono::milliseconds kTimeout{2500}, kConnected{400}, kAway{3200};
  const auto begun = std::chrono::steady_clock::now();
  std::array<bool, 2> left{};
  const auto away = [&](Communicator& comm) {
    auto roll = call_roll(comm);
    ASSERT_TRUE(roll);
    asio::io_context& context = *roll->context;
    WatchdogThread lookout(comm, std::move(*roll));
    std::this_thread::sleep_until(begun + kConnected);
    asio::post(context, [&] { std::this_thread::sleep_until(begun + kConnected + kAway); });
    std::this_thread::sleep_until(begun + kConnected + kAway + kConnected);
    left[static_cast<std::size_t>(comm.rank())] = lookout.is_over();
  };
  run_thread_ranks(2, away, kTimeout);
  EXPECT_EQ(left, (std::array<bool, 2>{}));
}

/// Rank 0 of two cannot go on, though rank 1 lives: it says so, and does not leave by itself.
[[noreturn]] void blame_rank_1(const std::string& verdict_file) {
  run_thread_ranks(2, [&](Communicator& comm) {
    comm.activity().verdict_file.set(verdict_file);
    comm.activity().restart_advice.set("go home");
    auto roll = call_roll(comm);
    WatchdogThread watchdog(comm, std::move(*roll));
    if (comm.rank() == 0)
      std::fputs(watchdog.accounts_for_loss() ? "it is said\n" : "nothing is said\n", stderr);
    while (comm.rank() == 0 || !watchdog.is_over()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  std::_Exit(0);
}

TEST(WatchdogThreadDeathTest, ARankThatCannotGoOnSaysWhyAndIsEndedWhereItDoesNotLeave) {
  const testing::TemporaryDirectory directory;
  const std::string path = directory.path("verdict");
  EXPECT_EXIT(blame_rank_1(path), ::testing::ExitedWithCode(71),
              "^lockstep: verdict: .*; go home\nit is said\n$");
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_TRUE(text.starts_with("verdict: ")) << text;
  EXPECT_TRUE(text.ends_with("; go home\n")) << text;
}

/// A stopped process that runs only when no other wants its core.
pid_t new_process() {
  const pid_t child = ::fork();
  if (child == 0) {
    const sched_param lowest{};
    ::sched_setscheduler(0, SCHED_IDLE, &lowest);
    for (;;) ::raise(SIGSTOP);
  }
  ::waitpid(child, nullptr, WUNTRACED);
  return child;
}

TEST(ProcessStateTest, ProcessThatWasKilledIsEndingAtOnce) {
  cpu_set_t before, one;
  ASSERT_EQ(::sched_getaffinity(0, sizeof(before), &before), 0);
  CPU_ZERO(&one);
  CPU_SET(::sched_getcpu(), &one);
  ::sched_setaffinity(0, sizeof(one),
                      &one);  // one core: a killed child has not run when looked at
  for (int round = 0; round < 20; ++round) {
    const pid_t child = new_process();
    EXPECT_TRUE(runs_this_program(child));
    EXPECT_FALSE(is_ending(child)) << "a stopped process may go on";
    EXPECT_EQ(state_of_process(child), 'T');
    ::kill(child, SIGKILL);
    EXPECT_TRUE(is_ending(child)) << "though nothing has happened to it yet";
    ::waitpid(child, nullptr, 0);
    EXPECT_TRUE(is_ending(child)) << "it is gone";
  }
  ::sched_setaffinity(0, sizeof(before), &before);
  EXPECT_FALSE(runs_this_program(::getppid()));
  EXPECT_EQ(state_of_process(std::numeric_limits<int>::max()), '?') << "no process has that number";
  EXPECT_TRUE(is_ending(std::numeric_limits<int>::max()));
}

// Packets between watchdogs arrive as they were sent; nothing else arrives at all.

Beat sample_beat() {
  Beat beat{.sent_ns = 12, .where = {.step = 5, .phase = Phase::kReducing}};
  std::string_view("a barrier").copy(beat.where.place.data(), 9);
  beat.where.waiting = Waiting::kForAll;
  beat.witnessed_rank = 2;
  beat.witnessed_state = 'T';
  beat.traced = true;
  return beat;
}

std::optional<Message> parse(std::span<const std::uint8_t> bytes) {
  Parser parser;
  parser.feed(bytes);
  return parser.next();
}

TEST(WatchdogMessageTest, ComesOutAsItWentIn) {
  const auto beat = parse(encode(sample_beat()));
  ASSERT_TRUE(beat && std::holds_alternative<Beat>(*beat));
  EXPECT_EQ(encode(*beat), encode(sample_beat()));
  EXPECT_EQ(std::get<Beat>(*beat).where.place_text(), "a barrier");
  EXPECT_EQ(std::get<Beat>(*beat).where.waiting, Waiting::kForAll);
  const Relay relay{{{3, 99, sample_beat()}, {4, 5, Died{}}}};
  EXPECT_EQ(encode(*parse(encode(relay))), encode(relay));
  EXPECT_EQ(std::get<Relay>(*parse(encode(relay))).list[0].age_ns, 99);
  EXPECT_TRUE(std::holds_alternative<Goodbye>(*parse(encode(Goodbye{}))));
  EXPECT_EQ(std::get<Leaving>(*parse(encode(Leaving{71, 3, true}))).because, 3);
}

TEST(WatchdogMessageTest, RelaysTakeAsManyMessagesAsTheyNeed) {
  std::vector<Relayed> list;
  for (std::uint32_t rank = 0; rank < 2000; ++rank) list.push_back({rank, 5, Goodbye{}});
  Parser parser;
  parser.feed(encode_relays(list));
  std::vector<std::uint32_t> ranks;
  int messages = 0;
  for (; const auto message = parser.next(); ++messages)
    for (const Relayed& relayed : std::get<Relay>(*message).list) ranks.push_back(relayed.rank);
  ASSERT_EQ(ranks.size(), list.size());
  for (std::uint32_t rank = 0; rank < 2000; ++rank) EXPECT_EQ(ranks[rank], rank);
  EXPECT_GT(messages, 1);
  EXPECT_TRUE(encode_relays({}).empty());
  list.resize(kMostRelayed);
  EXPECT_TRUE(parse(encode(Relay{list})));
  list.push_back(list.front());
  EXPECT_THROW(encode(Relay{list}), InternalError);
  EXPECT_THROW(encode(Relay{{{1, 0, Hello{}}}}), InternalError);
  EXPECT_THROW(encode(Relay{{{1, 0, Relay{}}}}), InternalError);
}

TEST(WatchdogMessageTest, PiecesOfAnySizeAreWaitedFor) {
  Bytes bytes = encode(Hello{{1, 2, 3}, 1, 4});
  const auto second = encode(sample_beat());
  bytes.insert(bytes.end(), second.begin(), second.end());
  for (const std::size_t piece : {1U, 3U, 7U, 100U}) {
    Parser parser;
    std::vector<std::size_t> kinds;
    for (std::size_t i = 0; i < bytes.size(); i += piece) {
      parser.feed(std::span(bytes).subspan(i, std::min(piece, bytes.size() - i)));
      while (const auto message = parser.next()) kinds.push_back(message->index());
    }
    EXPECT_EQ(kinds, (std::vector<std::size_t>{0, 1})) << piece;
    EXPECT_FALSE(parser.is_bad());
  }
}

TEST(WatchdogMessageTest, WhatIsNoMessageEndsTheConversation) {
  const auto expect_bad = [](const Bytes& bytes, const char* why) {
    Parser parser;
    parser.feed(bytes);
    EXPECT_FALSE(parser.next()) << why;
    EXPECT_TRUE(parser.is_bad()) << why;
  };
  const auto with = [](Bytes bytes, std::size_t at, std::size_t value) {
    bytes[at] = static_cast<std::uint8_t>(value);
    return bytes;
  };
  const Bytes good = encode(sample_beat());
  expect_bad(bytes_of("GET / HTTP/1.1\r\n\r\n"), "another protocol");
  expect_bad(with(good, 3, good[3] ^ 0x10U), "another version");
  expect_bad(with(good, 3, good[3] | 0x0fU), "an unknown kind");
  expect_bad(with(good, 7, 1), "a size of 16 MiB");
  expect_bad(with(good, kHeadBytes + 16, kPhases), "an unknown phase");
  EXPECT_TRUE(parse(with(good, kHeadBytes + 16, kPhases - 1)));
  expect_bad(with(good, kHeadBytes + 17, kWaitings), "an unknown wait");
  EXPECT_TRUE(parse(with(good, kHeadBytes + 17, kWaitings - 1)));
  expect_bad(with(good, kHeadBytes + 139, 2), "a truth that is neither");
  Bytes bytes = with(good, 4, good[4] - 1U);
  bytes.pop_back();
  expect_bad(bytes, "less than belongs to it");
  for (const auto index : {Message(Hello{}).index(), Message(Relay{}).index()})
    expect_bad(with(encode(Relay{{{3, 99, Goodbye{}}}}), kHeadBytes + 16, index),
               "a kind that is not relayed");
  for (const std::uint32_t size : {65'536U, 65'537U}) {
    bytes = encode(Relay{});
    std::memcpy(bytes.data() + 4, &size, 4);
    Parser parser;
    parser.feed(bytes);
    EXPECT_FALSE(parser.next());
    EXPECT_EQ(parser.is_bad(), size > 65'536U) << "what is too long is not waited for";
  }
  bytes = with(encode(Goodbye{}), 4, 1);
  bytes.push_back(0);
  expect_bad(bytes, "more than belongs to it");
  bytes = encode(Relay{});
  const std::uint32_t many = 1'000'000;
  std::memcpy(bytes.data() + kHeadBytes, &many, 4);
  expect_bad(bytes, "a list longer than the message");
  bytes = good;
  std::fill(bytes.begin() + kHeadBytes + 38, bytes.begin() + kHeadBytes + 38 + kPlaceBytes,
            std::uint8_t{'x'});
  expect_bad(bytes, "a text without an end");
  bytes = good;
  std::fill(bytes.end() - 64, bytes.end(), std::uint8_t{'x'});
  expect_bad(bytes, "a device without an end");
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
