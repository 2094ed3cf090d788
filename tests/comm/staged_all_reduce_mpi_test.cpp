// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// All-reduce through host memory between processes.
#include "comm/mpi/mpi_communicator.hpp"
#include "comm/staged/staged.hpp"
#include "kernels/platform.hpp"
#include "tests/comm/device_checks.hpp"
#include "tests/support/mpi_test.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::testing {
namespace {

class StagedAllReduceMpiTest : public ::testing::TestWithParam<DeviceAllReduceCase> {};

TEST_P(StagedAllReduceMpiTest, Holds) {
  const auto comm = make_mpi_communicator(mpi_runtime(), std::chrono::seconds(60));
  const auto device = emulated::platform().make_device(0);
  const auto all_reduce = make_staged_all_reduce(*comm, *device);
  GetParam().check({*comm, *device, *all_reduce});
}

INSTANTIATE_TEST_SUITE_P(Mpi, StagedAllReduceMpiTest, ::testing::ValuesIn(device_all_reduce_cases()),
                         [](const auto& param) { return param.param.name; });

}  // namespace
}  // namespace lockstep::testing
