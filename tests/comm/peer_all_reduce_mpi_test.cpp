// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// All-reduce out of each other's memory between processes, which share a device, or take turns where there are several.
/// Compiled for the emulator and for GPUs, without which it is skipped.
#include "comm/mpi/mpi_communicator.hpp"
#include "comm/peers/peers.hpp"
#include "common/error.hpp"
#include "tests/comm/device_checks.hpp"
#include "tests/support/mpi_test.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

namespace lockstep::testing {
namespace {

#ifdef LOCKSTEP_ON_GPU
const Platform& (*const peers_platform)() = cuda::platform;
#else
const Platform& (*const peers_platform)() = emulated::platform;
#endif

class PeerAllReduceGraphMpiTest : public ::testing::Test {
 protected:
  void SetUp() override {
    try {
      const auto devices = static_cast<int>(peers_platform().devices().size());
      comm_ = make_mpi_communicator(mpi_runtime(), std::chrono::seconds(60));
      device_ = peers_platform().make_device(comm_->rank() % devices);
    } catch (const DeviceError& error) {
      GTEST_SKIP() << error.what();
    }
    all_reduce_ = make_peer_all_reduce(*comm_, *device_, nullptr);
  }

  std::unique_ptr<Communicator> comm_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<DeviceAllReduce> all_reduce_;
};

class PeerAllReduceMpiTest : public PeerAllReduceGraphMpiTest,
                             public ::testing::WithParamInterface<DeviceAllReduceCase> {};

TEST_P(PeerAllReduceMpiTest, Holds) {
  GetParam().check({*comm_, *device_, *all_reduce_});
}

INSTANTIATE_TEST_SUITE_P(Mpi, PeerAllReduceMpiTest, ::testing::ValuesIn(device_all_reduce_cases()),
                         [](const auto& param) { return param.param.name; });

TEST_F(PeerAllReduceGraphMpiTest, IsReplayed) {
  const auto stream = device_->make_stream();
  const auto done = device_->make_event();
  const DeviceBuffer<std::int64_t> data(*device_, 3000);
  const std::vector<std::int64_t> ones(data.size(), 1);
  stream->copy_to_device(data.data(), ones.data(), data.bytes());
  stream->begin_capture();
  for (int i = 0; i < 3; ++i) all_reduce_->all_reduce(*stream, data.data(), data.size());
  const auto graph = stream->end_capture();
  std::uint64_t expected = 1;
  for (int replay = 0; replay < 10; ++replay) {
    stream->launch(*graph);
    for (int i = 0; i < 3; ++i) expected *= static_cast<std::uint64_t>(comm_->size());
  }
  stream->record(*done);
  wait_for(*done, *comm_, "a test's sums", all_reduce_.get());
  std::vector<std::int64_t> sums(data.size());
  stream->copy_to_host(sums.data(), data.data(), data.bytes());
  stream->synchronize();
  EXPECT_EQ(sums, std::vector<std::int64_t>(data.size(), static_cast<std::int64_t>(expected)));
}

}  // namespace
}  // namespace lockstep::testing
