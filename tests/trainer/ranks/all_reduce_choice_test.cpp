// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "comm/agreement.hpp"
#include "comm/backend.hpp"
#include "comm/thread/thread_ranks.hpp"
#include "common/error.hpp"
#include "common/machine.hpp"
#include "tests/support/fake_gpu.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "trainer/device/gradient_path.hpp"
#include "trainer/ranks/device_choice.hpp"

#include <variant>

namespace lockstep {
namespace {

const SharedGpu kShared{{"node7", "GPU-8f", "0000:65:00.0"}, {0, 1}};
constexpr const char* kProblem = "on node7, this build has no lockstep_nccl.so";

/// The way, or the code of the refusal.
using Outcome = std::variant<GradientPath, ExitCode>;
using enum GradientPath;

Outcome outcome(const AllReduceSituation& situation) {
  try {
    return choose_all_reduce(situation).path;
  } catch (const Error& error) {
    return error.code();
  }
}

/// Situation of a backend of this name.
struct Situation {
  std::string backend;
  AllReduceSituation situation;
  bool nccl_loads;
};

/// Rule; a value that is not given matches anything.
struct Rule {
  std::optional<std::string_view> backend, device;
  std::optional<int> ranks;
  std::optional<bool> shared, nccl_loads;
  Outcome expected;

