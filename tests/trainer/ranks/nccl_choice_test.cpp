// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A program with a lockstep_nccl.so beside it, fake_nccl_plugin.cpp.
#include "comm/agreement.hpp"
#include "comm/backends/device_reducers.hpp"
#include "comm/thread/thread_ranks.hpp"
#include "common/machine.hpp"
#include "tests/support/fake_gpu.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "trainer/device/gradient_path.hpp"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

namespace lockstep {
namespace {

/// Binds the calling thread to one of its cores, as Open MPI binds ranks, until the end of the block.
class OneCore {
 public:
  OneCore() {
    EXPECT_EQ(sched_getaffinity(0, sizeof before_, &before_), 0);
    cpu_set_t one{};
    for (std::size_t core = 0; CPU_COUNT(&one) == 0 && core < CPU_SETSIZE; ++core)
      if (CPU_ISSET(core, &before_)) CPU_SET(core, &one);
    EXPECT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  }
  OneCore(const OneCore&) = delete;
  OneCore& operator=(const OneCore&) = delete;
  ~OneCore() { sched_setaffinity(0, sizeof before_, &before_); }

 private:
  cpu_set_t before_{};
};

TEST(NcclChoiceTest, RanksWithAGpuEachTakeItAndHearThatItsThreadsShareACore) {
  const std::string advice = binding_advice(1, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)));
  for (const auto wanted : {std::optional(GradientPath::kNccl), std::optional<GradientPath>()})
    run_thread_ranks(2, [&](Communicator& comm) {
      const OneCore one_core;
      FakeGpu gpu("GPU-" + std::to_string(comm.rank()));
      const AllReduceSetup setup = set_up_all_reduce(comm, gpu, wanted);
      EXPECT_EQ(setup.path, GradientPath::kNccl);
      EXPECT_EQ(setup.backend, "nccl");
      ASSERT_NE(setup.all_reduce, nullptr);
      EXPECT_TRUE(setup.all_reduce->on_stream());
      EXPECT_EQ(setup.description, "NCCL of a test" + (advice.empty() ? "" : ": " + advice));
    });
}

TEST(NcclChoiceTest, RanksShareAGpuIfAllOfThemMay) {
  run_thread_ranks(2, [](Communicator& comm) {
    FakeGpu gpu("GPU-8f");
    const AllReduceSetup setup = set_up_all_reduce(comm, gpu, GradientPath::kNccl);
    EXPECT_EQ(setup.path, GradientPath::kNccl);
    EXPECT_EQ(setup.description,
              "NCCL of a test: ranks 0 and 1 share GPU-8f on " + host_name() + ", for tests");
    if (comm.rank() == 1) pthread_setname_np(pthread_self(), "refuses");
    try {
      set_up_all_reduce(comm, gpu, GradientPath::kNccl);
      ADD_FAILURE() << "rank 1 may not share its GPU";
    } catch (const AgreedError& error) {
      EXPECT_EQ(error.speaker(), 0) << "only some ranks have heard that one refuses";
      if (comm.rank() == 0) test::expect_words(error.what(), {"needs a whole GPU for each rank"});
    }
    // Ranks choose for themselves: they share no GPU.
    EXPECT_EQ(set_up_all_reduce(comm, gpu, std::nullopt).path, GradientPath::kStaged);
  });
}

TEST(NcclChoiceTest, ALinkHasItsEnd) {
  run_thread_ranks(2, [](Communicator& comm) {
    FakeGpu gpu("GPU-8f");
    auto* const make_link = device_reducer(GradientPath::kNccl).make_link;
    EXPECT_EQ(make_link(comm, gpu, LinkEnd::kSender)->name(), "sender");
    EXPECT_EQ(make_link(comm, gpu, LinkEnd::kReceiver)->name(), "receiver");
  });
}

TEST(DeviceReducersTest, OnlyNcclWantsWholeGpusAndCores) {
  for (const DeviceReducer& reducer : device_reducers()) {
    const bool is_nccl = reducer.path == GradientPath::kNccl;
    EXPECT_EQ(reducer.whole_gpus, is_nccl);
    EXPECT_EQ(reducer.threads, is_nccl);
  }
  EXPECT_EQ(device_reducers().size(), 2U);
}

}  // namespace
}  // namespace lockstep
