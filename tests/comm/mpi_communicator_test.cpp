// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The MPI backend: the common checks, hosts of any size, and ranks that are late.
#include "comm/mpi/mpi_communicator.hpp"

#include "comm/mpi/mpi_all_reduce.hpp"
#include "comm/mpi/mpi_runtime.hpp"
#include "comm/mpi/rank_watch.hpp"
#include "comm/reduce/gradient_reducer.hpp"
#include "common/buffers.hpp"
#include "common/machine.hpp"
#include "tests/comm/conformance.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/mpi_test.hpp"
#include "tests/support/set_variable.hpp"

#include <gtest/gtest.h>
#include <mpi.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

/// Communicators and windows of MPI that this process has made and not freed, by way of MPI's profiling interface.
int open_communicators = 0, open_windows = 0;
MPI_Win newest_window = MPI_WIN_NULL;
/// Messages that it has begun to send.
int sends = 0;
/// So many threads MPI says that it serves, instead of starting again.
std::optional<int> threads_served;

}  // namespace

extern "C" {

int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  if (!threads_served) return PMPI_Init_thread(argc, argv, required, provided);
  *provided = *threads_served;
  return MPI_SUCCESS;
}

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm* made) {
  ++open_communicators;
  return PMPI_Comm_dup(comm, made);
}

int MPI_Comm_split(MPI_Comm comm, int colour, int key, MPI_Comm* made) {
  ++open_communicators;
  return PMPI_Comm_split(comm, colour, key, made);
}

int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm* made) {
  ++open_communicators;
  return PMPI_Comm_split_type(comm, type, key, info, made);
}

int MPI_Comm_free(MPI_Comm* comm) {
  --open_communicators;
  return PMPI_Comm_free(comm);
}

int MPI_Win_allocate_shared(MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void* base,
                            MPI_Win* made) {
  ++open_windows;
  const int status = PMPI_Win_allocate_shared(size, unit, info, comm, base, made);
  newest_window = *made;
  return status;
}

int MPI_Win_free(MPI_Win* window) {
  --open_windows;
  return PMPI_Win_free(window);
}

int MPI_Isend(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request* request) {
  ++sends;
  return PMPI_Isend(data, count, type, to, tag, comm, request);
}

}  // extern "C"

