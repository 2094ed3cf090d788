// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// DeviceFingerprints: queued behind each step, fetched once a series.
#include "trainer/engine/device/device_fingerprints.hpp"

#include "common/checked_size.hpp"
#include "kernels/numerics/fingerprint.hpp"

#include <algorithm>

namespace lockstep {
namespace {

/// Words of a part: enough that a block's threads are worth their start, few enough to be spread over a GPU.
constexpr std::size_t kPartWords = 1024;

void add_parts(FingerprintPart part, const HeldTensor& tensor, std::vector<FingerprintPart>& parts) {
  for (std::size_t done = 0; done < tensor.size; done += kPartWords) {
    FingerprintPart next = part;
    next.first = tensor.first + done;
    next.size = std::min(kPartWords, tensor.size - done);
    if (next.sums != nullptr) next.sums += tensor.local + done;
    if (next.floats != nullptr) next.floats += tensor.local + done;
    parts.push_back(next);
  }
}

std::vector<FingerprintPart> parts_of(const std::vector<HeldTensor>& held,
                                      const FingerprintedBuffers& buffers, const FingerprintLayout& layout) {
  std::vector<FingerprintPart> parts;
  for (const HeldTensor& tensor : held) {
    add_parts({.floats = buffers.weights, .buffer = kWeightsBuffer, .slot = layout.weights(tensor.number)},
              tensor, parts);
    if (tensor.number >= layout.trained) continue;
    add_parts({.sums = buffers.sums, .buffer = kGradientBuffer, .slot = layout.gradient(tensor.number)},
              tensor, parts);
    for (std::size_t b = 0; b < layout.buffers; ++b) {
      add_parts({.floats = buffers.optimizer[b],
                 .buffer = kOptimizerBuffer + static_cast<std::uint32_t>(b),
                 .slot = layout.optimizer(b, tensor.number)},
                tensor, parts);
    }
  }
  return parts;
}

}  // namespace

std::uint64_t device_fingerprint_bytes(const ParameterLayout& parameters, std::size_t optimizer_buffers,
                                       std::int64_t steps) {
  const FingerprintLayout layout = fingerprint_layout(parameters, optimizer_buffers);
  const FingerprintedBuffers nowhere{.optimizer = std::vector<const float*>(optimizer_buffers)};
  return checked_sum(
      checked_product(parts_of(held_tensors(parameters), nowhere, layout).size(), sizeof(FingerprintPart)),
      checked_product(checked_product(layout.slots(), steps), sizeof(std::int64_t)));
}

DeviceFingerprints::DeviceFingerprints(Device& device, Stream& stream, const FingerprintLayout& layout,
                                       const std::vector<HeldTensor>& held,
                                       const FingerprintedBuffers& buffers, std::int64_t steps)
    : slots_(layout.slots()),
      parts_(device, 0),
      rows_(device, static_cast<std::size_t>(steps) * slots_),
      host_rows_(device, rows_.size()),
      state_(buffers.state) {
  const auto parts = parts_of(held, buffers, layout);
  parts_ = DeviceBuffer<FingerprintPart>(device, parts.size());
  stream.copy_to_device(parts_.data(), parts.data(), parts_.bytes());
  zero(stream);
  stream.synchronize();
}

void DeviceFingerprints::add_step(DeviceOps& ops, Stream& stream) {
  ops.fingerprint(stream, {.parts = parts_.data(),
                           .count = static_cast<int>(parts_.size()),
                           .slots = slots_,
                           .rows = rows_.data(),
                           .state = state_});
}

void DeviceFingerprints::append(std::int64_t steps, std::vector<std::uint64_t>& rows) const {
  const auto words = host_rows_.span().first(static_cast<std::size_t>(steps) * slots_);
  for (const std::int64_t word : words) rows.push_back(static_cast<std::uint64_t>(word));
}

}  // namespace lockstep
