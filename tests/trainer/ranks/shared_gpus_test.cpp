// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Ranks that turn out to hold one GPU, on one machine or in containers of it.
#include "comm/thread/thread_ranks.hpp"
#include "common/machine.hpp"
#include "tests/support/prelude.hpp"
#include "trainer/device/gradient_path.hpp"

namespace lockstep {
namespace {

TEST(SharedGpusTest, AreThoseOfRanksInOnePlaceOnOneMachine) {
  struct Case {
    const char* name;
    std::vector<RankGpu> by_rank;
    std::vector<std::vector<int>> shared;
    bool in_slices = false;
  };
  const std::string one = "0000:01:00.0", two = "0000:02:00.0";
  const Case cases[] = {
      {"no ranks", {}, {}},
      {"GPUs of their own", {{"a", "GPU-1", one}, {"a", "GPU-2", two}, {"b", "GPU-3", one}}, {}},
      {"an id on another host is another GPU", {{"a", "GPU-0", ""}, {"b", "GPU-0", ""}}, {}},
      {"containers of one machine, whatever their names",
       {{"pod-a", "GPU-1", one, "boot-1"}, {"pod-b", "GPU-1", one, "boot-1"}},
       {{0, 1}}},
      {"machines of one name", {{"worker", "GPU-1", one, "boot-1"}, {"worker", "GPU-2", one, "boot-2"}}, {}},
      {"where a boot is unknown hosts differ by name",
       {{"a", "GPU-1", one, "boot-1"}, {"a", "GPU-1", one, ""}, {"b", "GPU-1", one, ""}},
       {{0, 1}}},
      {"GPUs whose place is unknown differ by id", {{"a", "GPU-1", ""}, {"a", "GPU-2", ""}}, {}},
      {"all ranks of a GPU, in order",
       {{"a", "GPU-1", one},
        {"a", "GPU-2", two},
        {"b", "GPU-9", one},
        {"a", "GPU-2", two},
        {"a", "GPU-1", one},
        {"a", "GPU-2", two}},
       {{0, 4}, {1, 3, 5}}},
      {"slices have ids of their own",
       {{"a", "MIG-1", one}, {"a", "MIG-2", one}, {"b", "MIG-3", one}},
       {{0, 1}},
       true}};
  for (const Case& each : cases) {
    std::vector<SharedGpu> expected;
    for (const std::vector<int>& ranks : each.shared)
      expected.push_back({at(each.by_rank, ranks.front()), ranks, each.in_slices});
    EXPECT_EQ(find_shared_gpus(each.by_rank), expected) << each.name;
  }
}

TEST(SharedGpusTest, Description) {
  const RankGpu gpu{"node7", "GPU-8f", "0000:01:00.0"};
  EXPECT_EQ(describe({gpu, {0, 1}}), "ranks 0 and 1 share GPU-8f on node7");
  EXPECT_EQ(describe({gpu, {0, 2, 5}}), "ranks 0, 2 and 5 share GPU-8f on node7");
  EXPECT_EQ(describe({gpu, {0, 1}, /*in_slices=*/true}),
            "ranks 0 and 1 have slices (MIG) of the GPU at 0000:01:00.0 on node7");
}

TEST(GatherGpusTest, EveryRankKnowsEveryRanksGpu) {
  run_thread_ranks(3, [](Communicator& comm) {
    DeviceProperties properties;
    properties.uuid = "GPU-" + std::to_string(comm.rank());
    properties.pci_bus = "0000:0" + std::to_string(comm.rank()) + ":00.0";
    const std::string boot = host_boot_id();
    const std::vector<RankGpu> expected = {{comm.host(), "GPU-0", "0000:00:00.0", boot},
                                           {comm.host(), "GPU-1", "0000:01:00.0", boot},
                                           {comm.host(), "GPU-2", "0000:02:00.0", boot}};
    EXPECT_EQ(gather_gpus(comm, properties), expected);
  });
}

}  // namespace
}  // namespace lockstep