namespace lockstep::testing {
namespace {

std::unique_ptr<Communicator> make_comm() {
  return make_mpi_communicator(mpi_runtime(), std::chrono::seconds(60));
}

class MpiConformanceTest : public ::testing::TestWithParam<ConformanceCase> {};

TEST_P(MpiConformanceTest, Holds) {
  GetParam().check(*make_comm());
}

INSTANTIATE_TEST_SUITE_P(Mpi, MpiConformanceTest, ::testing::ValuesIn(conformance_cases()),
                         [](const auto& param) { return param.param.name; });

INSTANTIATE_TEST_SUITE_P(MpiCollectives, MpiConformanceTest, ::testing::ValuesIn(collective_cases()),
                         [](const auto& param) { return param.param.name; });

TEST(MpiCommunicatorTest, AgreesWithMpiAboutTheGroup) {
  int rank = -1, size = -1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const auto comm = make_comm();
  EXPECT_EQ(comm->rank(), rank);
  EXPECT_EQ(comm->size(), size);
  EXPECT_EQ(comm->local_rank(), rank);  // tests run on one host
  EXPECT_EQ(comm->local_size(), size);
  EXPECT_EQ(comm->backend(), "mpi");
  EXPECT_EQ(comm->library(), mpi_library());
  EXPECT_FALSE(mpi_library().empty());
  EXPECT_EQ(comm->local_cores(), available_cores()) << "ranks are bound to none of them";
  EXPECT_EQ(comm->oversubscribed(), size > available_cores());
}

/// Makes one while this rank is bound to a CPU.
std::unique_ptr<Communicator> make_comm_on(int cpu) {
  cpu_set_t before, one;
  EXPECT_EQ(::sched_getaffinity(0, sizeof(before), &before), 0);
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  ::sched_setaffinity(0, sizeof(one), &one);
  auto comm = make_comm();
  ::sched_setaffinity(0, sizeof(before), &before);
  return comm;
}

TEST(MpiCommunicatorTest, RanksHaveTheCoresThatTheyAreBoundTo) {
  const std::vector<int> cpus = usable_cpus();
  ASSERT_FALSE(cpus.empty());
  const int size = mpi_runtime().size(), cores = available_cores();
  const auto on_one = make_comm_on(cpus.back());
  EXPECT_EQ(on_one->local_cores(), 1);
  EXPECT_EQ(on_one->oversubscribed(), size > 1);
  const auto apart = make_comm_on(at(cpus, mpi_runtime().rank() % std::ssize(cpus)));
  EXPECT_EQ(apart->local_cores(), std::min(size, cores));
  EXPECT_EQ(apart->oversubscribed(), size > cores);
}

/// Tests run on one host, whose ranks have one partner after the other.
TEST(MpiCommunicatorTest, ALargeSumBeginsWithOneMessageAndAMessageIsOne) {
  const auto comm = make_comm();
  std::vector<std::int64_t> data(20000, 1);
  const int before = sends;
  const auto sum = comm->host_all_reduce().start(std::span(data));
  EXPECT_EQ(sends - before, comm->size() > 1 ? 1 : 0);
  comm->wait(*sum, "a sum");
  const std::vector<std::byte> sent(100000);
  std::vector<std::byte> received(sent.size());
  const int before_message = sends;
  const auto message = comm->point_to_point().start_send(sent, comm->rank(), 0);
  EXPECT_EQ(sends - before_message, 1);
  comm->receive(received, comm->rank());
  comm->wait(*message, "a message");
}

TEST(MpiRuntimeTest, AnMpiWithoutThreadsIsRefused) {
  threads_served = MPI_THREAD_SINGLE;
  expect_error<DeviceError>([] { const MpiRuntime another(nullptr, nullptr); }, {"MPI_THREAD_SERIALIZED"});
  threads_served.reset();
}

TEST(MpiRuntimeTest, AnMpiThatDoesNotSeeTheRanksOfTheLauncherIsRefused) {
  if (mpi_runtime().size() > 1) GTEST_SKIP() << "it sees them";
  threads_served = MPI_THREAD_SERIALIZED;
  const test::SetVariable ranks("OMPI_COMM_WORLD_SIZE", "2");
  expect_error<DeviceError>([] { const MpiRuntime another(nullptr, nullptr); },
                            {"the launcher started 2 processes, but MPI on ", " sees only one"});
  threads_served.reset();
}

/// After fork() a process has its parent's environment, as a program has that of the script that starts it.
TEST(LaunchedProcessesTest, OfTwoOfARankTheMarkedOneCountsAndElseTheLastOne) {
  if (std::getenv("PMIX_NAMESPACE") == nullptr) GTEST_SKIP() << "not under mpirun";
  const auto find_own = [] {
    const auto processes = launched_processes("a mark");
    const auto own = std::ranges::find(processes, mpi_runtime().rank(), &LaunchedProcess::rank);
    return own == processes.end() ? LaunchedProcess{} : *own;
  };
  const pid_t self = ::getpid(), child = ::fork();
  while (child == 0) ::pause();
  const LaunchedProcess last = find_own();
  std::array<char, 16> name{};
  ::prctl(PR_GET_NAME, name.data());
  ::prctl(PR_SET_NAME, "a mark");
  const LaunchedProcess marked = find_own();
  ::prctl(PR_SET_NAME, name.data());
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(last.pid, std::max(self, child));
  EXPECT_FALSE(last.marked);
  EXPECT_EQ(marked.pid, self);
  EXPECT_TRUE(marked.marked);
  EXPECT_EQ(marked.program, std::filesystem::read_symlink("/proc/self/exe"));
}

TEST(MpiCommunicatorTest, CommunicatorsAndWindowsOfMpiAreFreed) {
  const int before = open_communicators, windows_before = open_windows;
  {
    const auto comm = make_comm(), part = comm->split(0);
    const SharedMemory memory = share_memory(*comm, 8);
    EXPECT_EQ(open_communicators, before + 4) << "two each: one is for messages";
    EXPECT_EQ(open_windows, windows_before + 1);
  }
  EXPECT_EQ(open_communicators, before);
  EXPECT_EQ(open_windows, windows_before);
}

/// The other ranks may not come to free it, and would be waited for.
TEST(MpiCommunicatorTest, AnErrorLeavesAWindowOpen) {
  const auto comm = make_comm();
  const int before = open_windows;
  expect_error<InternalError>(
      [&] {
        const SharedMemory memory = share_memory(*comm, 8);
        throw InternalError("a rank fails");
      },
      {"a rank fails"});
  const int left_open = open_windows - before;
  if (left_open > 0) {
    MPI_Win_unlock_all(newest_window);
    MPI_Win_free(&newest_window);
  }
  EXPECT_EQ(left_open, 1);
}

/// MPI_Comm_split has no deadline: a rank that hangs before it would be waited for without a word.
TEST(MpiCommunicatorTest, ARankIsWaitedForWithADeadlineBeforeAPartIsMade) {
  const auto comm = make_comm();
  const std::uint64_t before = comm->activity().status().collective;
  const auto part = comm->split(0);
  const RankStatus now = comm->activity().status();
  EXPECT_EQ(now.collective, before + 1);
  EXPECT_EQ(now.place_text(), "a barrier");
  EXPECT_EQ(part->size(), comm->size());
}

/// As on hosts of any size, the last of which may not be full. Its ranks have several messages under way at once.
TEST(MpiCommunicatorTest, SumsAreRightWhereTheLastHostIsNotFull) {
  const auto comm = make_comm();
  for (int per_host = 1; per_host <= comm->size(); ++per_host) {
    MpiAllReduce all_reduce(MPI_COMM_WORLD, comm->rank(), comm->size(), per_host);
    for (const std::size_t count : {std::size_t{3}, std::size_t{8191}}) {
      std::vector<std::int64_t> mine(count), sum(count, -1), expected(count);
      for (std::size_t i = 0; i < count; ++i) {
        const auto at = static_cast<std::int64_t>(i);
        mine[i] = at + comm->rank();
        expected[i] = at * comm->size() + comm->size() * (comm->size() - 1) / 2;
      }
      const auto pending = all_reduce.start(std::span<const std::int64_t>(mine), std::span(sum));
      comm->wait(*pending, "a sum of hosts");
      EXPECT_TRUE(sum == expected) << count << " elements, " << per_host << " ranks a host";
    }
  }
}

TEST(MpiCommunicatorTest, LateRankMakesTheOthersGiveUpInTime) {
  const auto comm = make_mpi_communicator(mpi_runtime(), std::chrono::milliseconds(200));
  const bool late = comm->rank() == comm->size() - 1;
  std::int64_t value = 1;
  std::unique_ptr<PendingCollective> pending;
  bool lost = false;
  if (!late) {
    pending = comm->host_all_reduce().start(std::span(&value, 1));
    try {
      comm->wait(*pending, "a rank that is late");
    } catch (const PeerLostError&) {
      lost = true;
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (late) pending = comm->host_all_reduce().start(std::span(&value, 1));
  const auto start = std::chrono::steady_clock::now();
  while (!pending->test() && std::chrono::steady_clock::now() - start < std::chrono::seconds(30)) {
  }
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT_EQ(lost, !late);
  EXPECT_EQ(value, comm->size());
}

TEST(MpiCommunicatorTest, FailedCallNamesItselfAndItsPlace) {
  try {
    LOCKSTEP_MPI(MPI_Send(nullptr, 0, MPI_INT, 12345, 0, MPI_COMM_WORLD));
    FAIL() << "no error";
  } catch (const MpiError& error) {
    EXPECT_EQ(error.code(), ExitCode::kPeerLost);
    EXPECT_TRUE(contains(error.what(), {"MPI failed at ", "mpi_communicator_test.cpp:",
                                        " in MPI_Send(nullptr, 0, MPI_INT, 12345, 0, ",
                                        "rank; see what the other ranks said and start the job again"}));
  }
}

/// Refused before any of it is touched.
TEST(MpiCommunicatorTest, SumsOfMoreElementsThanMpiCountsAreABug) {
  const auto comm = make_comm();
  std::int64_t first = 0;
  const std::span<std::int64_t> many(&first, std::size_t{1} << 31);
  EXPECT_THROW(comm->host_all_reduce().start(many), InternalError);
  EXPECT_THROW(comm->all_gather(std::as_bytes(many)), InternalError) << "nor bytes";
}

TEST(MpiReducerTest, ExactSumsEqualThoseOfOneRank) {
  const auto comm = make_comm();
  ReducerJob job;
  for (const std::size_t buckets : {1U, 3U}) {
    job.buckets = buckets;
    const StepResult result = run_step(*comm, job, comm->rank());
    EXPECT_EQ(result, reference_step(job)) << buckets << " buckets";
  }
}

}  // namespace
}  // namespace lockstep::testing
