// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The tutorial's lines, from what each rank has of a batch.
#include "trainer/run/batch_shapes.hpp"

#include "comm/gather.hpp"
#include "kernels/device/device.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace lockstep {
namespace {

std::string device_name(const DeviceChoice& device) {
  if (device.gpu == nullptr) return device.description;
  return fmt::format("{}:{} {}", device.kind, device.gpu->device->properties().index, device.description);
}

std::string things(const std::string& kind) {
  if (kind == "cuda") return "GPUs";
  return kind == "emulated" ? "emulated GPUs" : "ranks";
}

/// Features have no rows and columns, images have both: [30, 5], [64, 1, 28, 28].
std::string input_size(std::int64_t samples, const ImageShape& shape) {
  if (shape.height == 1 && shape.width == 1) return fmt::format("[{}, {}]", samples, shape.channels);
  return fmt::format("[{}, {}, {}, {}]", samples, shape.channels, shape.height, shape.width);
}

std::string output_size(std::int64_t samples, int classes) {
  return fmt::format("[{}, {}]", samples, classes);
}

}  // namespace

BatchShapes::BatchShapes(const Network& network, const DeviceChoice& device, Communicator& comm)
    : network_(network), comm_(comm), kind_(device.kind), devices_(gather_text(comm, device_name(device))) {}

std::string BatchShapes::devices_line() const {
  if (comm_.size() == 1) return "";
  std::vector<std::string> ranks;
  for (std::size_t rank = 0; rank < devices_.size(); ++rank)
    ranks.push_back(fmt::format("{}: {}", rank, devices_[rank]));
  return fmt::format("Let's use {} {}! {}", comm_.size(), things(kind_), fmt::join(ranks, ", "));
}

std::vector<std::string> BatchShapes::lines(const DistributedSampler& sampler,
                                            std::int64_t step_in_epoch) const {
  std::int64_t mine = 0;
  for (const Grain& grain : sampler.local_grains(step_in_epoch)) mine += grain.samples;
  const auto samples = gather(comm_, mine);
  std::vector<std::string> lines;
  if (comm_.rank() != 0) return lines;
  for (std::size_t rank = 0; rank < samples.size(); ++rank) {
    if (samples[rank] == 0) continue;
    lines.push_back(fmt::format("    In Model: input size {} output size {}  (rank {}, {})",
                                input_size(samples[rank], network_.input_shape()),
                                output_size(samples[rank], network_.classes()), rank, devices_[rank]));
  }
  const std::int64_t whole = sampler.batch_samples(step_in_epoch);
  lines.push_back(fmt::format("Outside: input size {} output_size {}",
                              input_size(whole, network_.input_shape()),
                              output_size(whole, network_.classes())));
  return lines;
}

}  // namespace lockstep
