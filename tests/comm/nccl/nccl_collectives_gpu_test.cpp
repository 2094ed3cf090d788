// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Collectives over NCCL between as many ranks as there is a GPU for.
#include "comm/nccl/nccl.hpp"
#include "comm/thread/thread_ranks.hpp"
#include "tests/comm/device_checks.hpp"

#include <gtest/gtest.h>

#include <string>
#include <tuple>

namespace lockstep::testing {
namespace {

class NcclCollectivesGpuTest : public ::testing::TestWithParam<std::tuple<DeviceCollectivesCase, int>> {};

TEST_P(NcclCollectivesGpuTest, Holds) {
  const auto& [conformance, ranks] = GetParam();
  const auto gpus = static_cast<int>(cuda::platform().devices().size());
  if (gpus < ranks && (ranks > 4 || !nccl_shares_gpus()))
    GTEST_SKIP() << ranks << " ranks need as many GPUs, and there are " << gpus;
  run_thread_ranks(ranks, [gpus, check = conformance.check](Communicator& comm) {
    const auto device = cuda::platform().make_device(comm.rank() % gpus);
    const auto collectives = make_nccl_collectives(comm, *device);
    check({comm, *device, *collectives});
  });
}

INSTANTIATE_TEST_SUITE_P(Nccl, NcclCollectivesGpuTest,
                         ::testing::Combine(::testing::ValuesIn(device_collectives_cases()),
                                            ::testing::Values(1, 2, 3, 8)),
                         [](const auto& param) {
                           return std::get<0>(param.param).name + std::to_string(std::get<1>(param.param));
                         });

}  // namespace
}  // namespace lockstep::testing
