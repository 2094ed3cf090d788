// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// State that is trained on a device: its sums, their units, and what it takes of the device.
#include "trainer/device/device_arena.hpp"

#include "common/error.hpp"
#include "tests/trainer/training/data_parallel_fixture.hpp"

namespace lockstep::device_arena_test {
namespace {

using namespace data_parallel_test;

TEST(DeviceArenaTest, LargestSumsAreInUnitsWhateverTravels) {
  for (const Determinism determinism : {Determinism::kWorld, Determinism::kOff}) {
    Job job = make_job();
    job.parallel.determinism = determinism;
    bool gone = false;
    const JobSetup setup = setup_of(job, kOneLayer, kOneBucket, std::make_unique<MortalAllReduce>(gone));
    const Gpu& gpu = *setup.device.gpu;
    const auto stream = gpu.device->make_stream();
    DeviceState state(*gpu.device);
    DeviceArena arena(whole_network(setup, 1, 1), gpu, *stream, state, gpu.all_reduce.get(), 1);
    std::vector<std::int64_t> sums(34);  // 32 weights and two biases
    sums[3] = -700, sums[5] = 300, sums[33] = 90;
    stream->copy_to_device(arena.counters() + kCounterSlots, sums.data(), sums.size() * sizeof sums[0]);
    arena.reducer().begin();
    arena.reducer().finish(*stream);
    EXPECT_EQ(arena.largest_sums(), (std::vector<double>{700, 90}));
  }
}

/// Others take three tables: the ranges, the range of each parameter, and the factors of a step.
TEST(DeviceArenaTest, TensorsThatAreTreatedAlikeTakeNoMemoryForIt) {
  const auto allocations = [](const std::vector<std::string>& frozen) {
    Job job = make_job();
    job.train.freeze = frozen;
    const JobSetup setup = setup_of(job, kOneLayer, kOneBucket);
    const std::shared_ptr<Gpu> gpu = late_gpu();
    const auto stream = gpu->device->make_stream();
    DeviceState state(*gpu->device);
    const DeviceArena arena(whole_network(setup, 1, 1), *gpu, *stream, state, nullptr, 1);
    return static_cast<const testing::HeldDevice&>(*gpu->device).allocations.load();
  };
  EXPECT_EQ(allocations({"fc1.bias"}) - allocations({}), 3);
}

/// A row of four fingerprints a step. Parts of what no update reads have 1,024 words; 32 parameters know their tensor
/// together.
TEST(DeviceArenaTest, FingerprintsTakeTheirTablesAndTheirRows) {
  const auto bytes = [](std::size_t trained, std::size_t kept) {
    const ParameterLayout layout{.parameters = {{.name = "a", .shape = {}, .offset = 0, .size = trained}},
                                 .size = trained,
                                 .kept = {{.name = "b", .shape = {}, .offset = trained, .size = kept}},
                                 .kept_size = kept};
    return device_fingerprint_bytes(layout, 1, 3);
  };
  const std::size_t rows = 3 * 4 * 8, tensors = 2 * sizeof(FingerprintTensor);
  EXPECT_EQ(bytes(32, 1024), rows + tensors + sizeof(KeptPart) + 4);
  EXPECT_EQ(bytes(33, 1025), rows + tensors + 2 * sizeof(KeptPart) + 2 * 4);
}

TEST(DeviceArenaTest, ASeriesHasNoMoreRowsThanTheLongestOne) {
  const JobSetup setup = setup_of(make_job(), kOneLayer, kOneBucket);
  const std::shared_ptr<Gpu> gpu = late_gpu();
  const auto stream = gpu->device->make_stream();
  DeviceState state(*gpu->device);
  const DeviceArena arena(whole_network(setup, 1, 1), *gpu, *stream, state, nullptr, 3);
  const std::size_t buffers = arena.weight_update().buffer_names().size();
  std::vector<std::uint64_t> rows;
  arena.append_rows(3, rows);
  EXPECT_EQ(rows.size(), 3 * fingerprint_layout(setup.network.parameters(), buffers).slots());
  EXPECT_THROW(arena.append_rows(4, rows), InternalError);
}

/// An exponent for each parameter, however often units change; none while all are the first ones.
TEST(DeviceArenaTest, UnitsThatChangeTakeMemoryOnce) {
  const JobSetup setup = setup_of(make_job(), kOneLayer, kOneBucket);
  const std::shared_ptr<Gpu> gpu = late_gpu();
  const auto stream = gpu->device->make_stream();
  DeviceState state(*gpu->device);
  DeviceArena arena(whole_network(setup, 1, 1), *gpu, *stream, state, nullptr, 1);
  const auto& device = static_cast<const testing::HeldDevice&>(*gpu->device);
  const int before = device.allocations;
  for (const int lower : {0, 1, 2}) {
    const auto exponent = static_cast<std::int16_t>(kExactExponent - lower);
    arena.units().restore(std::vector<std::int16_t>(arena.units().tensors(), exponent), 1);
    arena.use_units();
    EXPECT_EQ(device.allocations - before, lower == 0 ? 0 : 1);
  }
}

}  // namespace
}  // namespace lockstep::device_arena_test
