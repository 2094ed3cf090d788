// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "comm/agreement.hpp"
#include "comm/backend.hpp"
#include "comm/thread/thread_ranks.hpp"
#include "common/error.hpp"
#include "tests/support/fake_gpu.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "trainer/device/gradient_path.hpp"
#include "trainer/ranks/device_choice.hpp"

namespace lockstep {
namespace {

const SharedGpu kShared{{"node7", "GPU-8f", "0000:65:00.0"}, {0, 1}};
constexpr const char* kProblem = "on node7, this build has no lockstep_nccl.so";

enum class Expected { kNone, kStaged, kNccl, kConfigError, kDeviceError };

Expected outcome(const AllReduceSituation& situation) {
  try {
    switch (choose_all_reduce(situation).path) {
      case GradientPath::kNone:
        return Expected::kNone;
      case GradientPath::kStaged:
        return Expected::kStaged;
      case GradientPath::kNccl:
        return Expected::kNccl;
    }
  } catch (const ConfigError&) {
    return Expected::kConfigError;
  } catch (const DeviceError&) {
    return Expected::kDeviceError;
  }
  throw InternalError("an unknown path");
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
  Expected expected;

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
      {"nccl", "cpu", kAny, kAny, kAny, Expected::kConfigError},
      {"nccl", "emulated", kAny, kAny, kAny, Expected::kConfigError},
      {"nccl", "cuda", kAny, true, kAny, Expected::kDeviceError},
      {"nccl", "cuda", kAny, false, false, Expected::kDeviceError},
      {"nccl", "cuda", kAny, false, true, Expected::kNccl},
      {"auto", "cpu", kAny, kAny, kAny, Expected::kNone},
      {"mpi", "cpu", kAny, kAny, kAny, Expected::kNone},
      {"thread", "cpu", kAny, kAny, kAny, Expected::kNone},
      {"auto", "emulated", 1, kAny, kAny, Expected::kNone},
      {"mpi", "emulated", 1, kAny, kAny, Expected::kNone},
      {"thread", "emulated", 1, kAny, kAny, Expected::kNone},
      {"auto", "emulated", 2, kAny, kAny, Expected::kStaged},
      {"mpi", "emulated", 2, kAny, kAny, Expected::kStaged},
      {"thread", "emulated", 2, kAny, kAny, Expected::kStaged},
      {"auto", "cuda", 1, kAny, kAny, Expected::kNone},
      {"mpi", "cuda", 1, kAny, kAny, Expected::kNone},
      {"thread", "cuda", 1, kAny, kAny, Expected::kNone},
      {"mpi", "cuda", 2, kAny, kAny, Expected::kStaged},
      {"thread", "cuda", 2, kAny, kAny, Expected::kStaged},
      {"auto", "cuda", 2, true, kAny, Expected::kStaged},
      {"auto", "cuda", 2, false, false, Expected::kStaged},
      {"auto", "cuda", 2, false, true, Expected::kNccl},
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
                            .problems = {{GradientPath::kNccl, loads ? "" : kProblem}}},
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
  situation.problems[GradientPath::kNccl] = kProblem;
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
  EXPECT_EQ(decision.path, GradientPath::kNccl);
  EXPECT_EQ(decision.reason, "ranks 0 and 1 share GPU-8f on node7, for tests");
  situation.problems[GradientPath::kNccl] = kProblem;
  EXPECT_NE(refusal(situation).find(kProblem), std::string::npos) << refusal(situation);
  situation = two_ranks("auto");
  situation.shared_gpus = {kShared};
  situation.may_share_gpus = true;
  EXPECT_EQ(choose_all_reduce(situation).path, GradientPath::kStaged);
}

TEST(ChooseAllReduceTest, AMissingLibraryIsRefusedWithItsReason) {
  AllReduceSituation situation = two_ranks("nccl");
  situation.problems[GradientPath::kNccl] = kProblem;
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

TEST(SetUpAllReduceTest, OneRankNeedsNone) {
  run_thread_ranks(1, [](Communicator& comm) {
    FakeGpu gpu("GPU-8f");
    const AllReduceSetup setup = set_up_all_reduce(comm, gpu, std::nullopt);
    EXPECT_EQ(setup.all_reduce, nullptr);
    EXPECT_EQ(setup.description, "none: one rank");
    EXPECT_EQ(setup.path, GradientPath::kNone);
    EXPECT_EQ(setup.backend, "none");
  });
}

TEST(SetUpAllReduceTest, RanksThatShareAGpuGoOverTheHostAndSayWhy) {
  run_thread_ranks(3, [](Communicator& comm) {
    FakeGpu gpu(comm.rank() == 1 ? "GPU-77" : "GPU-8f");
    const AllReduceSetup setup = set_up_all_reduce(comm, gpu, std::nullopt);
    ASSERT_NE(setup.all_reduce, nullptr);
    EXPECT_FALSE(setup.all_reduce->on_stream());
    EXPECT_EQ(setup.description,
              "thread through pinned memory: ranks 0 and 2 share GPU-8f on " + comm.host());
    EXPECT_EQ(setup.path, GradientPath::kStaged);
    EXPECT_EQ(setup.backend, "thread");
  });
}

TEST(SetUpAllReduceTest, SlicesOfOneGpuGoOverTheHostAndSayWhy) {
  run_thread_ranks(2, [](Communicator& comm) {
    FakeGpu slice("MIG-" + std::to_string(comm.rank()), "0000:65:00.0");
    const AllReduceSetup setup = set_up_all_reduce(comm, slice, std::nullopt);
    ASSERT_NE(setup.all_reduce, nullptr);
    EXPECT_FALSE(setup.all_reduce->on_stream());
    EXPECT_EQ(setup.description,
              "thread through pinned memory: ranks 0 and 1 have slices (MIG) of the GPU at 0000:65:00.0 on " +
                  comm.host());
  });
}

TEST(SetUpAllReduceTest, WithNcclDemandedOneRankSpeaksForAllThatShare) {
  std::atomic<int> stopped = 0;
  run_thread_ranks(3, [&](Communicator& comm) {
    FakeGpu gpu(comm.rank() == 0 ? "GPU-77" : "GPU-8f");
    try {
      set_up_all_reduce(comm, gpu, GradientPath::kNccl);
    } catch (const AgreedError& error) {
      ++stopped;
      EXPECT_EQ(error.code(), ExitCode::kDeviceUnavailable);
      EXPECT_EQ(error.speaker(), 0);
      if (comm.rank() == 0) {
        test::expect_words(std::string(error.what()), {"ranks 1 and 2 share GPU-8f"});
      }
    }
  });
  EXPECT_EQ(stopped, 3);
}

TEST(SetUpAllReduceTest, WhereNcclIsMissingAllRanksGoOverTheHostAndSayWhy) {
  run_thread_ranks(2, [](Communicator& comm) {
    FakeGpu gpu("GPU-" + std::to_string(comm.rank()));
    const AllReduceSetup setup = set_up_all_reduce(comm, gpu, std::nullopt);
    ASSERT_NE(setup.all_reduce, nullptr);
    EXPECT_FALSE(setup.all_reduce->on_stream());
    EXPECT_NE(setup.description.find("lockstep_nccl.so"), std::string::npos) << setup.description;
  });
}

TEST(SetUpAllReduceTest, NcclDemandedAndMissingStopsAllRanks) {
  std::atomic<int> stopped = 0;
  run_thread_ranks(2, [&](Communicator& comm) {
    FakeGpu gpu("GPU-" + std::to_string(comm.rank()));
    try {
      set_up_all_reduce(comm, gpu, GradientPath::kNccl);
    } catch (const AgreedError& error) {
      ++stopped;
      EXPECT_EQ(error.code(), ExitCode::kDeviceUnavailable);
    }
  });
  EXPECT_EQ(stopped, 2);
}

}  // namespace
}  // namespace lockstep
