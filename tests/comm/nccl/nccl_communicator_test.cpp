// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The life of an NCCL communicator, with a stand-in for the library.
#include "comm/nccl/nccl_communicator.hpp"

#include "comm/thread/thread_ranks.hpp"
#include "tests/comm/nccl/fake_nccl.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"

#include <future>

namespace lockstep::testing {
namespace {

using std::chrono::milliseconds;
using Calls = std::vector<std::string>;

/// Wait of a rank in vain.
constexpr milliseconds kLittle{100};

void nothing(NcclCommunicator& /*connected*/) {}

void fail(NcclCommunicator& /*connected*/) {
  throw std::runtime_error("disk full");
}

class NcclCommunicatorTest : public ::testing::Test {
 protected:
  NcclCommunicatorTest() { use_fake_nccl(nccl_); }

  static void alone(const std::function<void(Communicator&)>& body,
                    milliseconds patience = std::chrono::minutes(1)) {
    run_thread_ranks(1, body, patience);
  }
  static void connected_alone(const std::function<void(NcclCommunicator&)>& body,
                              milliseconds patience = std::chrono::minutes(1)) {
    alone(
        [&](Communicator& comm) {
          NcclCommunicator connected(comm);
          connected.connect();
          body(connected);
        },
        patience);
  }
  /// Message of the PeerLostError or NcclError that `body` throws; its code in `code`.
  static std::string message_of(const std::function<void()>& body, ExitCode code) {
    try {
      body();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      return error.what();
    }
    ADD_FAILURE() << "no error";
    return "";
  }

