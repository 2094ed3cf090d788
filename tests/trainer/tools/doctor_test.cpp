// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Findings of the doctor on this host, in a launcher's log, and with its ranks.
#include "trainer/tools/doctor.hpp"

#include "comm/thread/thread_ranks.hpp"
#include "common/error.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/temporary_directory.hpp"
#include "trainer/ranks/checks.hpp"

#include <sched.h>

namespace lockstep {

// The doctor on ranks that are threads of this process: what it sees there, and what it prints.

namespace {

Job small_job() {
  Job job;
  job.model = "net";
  job.data.set = "synthetic";
  job.data.train_samples = job.data.test_samples = 10;
  job.data.mean = job.data.std = {0.5};
  job.parallel.device = "cpu";
  job.run.dir = ::testing::TempDir();
  return job;
}

Diagnosis diagnosis_of(int ranks, const Job& job) {
  Diagnosis diagnosis;
  run_thread_ranks(
      ranks,
      [&](Communicator& comm) {
        auto mine = diagnose(comm, job, true);
        if (comm.rank() == 0) diagnosis = std::move(mine);
      },
      std::chrono::seconds(60));
  return diagnosis;
}

const CheckResult& result_of(const Diagnosis& diagnosis, const std::string& id) {
  return *std::ranges::find(diagnosis.results, id, &CheckResult::id);
}

TEST(DiagnosisTest, RanksOfOneProcessAreWell) {
  const Diagnosis diagnosis = diagnosis_of(3, small_job());
  ASSERT_EQ(diagnosis.ranks.size(), 3U);
  EXPECT_EQ(diagnosis.ranks[2].rank, 2);
  EXPECT_FALSE(diagnosis.ranks[2].versions.contains("MPI")) << "threads need none";
  ASSERT_FALSE(diagnosis.all_reduce.empty());
  EXPECT_EQ(diagnosis.all_reduce.back().bytes, std::size_t{4} << 20);
  EXPECT_TRUE(result_of(diagnosis, "equal-data").findings.empty());
  const std::string text = to_text(diagnosis, false);
  test::expect_words(text, {"ok launcher and MPI count the same ranks\n",
                            "\nnot checked, because missing here: Slurm, srun, GPUs, several hosts\n"});
  EXPECT_EQ(text.find("GPU driver"), std::string::npos) << "nothing is well of what is not there";
  for (const char c : text) EXPECT_TRUE(c == '\n' || (c >= ' ' && c <= '~'));
}

TEST(DiagnosisTest, TheRunDirectoryHasAMarkForAMoment) {
  const testing::TemporaryDirectory folder;
  Job job = small_job();
  job.run.dir = folder.path();
  const auto before = std::filesystem::last_write_time(folder.path()) - std::chrono::hours(1);
  for (const int ranks : {1, 2}) {
    std::filesystem::last_write_time(folder.path(), before);
    EXPECT_TRUE(result_of(diagnosis_of(ranks, job), "shared-directory").findings.empty());
    EXPECT_GT(std::filesystem::last_write_time(folder.path()), before);
    EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  }
}

TEST(DiagnosisTest, DataThatAreNotThereAreAFindingAndNotTheEnd) {
  Job job = small_job();
  job.data.set = "mnist";
  job.data.root = "/nowhere";
  const Diagnosis diagnosis = diagnosis_of(2, job);
  ASSERT_EQ(result_of(diagnosis, "equal-data").findings.size(), 1U);
  EXPECT_NE(result_of(diagnosis, "equal-data").findings[0].what.find("/nowhere"), std::string::npos);
  const auto json = to_json(diagnosis);
  EXPECT_EQ(json.at("format"), kDoctorFormat);
  EXPECT_EQ(json.at("ok"), false);
  EXPECT_EQ(json.at("ranks").size(), 2U);
}

/// Two ranks of one host, one with a GPU, and a check of each kind of result.
Diagnosis made_up_diagnosis() {
  RankView first, second;
  first.host = second.host = "nodea";
  first.free_bytes = second.free_bytes = std::uint64_t{2} << 30;
  first.device.description = "cpu (AVX-512)";
  first.cores = {0, 1, 3};
  first.versions = {{"MPI", "Open MPI 4"}, {"PMIx of the launcher", "3.2"}, {"lockstep", "0.1.0"}};
  first.settings = {{"NCCL_DEBUG", "WARN"}, {"UCX_TLS", "tcp"}};
  second.rank = second.local_rank = 1;
  second.device.description = "NVIDIA H100";
  second.device.uuid = "GPU-1";
  Diagnosis diagnosis;
  diagnosis.ranks = {first, second};
  diagnosis.results = {{"clocks", "clocks agree", {}},
                       {"disk", "room", {{"no room", "make some"}}},
                       {"tasks", "tasks", {}, "srun"},
                       {"cpus-per-task", "cores", {}, "srun"},
                       {"gpu-driver", "drivers", {}, "GPUs"}};
  diagnosis.all_reduce = {{8, 10e-6}, {4 << 20, 2e-3}};
  return diagnosis;
}

TEST(DiagnosisTest, TextHasRanksProbeSettingsAndChecks) {
  Diagnosis diagnosis = made_up_diagnosis();
  const std::string text =
      "rank  host   local  device         place         memory        versions\n"
      "0     nodea  0      cpu (AVX-512)  cores 0-1, 3  2.0 GiB free  Open MPI 4, lockstep 0.1.0\n"
      "1     nodea  1      NVIDIA H100    GPU-1         2.0 GiB free\n"
      "\n"
      "all-reduce: 10 us for 8 B, 2.10 GB/s bus bandwidth for 4.0 MiB\n"
      "set in the environment:\n  NCCL_DEBUG=WARN\n  UCX_TLS=tcp\n";
  const std::string left_out = "not checked, because missing here: srun, GPUs\n1 finding\n";
  EXPECT_EQ(to_text(diagnosis, false), text + "ok clocks agree\n!! no room\n    fix: make some\n" + left_out);
  EXPECT_EQ(to_text(diagnosis, true),
            text + "\u2713 clocks agree\n\u2717 no room\n   fix: make some\n" + left_out);
  diagnosis.ranks.resize(4);  // each sends 2 x 3 / 4 of its bytes
  test::expect_words(to_text(diagnosis, false),
                     {"\nall-reduce: 10 us for 8 B, 3.15 GB/s bus bandwidth for 4.0 MiB\n"});
  diagnosis.ranks = {diagnosis.ranks[1]};
  diagnosis.results.clear();
  diagnosis.all_reduce.clear();
  EXPECT_EQ(to_text(diagnosis, false),
            "rank  host   local  device       place  memory        versions\n"
            "1     nodea  1      NVIDIA H100  GPU-1  2.0 GiB free\n\nall is well\n");
}

TEST(DiagnosisTest, JsonHasChecksAndProbe) {
  Diagnosis diagnosis = made_up_diagnosis();
  diagnosis.results.erase(diagnosis.results.begin() + 2, diagnosis.results.begin() + 4);
  const auto json = to_json(diagnosis);
  EXPECT_EQ(json["ranks"][1]["device"]["uuid"], "GPU-1");
  EXPECT_EQ(json["checks"], nlohmann::ordered_json::parse(R"([
    {"id": "clocks", "ok": true, "applies": true, "findings": []},
    {"id": "disk", "ok": false, "applies": true, "findings": [{"what": "no room", "fix": "make some"}]},
    {"id": "gpu-driver", "ok": true, "applies": false, "findings": []}])"));
  EXPECT_EQ(json["all_reduce"][0], (nlohmann::ordered_json{{"bytes", 8}, {"seconds", 10e-6}}));
  EXPECT_EQ(json["all_reduce"].size(), 2U);
  EXPECT_EQ(json["ok"], false);
  diagnosis.results.erase(diagnosis.results.begin() + 1);
  EXPECT_EQ(to_json(diagnosis)["ok"], true);
}

// Pages that launchers really print, and what is recognised in them.

struct Page {
  const char* id;
  const char* text;
};

const Page kPages[] = {
    {"not-enough-slots",
     "--------------------------------------------------------------------------\n"
     "There are not enough slots available in the system to satisfy the 64\nslots that were requested by the "
     "application:\n"},
    {"open-files",
     "[node1:11011] [[18429,0],0] ORTE_ERROR_LOG: The system limit on number of pipes a process can open was "
     "reached in file odls_base_default_fns.c at line 1435\n"},
    {"ssh-login", "me@node2: Permission denied (publickey,password).\n"},
    {"host-name", "ssh: Could not resolve hostname nosuch: Name or service not known\n"},
    {"no-orted", "bash: line 1: orted: command not found\n"},
    {"host-unreachable", "ssh: connect to host node2 port 22: No route to host\n"},
    {"no-daemons", "ORTE was unable to reliably start one or more daemons.\n"},
    {"shm",
     "It appears as if there is not enough space for /dev/shm/vader_segment (the shared-memory "
     "backing\nfile).\n"},
    {"tmpdir",
     "[node1:00042] PMIX ERROR: OUT-OF-RESOURCE in file dstore_base.c at line 544\n"
     "[node1:00042] PMIX ERROR: ERROR in file dstore_base.c at line 2479\n"},
    {"ports", "A process or daemon was unable to complete a connection\nto another process:\n"},
    {"process-vm-readv", "[node1:00042] Read -1, expected 87360, errno = 1\n"},
    {"root", "mpirun has detected an attempt to run as root.\n"},
    {"other-mpi",
     "The application appears to have been direct launched using \"srun\",\nbut OMPI was not built with "
     "SLURM's PMI support and therefore cannot\nexecute.\n"},
    {"killed", "mpirun noticed that process rank 1 with PID 0 on node node1 exited on signal 9 (Killed).\n"},
    {"mpi-start",
     "[node1:00042] Local abort before MPI_INIT completed completed successfully, but am not able to "
     "aggregate "
     "error messages\n"},
    {"peer-lost",
     "lockstep: rank 0 of 2 on node1 waited 2 s for the other ranks in an all-reduce: a rank died\n"},
};

TEST(LaunchLogTest, EachPageIsRecognised) {
  for (const Page& page : kPages) {
    const auto findings = read_launch_log(page.text);
    ASSERT_EQ(findings.size(), 1U) << page.id;
    EXPECT_EQ(findings[0].id, page.id);
    EXPECT_FALSE(findings[0].fix.empty());
  }
}

TEST(LaunchLogTest, AHealthyRunSaysNothing) {
  const auto none =
      read_launch_log("2 ranks on 1 host, cpu (AVX-512), 1 thread each, backend mpi\nepoch 1/2\n");
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(to_text(none, true), "no known cause\n");
  EXPECT_EQ(to_json(none), (nlohmann::ordered_json{
                               {"format", 1}, {"ok", true}, {"checks", nlohmann::ordered_json::array()}}));
}

TEST(LaunchLogTest, EachCauseIsSaidOnceWithItsCure) {
  const auto found = read_launch_log(
      "mpirun has detected an attempt to run as root.\nRead -1, expected 8\nRead -1, expected 9\n");
  const std::string vader = "ranks may not read each other's memory (process_vm_readv)",
                    mechanism = "export OMPI_MCA_btl_vader_single_copy_mechanism=none",
                    root = "Open MPI does not run as root unless told to",
                    allow =
                        "export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; launch/run does";
  EXPECT_EQ(to_text(found, false),
            "!! " + vader + "\n    fix: " + mechanism + "\n!! " + root + "\n    fix: " + allow + "\n");
  const auto json = to_json(found);
  EXPECT_EQ(json["ok"], false);
  ASSERT_EQ(json["checks"].size(), 2U);
  const nlohmann::ordered_json cause = {{"what", root}, {"fix", allow}};
  EXPECT_EQ(json["checks"][1],
            (nlohmann::ordered_json{
                {"id", "root"}, {"ok", false}, {"findings", nlohmann::ordered_json::array({cause})}}));
}

// View of a rank from a made-up root of /proc, /sys and /etc, and from its environment.

namespace fs = std::filesystem;

class SurroundingsTest : public ::testing::Test {
 protected:
  SurroundingsTest() {
    world_ = Surroundings::real();
    world_.root = root_;
    world_.environment = [this](const char* name) {
      const auto found = environment_.find(name);
      return found == environment_.end() ? nullptr : found->second.c_str();
    };
  }

