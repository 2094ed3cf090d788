// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Facts about the launcher from the environment, about backends, and about ranks that do not come.
#include "comm/launcher.hpp"

#include "comm/backend.hpp"
#include "comm/backends/device_reducers.hpp"
#include "comm/mpi/mpi_runtime.hpp"
#include "comm/mpi/rank_watch.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/set_variable.hpp"

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

namespace lockstep {
namespace {

using Variables = std::map<std::string, std::string>;

Launch launch_in(const Variables& variables) {
  return read_launch([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(LauncherTest, EachIsKnownByTheVariablesThatItSets) {
  struct Case {
    Variables variables;
    Launch expected;
  };
  const Variables step = {{"SLURM_NODELIST", "n1"}, {"SLURM_STEPID", "0"}};
  const auto in_step = [&](Variables more) {
    more.insert(step.begin(), step.end());
    return more;
  };
  const Case cases[] = {
      {{}, {}},
      // mpirun, also inside a batch job or a step of Slurm.
      {{{"OMPI_COMM_WORLD_SIZE", "4"}}, {.launcher = Launcher::kOpenMpi, .world_size = 4}},
      {{{"OMPI_COMM_WORLD_SIZE", "1"}, {"SLURM_STEP_NUM_TASKS", "8"}}, {.launcher = Launcher::kOpenMpi}},
      {in_step({{"PMIX_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}}),
       {.launcher = Launcher::kOpenMpi, .rank = 1, .world_size = 2}},
      {{{"OMPI_COMM_WORLD_SIZE", "4"},
        {"OMPI_COMM_WORLD_RANK", "3"},
        {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
        {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
        {"SLURM_PROCID", "0"},
        {"SLURM_LOCALID", "0"},
        {"SLURM_STEP_TASKS_PER_NODE", "1"}},
       {.launcher = Launcher::kOpenMpi, .rank = 3, .world_size = 4, .local_rank = 1, .local_size = 2}},
      // PMI, which does not say who is on a host.
      {{{"PMI_RANK", "19"}, {"PMI_SIZE", "24"}}, {.launcher = Launcher::kPmi, .rank = 19, .world_size = 24}},
      {{{"PMIX_RANK", "1"}}, {.launcher = Launcher::kPmi, .rank = 1}},
      {{{"PMIX_NAMESPACE", "1"}}, {.launcher = Launcher::kPmi}},
      {{{"PMI_RANK", "0"}, {"MPI_LOCALRANKID", "2"}, {"MPI_LOCALNRANKS", "3"}},
       {.launcher = Launcher::kPmi, .local_rank = 2, .local_size = 3}},
      {in_step({{"PMIX_RANK", "0"}}), {.launcher = Launcher::kPmi}},
      {in_step({{"PMI_RANK", "0"}}), {.launcher = Launcher::kPmi}},
      // srun, and a batch script, which runs one process by itself.
      {step, {.launcher = Launcher::kSrun}},
      {in_step({{"SLURM_STEP_NUM_TASKS", "1"}}), {}},
      {{{"SLURM_STEP_NUM_TASKS", "8"}}, {.world_size = 8}},
      {{{"SLURM_PROCID", "5"}, {"SLURM_LOCALID", "3"}, {"SLURM_STEP_TASKS_PER_NODE", "4(x2),1"}},
       {.rank = 5, .local_rank = 3, .local_size = 4}},
      {{{"SLURM_NODELIST", "n1"}, {"SLURM_NTASKS", "4"}}, {}},
      // torchrun, where it says that there are others.
      {{{"RANK", "3"}, {"WORLD_SIZE", "4"}}, {.launcher = Launcher::kTorchrun, .rank = 3, .world_size = 4}},
      {{{"RANK", "0"}, {"WORLD_SIZE", "2"}}, {.launcher = Launcher::kTorchrun, .world_size = 2}},
      {{{"RANK", "0"}, {"WORLD_SIZE", "1"}}, {}},
      {{{"RANK", "5"}}, {}},
      {{{"WORLD_SIZE", "4"}}, {}},
      {{{"RANK", "3"}, {"WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_SIZE", "2"}},
       {.launcher = Launcher::kOpenMpi, .world_size = 2}},
      // Nonsense.
      {{{"OMPI_COMM_WORLD_SIZE", "many"}}, {.launcher = Launcher::kOpenMpi}},
      {{{"OMPI_COMM_WORLD_SIZE", "-3"}}, {.launcher = Launcher::kOpenMpi}},
      {{{"OMPI_COMM_WORLD_SIZE", "99999999999999999999"}},
       {.launcher = Launcher::kOpenMpi, .world_size = 1 << 24}},
  };
  const auto fields = [](const Launch& launch) {
    return std::tuple(launch.launcher, launch.rank, launch.world_size, launch.local_rank, launch.local_size);
  };
  for (const Case& each : cases)
    EXPECT_EQ(fields(launch_in(each.variables)), fields(each.expected))
        << ::testing::PrintToString(each.variables);
}

TEST(LauncherTest, AloneIsOneWithoutALauncherAmongNoOthers) {
  EXPECT_TRUE(launch_in({}).is_alone());
  EXPECT_FALSE(launch_in({{"OMPI_COMM_WORLD_SIZE", "1"}}).is_alone());
  EXPECT_FALSE(launch_in({{"SLURM_STEP_NUM_TASKS", "2"}}).is_alone());
}

TEST(LauncherTest, ThoseThatMpiDoesNotKnowAreRefusedWithTheCure) {
  std::deque<test::SetVariable> none;
  for (const char* name :
       {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMIX_NAMESPACE", "PMI_RANK", "SLURM_STEP_NUM_TASKS", "RANK"})
    none.emplace_back(name, nullptr);
  const auto start = [] { const MpiRuntime runtime(nullptr, nullptr); };
  const test::SetVariable nodes("SLURM_NODELIST", "n1"), step("SLURM_STEPID", "0");
  expect_error<DeviceError>(start, {"srun started this process without PMIx", "--mpi=pmix"});
  const test::SetVariable rank("RANK", "3"), ranks("WORLD_SIZE", "4");
  expect_error<DeviceError>(start, {"RANK and WORLD_SIZE=4 say that torchrun", "mpirun -np 4 lockstep"});
}

/// The grandchild is process 1, as the first one of a container is, and starts no MPI.
TEST(MpiRuntimeTest, AProcessThatStartsNoMpiEndsWithItsOwnExitCode) {
  constexpr int kOwn = 3, kForbidden = 77;
  const pid_t child = ::fork();
  if (child == 0) {
    // Root needs no namespace of users, which a chroot forbids.
    if (::unshare(CLONE_NEWPID) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0) ::_exit(kForbidden);
    const pid_t first = ::fork();
    if (first == 0) ::_exit(kOwn);
    int ended = 0;
    ::waitpid(first, &ended, 0);
    ::_exit(WEXITSTATUS(ended));
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WEXITSTATUS(status) == kForbidden) GTEST_SKIP() << "this machine forbids a process 1 of its own";
  EXPECT_EQ(WEXITSTATUS(status), kOwn);
}

TEST(BackendTest, NamesSayWhoCarriesMessagesAndGradients) {
  EXPECT_EQ(backend_names(), (std::vector<std::string_view>{"auto", "mpi", "nccl", "thread"}));
  std::string facts;
  for (const Backend& backend : kBackends)
    facts +=
        fmt::format("{} {}{}{}{}; ", backend_named(backend.name).name, backend.needs_gpus ? "gpus " : "",
                    backend.chooses_itself() ? "chooses " : "", backend.runs_threads(0) ? "threads " : "",
                    backend.runs_threads(1) ? "threads where ranks are given" : "processes");
  EXPECT_EQ(facts,
            "auto chooses processes; mpi processes; nccl gpus threads where ranks are given; thread threads "
            "threads where ranks are given; ");
  expect_error<ConfigError>([] { backend_named("smoke"); }, {"'smoke' is not a backend"});
}

TEST(BackendTest, DeviceReducersSayWhatTheyNeed) {
  const DeviceReducer &nccl = device_reducer(GradientPath::kNccl),
                      &staged = device_reducer(GradientPath::kStaged);
  EXPECT_EQ(&device_reducers().front(), &nccl) << "the best";
  EXPECT_EQ(&device_reducers().back(), &staged) << "which always works";
  EXPECT_EQ(nccl.name, "nccl");
  EXPECT_EQ(nccl.device_kind, "cuda");
  EXPECT_TRUE(nccl.whole_gpus && nccl.threads && nccl.load && nccl.may_share_gpus && nccl.make_link);
  EXPECT_EQ(staged.name, "");
  EXPECT_EQ(staged.device_kind, "");
  EXPECT_FALSE(staged.whole_gpus || staged.threads || staged.load || staged.may_share_gpus ||
               staged.make_link);
  EXPECT_THROW(device_reducer(GradientPath::kNone), InternalError);
}

// Missing ranks are named as well as the processes of the host tell.

Absence four_ranks(std::vector<LaunchedProcess> processes) {
  return {.rank = 0,
          .ranks = 4,
          .host = "node1",
          .place = "MPI_Init",
          .seconds = 30,
          .own_program = "/bin/lockstep",
          .processes = std::move(processes)};
}

LaunchedProcess waiting(int rank) {
  return {rank, 100 + rank, 'S', "/bin/lockstep", true};
}

std::string report_of(const std::vector<LaunchedProcess>& processes) {
  return absence_report(four_ranks(processes));
}

TEST(AbsenceReportTest, NamesWhoIsMissingAndWhatIsKnownOfIt) {
  const auto with = [](const LaunchedProcess& second) {
    return report_of({waiting(0), second, waiting(2), waiting(3)});
  };
  for (const char state : {'T', 't'})
    EXPECT_EQ(
        with({1, 101, state, "/bin/lockstep", true}),  // though it had come
        "rank 0 of 4 on node1 waited 30 s for the other ranks in MPI_Init: rank 1 (pid 101) is stopped: "
        "kill -CONT 101 lets it go on. Start the job again (if a rank is only slow, raise the timeout)");
  EXPECT_TRUE(contains(with({1, 101, 'S', "/usr/bin/sleep", false}),
                       {"rank 1 (pid 101) is another program: /usr/bin/sleep"}));
  EXPECT_TRUE(contains(with({1, 101, 'D', "/bin/lockstep", false}),
                       {"rank 1 (pid 101) has not come there (it is in state D)"}));
  EXPECT_TRUE(
      contains(with({1, 101, 'S', "", false}), {": rank 1 (pid 101) has not come there (it is in state S)."}))
      << "its program may not be seen";
  EXPECT_TRUE(contains(with({1, 101, 'S', "/opt/lockstep", true}), {"open TCP between the hosts"}))
      << "it has come, whatever its program is called";
  EXPECT_TRUE(
      contains(report_of({{0, 100, 'S', "/bin/lockstep", false}, waiting(1), {2, 102, 'D', "", false}}),
               {"MPI_Init: rank 2 (pid 102) has not come there (it is in state D); no process here of rank "
                "3: on another host"}));
  EXPECT_TRUE(contains(report_of({waiting(0)}), {"of ranks 1-3: on another host"}));
  EXPECT_TRUE(contains(report_of({waiting(0), waiting(2), waiting(3)}), {"of rank 1: on another host"}));
  EXPECT_TRUE(contains(with(waiting(1)), {"open TCP between the hosts"})) << "all are there: the network";
  EXPECT_EQ(
      report_of({}),
      "rank 0 of 4 on node1 waited 30 s for the other ranks in MPI_Init: which of them have not come cannot "
      "be told here, ps shows whether all run. Start the job again (if a rank is only slow, raise the "
      "timeout)");
}

TEST(AbsenceReportTest, TheFirstRankOfAHostThatCanSpeaks) {
  const LaunchedProcess stopped{0, 100, 'T', "/bin/lockstep", true};
  auto absence = four_ranks({stopped, waiting(1), waiting(2)});
  EXPECT_FALSE(speaks_for_host(absence));
  absence.rank = 1;
  EXPECT_TRUE(speaks_for_host(absence));
  absence.rank = 2;
  EXPECT_FALSE(speaks_for_host(absence));
  absence.processes = {stopped, {1, 101, 'S', "/bin/lockstep", false}};
  EXPECT_TRUE(speaks_for_host(absence)) << "where none has come all speak";
}

TEST(LaunchedProcessesTest, NobodyIsSeenOutsideAJob) {
  if (std::getenv("PMIX_NAMESPACE") != nullptr) GTEST_SKIP() << "under a launcher";
  EXPECT_TRUE(launched_processes("mark").empty());
}

}  // namespace
}  // namespace lockstep
