// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// All-reduce out of each other's memory between processes, which may share a device.
#include "comm/mpi/mpi_communicator.hpp"
#include "comm/peers/peers.hpp"
#include "tests/comm/device_checks.hpp"
#include "tests/kernels/device/rig.hpp"
#include "tests/support/mpi_test.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

namespace lockstep::testing {
namespace {

class PeerAllReduceMpiTest : public ::testing::TestWithParam<DeviceAllReduceCase> {};

TEST_P(PeerAllReduceMpiTest, Holds) {
  const auto comm = make_mpi_communicator(mpi_runtime(), std::chrono::seconds(60));
  const auto devices = static_cast<int>(test::platform_under_test().devices().size());
  const auto device = test::platform_under_test().make_device(comm->rank() % devices);
  const auto all_reduce = make_peer_all_reduce(*comm, *device, nullptr);
  GetParam().check({*comm, *device, *all_reduce});
}

INSTANTIATE_TEST_SUITE_P(Mpi, PeerAllReduceMpiTest, ::testing::ValuesIn(device_all_reduce_cases()),
                         [](const auto& param) { return param.param.name; });

TEST(PeerAllReduceGraphMpiTest, IsReplayed) {
  const auto comm = make_mpi_communicator(mpi_runtime(), std::chrono::seconds(60));
  const auto devices = static_cast<int>(test::platform_under_test().devices().size());
  const auto device = test::platform_under_test().make_device(comm->rank() % devices);
  const auto all_reduce = make_peer_all_reduce(*comm, *device, nullptr);
  const auto stream = device->make_stream();
  const auto done = device->make_event();
  const DeviceBuffer<std::int64_t> data(*device, 3000);
  const std::vector<std::int64_t> ones(data.size(), 1);
  stream->copy_to_device(data.data(), ones.data(), data.bytes());
  stream->begin_capture();
  for (int i = 0; i < 3; ++i) all_reduce->all_reduce(*stream, data.data(), data.size());
  const auto graph = stream->end_capture();
  std::uint64_t expected = 1;
  for (int replay = 0; replay < 10; ++replay) {
    stream->launch(*graph);
    for (int i = 0; i < 3; ++i) expected *= static_cast<std::uint64_t>(comm->size());
  }
  stream->record(*done);
  wait_for(*done, *comm, "a test's sums", all_reduce.get());
  std::vector<std::int64_t> sums(data.size());
  stream->copy_to_host(sums.data(), data.data(), data.bytes());
  stream->synchronize();
  for (const std::int64_t sum : sums) ASSERT_EQ(static_cast<std::uint64_t>(sum), expected);
}

}  // namespace
}  // namespace lockstep::testing