  void put(const std::string& file, const std::string& text) {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }

  /// "NAME SLOTS, " for each host of this hostfile.
  std::string listed(const std::string& text) {
    put("hosts", text);
    std::string list;
    for (const auto& [name, slots] : read_hostfile(root_ / "hosts"))
      list += fmt::format("{} {}, ", name, slots);
    return list;
  }

  void expect_refused_hosts(const std::string& text, const std::string& words) {
    SCOPED_TRACE(text);
    put("hosts", text + "\n");
    test::expect_error<ConfigError>([&] { read_hostfile(root_ / "hosts"); }, {words});
  }

  const testing::TemporaryDirectory directory_;
  const fs::path root_ = directory_.path();
  std::map<std::string, std::string> environment_;
  Surroundings world_;
};

TEST_F(SurroundingsTest, KillsForMemoryAreReadFromBothKindsOfCgroups) {
  EXPECT_EQ(look_around(world_).oom_kills, 0);
  put("proc/self/cgroup", "0::/job\n");
  put("sys/fs/cgroup/job/memory.events", "low 0\noom 3\noom_kill 19\n");
  put("sys/fs/cgroup/job/memory.max", "max\n");
  EXPECT_EQ(look_around(world_).oom_kills, 0) << "a machine's old stories";
  put("sys/fs/cgroup/job/memory.max", "1073741824\n");
  EXPECT_EQ(look_around(world_).oom_kills, 19);
  put("proc/self/cgroup", "9:cpu:/\n4:memory:/outside/the/container\n");
  put("sys/fs/cgroup/memory/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n");
  put("sys/fs/cgroup/memory/memory.limit_in_bytes", "1073741824\n");
  EXPECT_EQ(look_around(world_).oom_kills, 1);
  put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(look_around(world_).oom_kills, 0) << "no limit";
}

TEST_F(SurroundingsTest, WhoStartedIt) {
  environment_ = {{"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_RANK", "1"}};
  EXPECT_EQ(look_around(world_).launcher, "mpirun");
  EXPECT_EQ(look_around(world_).launched, 4);
  EXPECT_GT(look_around(world_).launcher_cores, 0);
  environment_ = {
      {"PMIX_RANK", "0"}, {"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "0"}, {"SLURM_CPUS_PER_TASK", "16"}};
  EXPECT_EQ(look_around(world_).launcher, "srun");
  EXPECT_EQ(look_around(world_).cpus_per_task, 16);
  environment_ = {{"SLURM_NODELIST", "n1"}, {"SLURM_STEPID", "0"}};
  EXPECT_EQ(look_around(world_).launcher, "srun") << "without PMIx";
  EXPECT_EQ(look_around(world_).cpus_per_task, 0) << "not said";
  environment_ = {{"PMIX_RANK", "0"}, {"SLURM_STEP_ID", "0"}, {"SLURM_CPUS_PER_TASK", "6"}};
  EXPECT_EQ(look_around(world_).launcher, "PMI");
  EXPECT_EQ(look_around(world_).cpus_per_task, 0) << "that is srun's word";
  environment_ = {};
  put("proc/meminfo", "MemAvailable: 2048 kB\n");
  const RankView view = look_around(world_);
  EXPECT_EQ(view.launcher, "");
  EXPECT_EQ(view.launcher_cores, 0);
  EXPECT_EQ(view.free_bytes, 2U << 20);
  EXPECT_NE(view.free_limited_by, "");
}

TEST_F(SurroundingsTest, TheNextDirectoryAboveIsFound) {
  put("runs/file", "");
  EXPECT_TRUE(fs::equivalent(existing_directory(root_ / "none" / "deeper"), root_));
  EXPECT_TRUE(fs::equivalent(existing_directory(root_ / "runs/file"), root_ / "runs"));
}

TEST_F(SurroundingsTest, CoresAreThoseThatThisProcessMayUse) {
  cpu_set_t all, first;
  ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  EXPECT_EQ(std::ssize(look_around(world_).cores), CPU_COUNT(&all));
  int core = 0;
  while (!CPU_ISSET(core, &all)) ++core;
  CPU_ZERO(&first);
  CPU_SET(core, &first);
  ASSERT_EQ(sched_setaffinity(0, sizeof first, &first), 0);
  EXPECT_EQ(look_around(world_).cores, std::vector<int>{core});
  ASSERT_EQ(sched_setaffinity(0, sizeof all, &all), 0);
}

TEST(SettingsTest, SecretsAreMaskedAndWhatNobodySetIsLeftOut) {
  const char* environment[] = {"NCCL_DEBUG=INFO",
                               "LOCKSTEP_API_TOKEN=abc",
                               "LOCKSTEP_MIRRORS=https://me:pw@host/x",
                               "LOCKSTEP_URL=https://host/x",
                               "LOCKSTEP_URLS=a@b https://h/x file:///y http://me:p@w@i/z\nhttps://you:pw@j",
                               "OMPI_MCA_orte_precondition_transports=1-2",
                               "HOME=/root",
                               "OMPI_MCA_btl=tcp,self",
                               "NCCL_NET=a@b",
                               "UCX_TLS=a@b://c",
                               "UCX_ALONE",
                               nullptr};
  const std::map<std::string, std::string> expected = {
      {"NCCL_DEBUG", "INFO"},
      {"LOCKSTEP_API_TOKEN", "***"},
      {"LOCKSTEP_MIRRORS", "https://***@host/x"},
      {"LOCKSTEP_URL", "https://host/x"},
      {"LOCKSTEP_URLS", "a@b https://h/x file:///y http://***@i/z\nhttps://***@j"},
      {"OMPI_MCA_btl", "tcp,self"},
      {"NCCL_NET", "a@b"},
      {"UCX_TLS", "a@b://c"}};
  EXPECT_EQ(visible_settings(environment), expected);
}

TEST_F(SurroundingsTest, AHostfileGivesSlotsInWholeNumbers) {
  EXPECT_EQ(listed("# two\nnode1 slots=12 max_slots=20\n\nnode2 # one\n"), "node1 12, node2 1, ");
  EXPECT_EQ(listed("a max_slots=9 count=2\nb cpu=3\nc max_slots=4\n"), "a 2, b 3, c 4, ");
  for (const std::string slots : {"slots=", "slots=two", "slots=2x", "slots=-1", "slots=0", "slots=1e3",
                                  "slots", "slots=100001", "slots=99999999999", "slots=a[$(id)0]"})
    expect_refused_hosts("node1 " + slots, "hosts: line 1: '" + slots +
                                               "' gives no whole number from 1 to 100000; a line is 'node1 "
                                               "slots=8'");
  EXPECT_EQ(listed("n slots=100000\nm slots=1\n"), "n 100000, m 1, ");
  expect_refused_hosts("# a comment alone\n", "hosts: names no host; a line is 'node1 slots=8'");
  EXPECT_THROW(read_hostfile(root_ / "none"), MissingDataError);
  EXPECT_THROW(read_hostfile(root_), IoError) << "a folder cannot be read";
}

TEST_F(SurroundingsTest, AHostOnSeveralLinesHasTheirSlotsTogether) {
  EXPECT_EQ(listed("node2\nnode1\nnode2 # again\nnode1.example\nnode2 slots=3\nm slots=100000\nm\n"),
            "node2 5, node1 1, node1.example 1, m 100000, ");
}

TEST_F(SurroundingsTest, AHostfilesOtherWordsAreRefusedByTheirLine) {
  for (const std::string word : {"gpus=4", "4", "slot=4", "slots_max=4", "username=me", "=", "// a comment"})
    expect_refused_hosts("node1\n\nnode2 slots=2 " + word,
                         "hosts: line 3: '" + word.substr(0, word.find(' ')) +
                             "' is none of slots=N, count=N, cpu=N, max_slots=N; a line is 'node1 slots=8'");
  expect_refused_hosts("rank 0=node1", "hosts: line 1: '0=node1' is none of");
}

TEST_F(SurroundingsTest, AHostfileNamesNoOptionsAndNoPaths) {
  put("hosts", "Node_1.example-2 slots=3\n::1\nfe80::1\n");
  EXPECT_EQ(read_hostfile(root_ / "hosts").size(), 3U);
  for (const std::string name : {"-oProxyCommand=id", "-", ".", "..", "../x", "a/b", "a;id", "$(id)", "`id`",
                                 "a*", "user@host", "a\\b", "n\u00f6", "node2:8", "node2:"})
    expect_refused_hosts("node1\n" + name + " slots=2", "not a host name");
}

}  // namespace

}  // namespace lockstep