  FakeNccl nccl_;
};

TEST_F(NcclCommunicatorTest, BlocksOfTheGpuAreBoundedWhereItIsAsked) {
#if NCCL_VERSION_CODE < NCCL_VERSION(2, 17, 0)
  GTEST_SKIP() << "this NCCL cannot be told";
#endif
  alone([](Communicator& comm) { NcclCommunicator(comm, 3).connect(); });
  EXPECT_EQ(nccl_.calls().front(), "init 0 of 1, blocks: 3");
}

TEST(NcclEndTest, IsInGoodOrderOrIsSaidAndAborted) {
  struct End {
    const char* name;
    ncclResult_t finalizing, polling, destruction;  ///< results of its calls
    int polls;                                      ///< until it is final
    const char *last_call, *said;
  };
  constexpr const char* kAborted = ": NCCL did not end in good order, it is aborted\n";
  for (const End& end :
       {End{"it takes a while", ncclInProgress, ncclSuccess, ncclSuccess, 3, "destroy", ""},
        {"it is there at once", ncclSuccess, ncclSuccess, ncclSuccess, 0, "destroy", ""},
        {"it cannot be asked", ncclInProgress, ncclInternalError, ncclSuccess, 0, "abort", kAborted},
        {"it does not begin", ncclSystemError, ncclSuccess, ncclSuccess, 0, "abort", kAborted},
        {"peers are gone", ncclInProgress, ncclSuccess, ncclSuccess, FakeNccl::kNever, "abort", kAborted},
        {"it leaves something", ncclInProgress, ncclSuccess, ncclInternalError, 0, "destroy",
         ": ncclCommDestroy failed\n"}}) {
    SCOPED_TRACE(end.name);
    FakeNccl nccl;
    use_fake_nccl(nccl);
    nccl.polls_until_connected = 5;
    nccl.finalizing = end.finalizing;
    nccl.polls_until_finalized = end.polls;
    nccl.destruction = end.destruction;
    ::testing::internal::CaptureStderr();
    run_thread_ranks(
        1,
        [&](Communicator& comm) {
          NcclCommunicator connected(comm);
          connected.connect();
          nccl.refusal = end.polling;
        },
        end.polls == FakeNccl::kNever ? kLittle : std::chrono::minutes(1));
    const std::string printed = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(nccl.calls(), (Calls{"init 0 of 1", "finalize", end.last_call}));
    EXPECT_TRUE(printed.ends_with(end.said)) << printed;
    EXPECT_EQ(printed.find("rank 0 on ") == printed.npos, *end.said == '\0') << printed;
  }
}

TEST_F(NcclCommunicatorTest, ACommunicatorThatNeverConnectedNeedsNoEnd) {
  alone([](Communicator& comm) { const NcclCommunicator unused(comm); });
  EXPECT_TRUE(nccl_.calls().empty());
}

TEST_F(NcclCommunicatorTest, EveryRankComesWithTheIdOfRankZero) {
  run_thread_ranks(3, [](Communicator& comm) { NcclCommunicator(comm).connect(); });
  EXPECT_EQ(nccl_.first_id_bytes, std::vector<char>(3, 'u'));
  for (const char* call : {"init 0 of 3", "init 1 of 3", "init 2 of 3"})
    EXPECT_TRUE(nccl_.called(call)) << call;
}

TEST_F(NcclCommunicatorTest, RanksThatDoNotComeAreAPeerLostWithTheFix) {
  nccl_.polls_until_connected = FakeNccl::kNever;
  const auto text = message_of([] { connected_alone(nothing, kLittle); }, ExitCode::kPeerLost);
  EXPECT_TRUE(contains(text, {"rank 0 of 1 on ", "creation of the NCCL communicator", "NCCL_SOCKET_IFNAME"}));
  EXPECT_EQ(nccl_.calls(), (Calls{"init 0 of 1", "abort"}));
}

TEST_F(NcclCommunicatorTest, AFailedCreationSaysWhatNcclSaid) {
  nccl_.creation = ncclSystemError;
  const auto text = message_of([] { connected_alone(nothing); }, ExitCode::kPeerLost);
  EXPECT_TRUE(contains(text, {"ncclCommInitRankConfig", "socket closed by peer"}));
  EXPECT_EQ(nccl_.calls(), Calls{"init 0 of 1"});
}

/// The error is long caught when the communicator goes: nothing else says that it must not wait for the others.
TEST_F(NcclCommunicatorTest, AfterACallThatFailedItAborts) {
  connected_alone([&](NcclCommunicator& connected) {
    nccl_.refusal = ncclInternalError;
    message_of([&] { connected.settled(); }, ExitCode::kInternal);
    nccl_.refusal = ncclSuccess;
  });
  EXPECT_EQ(nccl_.calls(), (Calls{"init 0 of 1", "abort"}));
  connected_alone([&](NcclCommunicator& connected) {
    nccl_.refusal = ncclInternalError;
    const auto sum = [&] {
      LOCKSTEP_NCCL(ncclAllReduce(nullptr, nullptr, 1, ncclInt64, ncclSum, connected.handle(), nullptr));
    };
    message_of([&] { connected.call(sum); }, ExitCode::kInternal);
    nccl_.refusal = ncclSuccess;
  });
  EXPECT_EQ(nccl_.calls().back(), "abort");
  EXPECT_FALSE(nccl_.called("finalize"));
}

TEST_F(NcclCommunicatorTest, WhileAnExceptionIsOnItsWayItAborts) {
  EXPECT_THROW(connected_alone(fail), std::runtime_error);
  EXPECT_EQ(nccl_.calls(), (Calls{"init 0 of 1", "abort"}));
}

TEST_F(NcclCommunicatorTest, AnAbortThatHangsIsLeftBehind) {
  std::promise<void> end, ended;
  nccl_.on_abort = [&, go_on = end.get_future().share()] {
    go_on.wait();
    ended.set_value();
  };
  const auto start = std::chrono::steady_clock::now();
  ::testing::internal::CaptureStderr();
  EXPECT_THROW(connected_alone(fail, kLittle), std::runtime_error);
  EXPECT_TRUE(contains(::testing::internal::GetCapturedStderr(), {"ncclCommAbort hangs, it is left behind"}));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
  end.set_value();
  ended.get_future().wait();
}

TEST_F(NcclCommunicatorTest, SignalHandlersStayOurs) {
  for (const int signal : {SIGUSR1, SIGUSR2}) {
    struct sigaction ours = {}, after = {}, before = {};
    ours.sa_handler = [](int) {};
    sigaction(signal, &ours, &before);
    nccl_.on_creation = [signal] { std::signal(signal, SIG_IGN); };
    connected_alone(nothing);
    sigaction(signal, &before, &after);
    EXPECT_EQ(after.sa_handler, ours.sa_handler) << signal;
  }
}

// Treatment of a result that is not ncclSuccess.

NcclError error_of(ncclResult_t result) {
  try {
    LOCKSTEP_NCCL(result);
  } catch (const NcclError& error) {
    return error;
  }
  return {ExitCode::kOk, "no error"};
}

TEST(NcclErrorTest, SuccessAndWorkInProgressAreNoErrors) {
  EXPECT_EQ(error_of(ncclSuccess).code(), ExitCode::kOk);
  EXPECT_EQ(error_of(ncclInProgress).code(), ExitCode::kOk);
}

TEST(NcclErrorTest, TheResultSaysWhoIsToBlameAndWhatHelps) {
  constexpr const char
      *kNetwork =
          "; see what the other ranks said; if hosts do not reach each other, name the network "
          "interface that they share (NCCL_SOCKET_IFNAME=eth0); NCCL_DEBUG=WARN says more",
      *kBug = "; NCCL_DEBUG=WARN says more; please report this";
  const std::tuple<ncclResult_t, ExitCode, const char*> kinds[] = {
      {ncclRemoteError, ExitCode::kPeerLost, kNetwork},
      {ncclSystemError, ExitCode::kPeerLost, kNetwork},
      {ncclUnhandledCudaError, ExitCode::kDeviceUnavailable,
       "; see 'lockstep devices'; NCCL_DEBUG=WARN says more; or use backend mpi"},
      {ncclInvalidUsage, ExitCode::kDeviceUnavailable,
       "; every rank needs a GPU of its own and the same NCCL; NCCL_DEBUG=WARN says more; or use backend "
       "mpi"},
      {ncclInvalidArgument, ExitCode::kInternal, kBug},
      {ncclInternalError, ExitCode::kInternal, kBug}};
  for (const auto& [result, code, fix] : kinds) {
    const NcclError error = error_of(result);
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_TRUE(std::string_view(error.what()).ends_with(fix)) << error.what();
  }
}

TEST(NcclErrorTest, WithoutALastWordOfNcclThereIsNone) {
  const char* const before = last_nccl_error;
  for (const char* none : {static_cast<const char*>(nullptr), ""}) {
    last_nccl_error = none;
    EXPECT_TRUE(contains(error_of(ncclRemoteError).what(), {" in result: remote process exited; see "}));
  }
  last_nccl_error = before;
}

TEST(NcclErrorTest, OneLineNamesCallPlaceAndWhatNcclSaid) {
  expect_one_line_with(
      error_of(ncclRemoteError).what(),
      {"nccl_communicator_test.cpp:", " in result: remote process exited (socket closed by peer); see "});
}

}  // namespace
}  // namespace lockstep::testing