  bool matches(const Situation& of) const {
    const AllReduceSituation& s = of.situation;
    return backend.value_or(of.backend) == of.backend && device.value_or(s.device_kind) == s.device_kind &&
           ranks.value_or(s.world_size) == s.world_size &&
           shared.value_or(!s.shared_gpus.empty()) == !s.shared_gpus.empty() &&
           nccl_loads.value_or(of.nccl_loads) == of.nccl_loads;
  }
};

constexpr std::nullopt_t kAny = std::nullopt;

/// Every situation is in exactly one row.
const std::vector<Rule>& rules() {
  static const std::vector<Rule> table = {
      // backend  device      ranks  shared  nccl loads
      {"nccl", "cpu", kAny, kAny, kAny, ExitCode::kUsage},
      {"nccl", "emulated", kAny, kAny, kAny, ExitCode::kUsage},
      {"nccl", "cuda", kAny, true, kAny, ExitCode::kDeviceUnavailable},
      {"nccl", "cuda", kAny, false, false, ExitCode::kDeviceUnavailable},
      {"nccl", "cuda", kAny, false, true, kNccl},
      {"auto", "cpu", kAny, kAny, kAny, kNone},
      {"mpi", "cpu", kAny, kAny, kAny, kNone},
      {"thread", "cpu", kAny, kAny, kAny, kNone},
      {"auto", "emulated", 1, kAny, kAny, kNone},
      {"mpi", "emulated", 1, kAny, kAny, kNone},
      {"thread", "emulated", 1, kAny, kAny, kNone},
      {"auto", "emulated", 2, kAny, kAny, kStaged},
      {"mpi", "emulated", 2, kAny, kAny, kStaged},
      {"thread", "emulated", 2, kAny, kAny, kStaged},
      {"auto", "cuda", 1, kAny, kAny, kNone},
      {"mpi", "cuda", 1, kAny, kAny, kNone},
      {"thread", "cuda", 1, kAny, kAny, kNone},
      {"mpi", "cuda", 2, kAny, kAny, kStaged},
      {"thread", "cuda", 2, kAny, kAny, kStaged},
      {"auto", "cuda", 2, true, kAny, kStaged},
      {"auto", "cuda", 2, false, false, kStaged},
      {"auto", "cuda", 2, false, true, kNccl},
  };
  return table;
}

std::vector<Situation> all_situations() {
  std::vector<Situation> all;
  for (const std::string_view backend : backend_names())
    for (const char* device : {"cpu", "cuda", "emulated"})
      for (const int ranks : {1, 2})
        for (const bool shared : {false, true})
          for (const bool loads : {true, false})
            all.push_back({std::string(backend),
                           {.wanted = backend_named(backend).gradients,
                            .device_kind = device,
                            .world_size = ranks,
                            .shared_gpus = shared ? std::vector{kShared} : std::vector<SharedGpu>{},
                            .problems = {{kNccl, loads ? "" : kProblem}}},
                           loads});
  return all;
}

std::string text_of(const Situation& of) {
  const AllReduceSituation& s = of.situation;
  return "backend " + of.backend + ", device " + s.device_kind + ", " + std::to_string(s.world_size) +
         " ranks, " + (s.shared_gpus.empty() ? "GPUs of their own" : "shared GPU") + ", " +
         (of.nccl_loads ? "NCCL loads" : "NCCL does not load");
}

TEST(ChooseAllReduceTest, EverySituationIsDecidedAsTheTableSays) {
  for (const Situation& situation : all_situations()) {
    int matches = 0;
    for (const Rule& rule : rules()) {
      if (!rule.matches(situation)) continue;
      ++matches;
      EXPECT_EQ(outcome(situation.situation), rule.expected) << text_of(situation);
    }
    EXPECT_EQ(matches, 1) << "rows for " << text_of(situation);
  }
}

AllReduceSituation two_ranks(std::string_view backend) {
  return {.wanted = backend_named(backend).gradients,
          .device_kind = "cuda",
          .world_size = 2,
          .shared_gpus = {},
          .problems = {}};
}

TEST(ChooseAllReduceTest, TheReasonSaysWhyNotNccl) {
  AllReduceSituation situation = two_ranks("auto");
  EXPECT_EQ(choose_all_reduce(situation).reason, "");
  situation.problems[kNccl] = kProblem;
  EXPECT_EQ(choose_all_reduce(situation).reason, kProblem);
  situation.shared_gpus = {kShared};
  EXPECT_EQ(choose_all_reduce(situation).reason, "ranks 0 and 1 share GPU-8f on node7");
}

std::string refusal(const AllReduceSituation& situation) {
  return test::error_of<Error>([&] { choose_all_reduce(situation); });
}

TEST(ChooseAllReduceTest, ASharedGpuIsRefusedWithBothRanksTheGpuAndTheFix) {
  AllReduceSituation situation = two_ranks("nccl");
  situation.shared_gpus = {kShared};
  EXPECT_EQ(
      refusal(situation),
      "parallel.backend=nccl needs a whole GPU for each rank, but ranks 0 and 1 share GPU-8f on node7: "
      "start one rank a GPU (srun --gpus-per-task=1), or use parallel.backend=mpi (for tests, NCCL 2.30 or "
      "newer shares GPUs where NCCL_MULTI_RANK_GPU_ENABLE=1 is set)");
  situation.device_kind = "emulated";
  EXPECT_EQ(refusal(situation),
            "parallel.backend=nccl needs GPUs, but the device is emulated; use parallel.device=cuda or "
            "parallel.backend=mpi");
}

TEST(ChooseAllReduceTest, NcclThatSharesGpusIsTakenWhereItIsAskedForAndSaysThatThisIsForTests) {
  AllReduceSituation situation = two_ranks("nccl");
  situation.shared_gpus = {kShared};
  situation.may_share_gpus = true;
  const AllReduceDecision decision = choose_all_reduce(situation);
  EXPECT_EQ(decision.path, kNccl);
  EXPECT_EQ(decision.reason, "ranks 0 and 1 share GPU-8f on node7, for tests");
  situation.problems[kNccl] = kProblem;
  EXPECT_NE(refusal(situation).find(kProblem), std::string::npos) << refusal(situation);
  situation = two_ranks("auto");
  situation.shared_gpus = {kShared};
  situation.may_share_gpus = true;
  EXPECT_EQ(choose_all_reduce(situation).path, kStaged);
}

TEST(ChooseAllReduceTest, AMissingLibraryIsRefusedWithItsReason) {
  AllReduceSituation situation = two_ranks("nccl");
  situation.problems[kNccl] = kProblem;
  EXPECT_EQ(refusal(situation), std::string("parallel.backend=nccl: ") + kProblem);
}

TEST(BindingAdviceTest, IsForRanksWithOneCoreOfMany) {
  for (const int cores : {3, 64})
    EXPECT_EQ(
        binding_advice(1, cores),
        "this rank is bound to one core, which NCCL's threads share: use mpirun --bind-to none, or srun "
        "--cpus-per-task");
  EXPECT_EQ(binding_advice(8, 64), "");
  EXPECT_EQ(binding_advice(1, 1), "") << "there is no other core";
  EXPECT_EQ(binding_advice(1, 2), "") << "nor a free one, with two ranks";
}

/// Id and place of each rank's GPU.
using Gpus = std::vector<std::pair<std::string, std::string>>;

/// Sets up the all-reduce of ranks with these GPUs: for one rank none, for others through the host.
std::string description_of(const Gpus& gpus) {
  std::string description;
  run_thread_ranks(static_cast<int>(gpus.size()), [&](Communicator& comm) {
    const bool alone = comm.size() == 1;
    const auto& [uuid, pci_bus] = at(gpus, comm.rank());
    FakeGpu gpu(uuid, pci_bus);
    const AllReduceSetup setup = set_up_all_reduce(comm, gpu, std::nullopt);
    EXPECT_EQ(setup.all_reduce == nullptr, alone);
    EXPECT_FALSE(setup.all_reduce && setup.all_reduce->on_stream());
    EXPECT_EQ(setup.path, alone ? kNone : kStaged);
    EXPECT_EQ(setup.backend, alone ? "none" : "thread");
    const auto all = gather_text(comm, setup.description);
    EXPECT_EQ(std::ranges::count(all, setup.description), comm.size());
    if (comm.rank() == 0) description = setup.description;
  });
  return description;
}

TEST(SetUpAllReduceTest, OneRankNeedsNoneAndOthersSayWhyTheyGoOverTheHost) {
  EXPECT_EQ(description_of({{"GPU-8f", ""}}), "none: one rank");
  const std::string begin = "thread through pinned memory: ranks 0 and ", end = " on " + host_name();
  EXPECT_EQ(description_of({{"GPU-8f", ""}, {"GPU-77", ""}, {"GPU-8f", ""}}), begin + "2 share GPU-8f" + end);
  EXPECT_EQ(description_of({{"MIG-0", "0000:65:00.0"}, {"MIG-1", "0000:65:00.0"}}),
            begin + "1 have slices (MIG) of the GPU at 0000:65:00.0" + end);
  test::expect_words(description_of({{"GPU-0", ""}, {"GPU-1", ""}}), {"lockstep_nccl.so"});
}

/// Rank 0 has a GPU for itself. The others share one, or have theirs, and NCCL is missing.
TEST(SetUpAllReduceTest, WithNcclDemandedOneRankSpeaksForAllThatShareOrMissIt) {
  for (const bool shared : {true, false}) {
    std::atomic<int> stopped = 0;
    run_thread_ranks(3, [&](Communicator& comm) {
      FakeGpu gpu("GPU-" + std::to_string(shared ? std::min(comm.rank(), 1) : comm.rank()));
      try {
        set_up_all_reduce(comm, gpu, kNccl);
      } catch (const AgreedError& error) {
        ++stopped;
        EXPECT_EQ(error.code(), ExitCode::kDeviceUnavailable);
        EXPECT_EQ(error.speaker(), 0);
        if (comm.rank() == 0)
          test::expect_words(error.what(), {shared ? "ranks 1 and 2 share GPU-1" : "lockstep_nccl.so"});
      }
    });
    EXPECT_EQ(stopped, 3);
  }
}

}  // namespace
}  // namespace lockstep
