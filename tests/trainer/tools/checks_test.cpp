// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Each pitfall, made up in what ranks see, is found by its own check and by no other. Healthy launches have none.
#include "common/json_text.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "trainer/run/rank_diagnosis.hpp"

namespace lockstep {
namespace {

using Ranks = std::vector<RankView>;

RankView healthy_rank(int rank, int host) {
  RankView view;
  view.rank = rank;
  view.local_rank = rank % 2;
  view.local_size = 2;
  view.world_size = view.launched = 4;
  view.launcher = "mpirun";
  view.host = host == 0 ? "nodea" : "nodeb";
  view.device = {"cuda", "NVIDIA H100", "GPU-" + std::to_string(rank), "0000:0" + std::to_string(rank),
                 "driver 13.0"};
  view.cores = {2 * view.local_rank, 2 * view.local_rank + 1};
  view.launcher_cores = 4;
  view.threads = 2;
  view.free_bytes = 1ULL << 33;
  view.disk_free_bytes = 1ULL << 33;
  view.clock_seconds = 1e9 + 0.01 * rank;
  return view;
}

/// Two on each of two hosts.
Ranks healthy_ranks() {
  return {healthy_rank(0, 0), healthy_rank(1, 0), healthy_rank(2, 1), healthy_rank(3, 1)};
}

/// Changes the view of each rank.
std::function<void(Ranks&)> each(void (*change)(RankView&)) {
  return [=](Ranks& ranks) { std::ranges::for_each(ranks, change); };
}

struct Pitfall {
  const char* id;  ///< its check's, or the name of a healthy launch, which none finds
  std::function<void(Ranks&)> make;
  const char* what;  ///< that the finding must name
  const char* fix;   ///< part of the finding's fix
};

const Pitfall kPitfalls[] = {
    {"world-size",
     [](Ranks& r) {
       r = {r[0]};
       r[0].world_size = 1;
       r[0].local_size = 1;
     },
     "the launcher started 4 processes, MPI on nodea sees 1", "srun --mpi=pmix"},
    {"tasks",
     [](Ranks& r) {
       r = {r[0]};
       r[0].world_size = r[0].launched = r[0].local_size = 1;
       r[0].launcher = "";
       r[0].settings["SLURM_NTASKS"] = "2";
     },
     "room for 2 tasks, and one process runs, on nodea", "srun --mpi=pmix"},
    {"cores", [](Ranks& r) { r[1].cores = {1}; }, "rank 1 on nodea is bound to 1 core and has 2 threads",
     "--bind-to none"},
    {"cores", each([](RankView& v) {
       if (v.host == "nodeb") v.cores = {0, 1};
     }),
     "2 ranks on nodeb with 4 threads are bound to 2 cores, and the launcher has 4", "--bind-to none"},
    {"cores",
     [](Ranks& r) {
       for (RankView& view : r) view.launcher = "srun";
       r[1].cores = {1};
     },
     "rank 1 on nodea is bound to 1 core and has 2 threads", "srun --cpus-per-task=2"},
    {"cores", each([](RankView& v) {
       v.launcher = "srun", v.cores = {0, 1};
     }),
     "are bound to 2 cores", "srun --cpus-per-task=2"},
    {"host-cores", each([](RankView& v) {
       if (v.host == "nodeb") v.cores = {1}, v.threads = 1, v.launcher_cores = 1;
     }),
     "2 ranks on nodeb with 2 threads have 1 core together", "fewer ranks"},
    {"cpus-per-task",
     each([](RankView& v) { v.launcher = "srun", v.launcher_cores = 2, v.cpus_per_task = 8; }),
     "it is to have 8", "srun --cpus-per-task=8"},
    {"cpus-per-task", each([](RankView& v) { v.launcher = "srun", v.cores = {0}, v.launcher_cores = 1; }),
     "it is to have 2", "srun --cpus-per-task=2"},
    {"cpus-per-task",
     [](Ranks& r) {
       for (RankView& view : r) view.launcher = "srun", view.launcher_cores = view.cpus_per_task = 2;
       r[0].launcher = "mpirun";
       r[2].cores = {0};
       r[2].launcher_cores = 1;
     },
     "srun gave rank 2 on nodeb 1 core, and it is to have 2", "srun --cpus-per-task=2"},
    {"shared-gpu", [](Ranks& r) { r[1].device.uuid = r[0].device.uuid; }, "ranks 0 and 1 share GPU-0",
     "one rank a GPU"},
    {"shared-gpu", [](Ranks& r) { r[3].device.pci_bus = r[2].device.pci_bus; }, "0000:02 on nodeb",
     "one rank a GPU"},
    {"gpu-driver", [](Ranks& r) { r[2].device.driver = r[3].device.driver = "driver 12.8"; },
     "nodea has the GPU driver 13.0, and nodeb has the GPU driver 12.8", "same GPU driver"},
    {"oom-kill", [](Ranks& r) { r[2].oom_kills = 1; }, "on nodeb the kernel killed 1 process of", "--mem"},
    {"clocks", [](Ranks& r) { r[2].clock_seconds += 2; }, "nodeb and nodea are 2.0 s apart", "chrony"},
    {"shared-directory", [](Ranks& r) { r[2].sees_run_directory = false; }, "nodeb does not see", "run.dir"},
    {"disk", [](Ranks& r) { r[0].disk_free_bytes = (64 << 20) - 1; }, "on nodea has 64 MiB left", "run.dir"},
    {"two healthy hosts", [](Ranks&) {}, "", ""},
    {"clocks that almost agree", [](Ranks& r) { r[2].clock_seconds += 1.9; }, "", ""},
    {"ranks of a host that look late", [](Ranks& r) { r[1].clock_seconds += 100; }, "", ""},
    {"a disk that has just enough", [](Ranks& r) { r[0].disk_free_bytes = 64 << 20; }, "", ""},
    {"cores that are not known", each([](RankView& v) { v.cores = {}; }), "", ""},
    {"as many cores as srun was told",
     each([](RankView& v) { v.launcher = "srun", v.launcher_cores = v.cpus_per_task = 2; }), "", ""},
    {"as many cores as threads, of which srun was told nothing",
     each([](RankView& v) { v.launcher = "srun", v.launcher_cores = 2; }), "", ""},
    {"tasks of one thread whose cores are not known",
     each([](RankView& v) { v.launcher = "srun", v.cores = {}, v.launcher_cores = 0, v.threads = 1; }), "",
     ""},
    {"GPUs that are not told apart", each([](RankView& v) { v.device.uuid = v.device.pci_bus = ""; }), "",
     ""},
    {"threads in a batch job",
     each([](RankView& v) { v.launcher = "", v.world_size = 2, v.settings["SLURM_NTASKS"] = "4"; }), "", ""},
    {"a rank alone in a batch job of one task",
     [](Ranks& r) {
       r = {r[0]};
       r[0].world_size = r[0].local_size = 1;  // and what Slurm says of a step counts for nothing
       r[0].settings["SLURM_NTASKS"] = "1";
       r[0].launcher = "";
       r[0].launcher_cores = 0;
     },
     "", ""},
    {"a GPU of its own for each task, all of them device 0", each([](RankView& v) { v.launcher = "srun"; }),
     "", ""},
    {"CPUs", each([](RankView& v) {
       v.device = {"cpu", "cpu (AVX-512)", "", ""};
     }),
     "", ""},
};

TEST(DoctorChecksTest, EachPitfallIsFoundByItsOwnCheckAndByNoOther) {
  for (const Pitfall& pitfall : kPitfalls) {
    Ranks ranks = healthy_ranks();
    pitfall.make(ranks);
    for (const CheckResult& result : run_checks(ranks, true)) {
      if (result.id != pitfall.id) {
        EXPECT_TRUE(result.findings.empty()) << pitfall.id << " was also found by " << result.id;
        continue;
      }
      ASSERT_EQ(result.findings.size(), 1U) << pitfall.id;
      EXPECT_EQ(result.missing, "") << pitfall.id << " is found where nobody looks";
      test::expect_words(result.findings[0].what, {pitfall.what});
      expect_one_line_with(result.findings[0].fix, {pitfall.fix});
    }
  }
}

TEST(DoctorChecksTest, EveryCheckHasAPitfall) {
  for (const Check& check : checks()) {
    const bool provoked =
        std::ranges::any_of(kPitfalls, [&](const Pitfall& p) { return std::string(p.id) == check.id; });
    EXPECT_TRUE(provoked) << check.id;
  }
}

TEST(DoctorChecksTest, TasksAreThoseOfSlurm) {
  Ranks ranks = healthy_ranks();
  const auto missing_for_tasks = [&] {
    const auto results = run_checks(ranks, true);
    return std::ranges::find(results, "tasks", &CheckResult::id)->missing;
  };
  EXPECT_EQ(missing_for_tasks(), "Slurm");
  for (RankView& view : ranks) view.settings["SLURM_NTASKS"] = "8";
  EXPECT_EQ(missing_for_tasks(), "");
}

TEST(DoctorChecksTest, EveryHostWithAFindingIsNamedOnce) {
  Ranks ranks = healthy_ranks();
  for (RankView& view : ranks) view.oom_kills = 1, view.sees_run_directory = view.host == "nodea";
  const auto all = run_checks(ranks, true);
  const auto found_by = [&](const std::string& id) {
    return std::ranges::find(all, id, &CheckResult::id)->findings.size();
  };
  EXPECT_EQ(found_by("oom-kill"), 2U);
  EXPECT_EQ(found_by("shared-directory"), 1U);
}

TEST(DoctorChecksTest, RunsLookForWhatHurtsAtOnce) {
  std::vector<std::string> ids;
  for (const CheckResult& result : run_checks(healthy_ranks(), false)) ids.push_back(result.id);
  EXPECT_EQ(ids,
            (std::vector<std::string>{"world-size", "tasks", "cores", "cpus-per-task", "clocks", "disk"}));
}

TEST(DoctorChecksTest, RunsSayNothingOfCoresThatTheMachineDoesNotHave) {
  Ranks ranks = healthy_ranks();
  for (RankView& view : ranks) view.cores = {0}, view.launcher_cores = 1;
  for (const CheckResult& result : run_checks(ranks, false))
    EXPECT_TRUE(result.findings.empty()) << result.findings[0].what;
  const auto all = run_checks(ranks, true);
  EXPECT_EQ(std::ranges::count_if(all, [](const auto& result) { return !result.findings.empty(); }), 1);
}

TEST(DoctorChecksTest, AViewTravelsWhole) {
  Ranks ranks = healthy_ranks();
  ranks[1].settings["NCCL_DEBUG"] = "bytes that are not UTF-8: \xff";
  const auto received = [](const RankView& view) { return parse_json(json_text(view)).get<RankView>(); };
  const RankView back = received(ranks[1]);
  EXPECT_EQ(json_text(back).size(), json_text(received(back)).size());
  EXPECT_EQ(back.cores, ranks[1].cores);
  EXPECT_EQ(back.device.uuid, "GPU-1");
}

}  // namespace
}  // namespace lockstep
