// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// DeviceFingerprints: tables of what belongs to which fingerprint; rows, fetched once a series.
#include "trainer/engine/device/device_fingerprints.hpp"

#include "common/checked_size.hpp"
#include "common/error.hpp"

#include <algorithm>

namespace lockstep {
namespace {

/// Words of a part: enough that a block's threads are worth their start, few enough to be spread over a GPU.
constexpr std::size_t kPartWords = 1024;

/// What device memory holds besides the rows.
struct Tables {
  std::vector<FingerprintTensor> tensors;
  std::vector<std::int32_t> tensor_of;
  std::vector<KeptPart> kept;
};

std::size_t strides(std::size_t parameters) {
  return (parameters + kFingerprintStride - 1) / kFingerprintStride;
}

void add_parts(const HeldTensor& tensor, std::size_t slot, const float* weights,
               std::vector<KeptPart>& parts) {
  for (std::size_t done = 0; done < tensor.size; done += kPartWords) {
    parts.push_back(
        {weights + tensor.local + done, tensor.first + done, std::min(kPartWords, tensor.size - done), slot});
  }
}

FingerprintTensor tensor_of_update(const HeldTensor& held, const FingerprintLayout& layout) {
  FingerprintTensor tensor{.first = held.first, .offset = held.local};
  tensor.slots[0] = static_cast<std::uint32_t>(layout.gradient(held.number));
  tensor.slots[1] = static_cast<std::uint32_t>(layout.weights(held.number));
  for (std::size_t b = 0; b < layout.buffers; ++b)
    tensor.slots[2 + b] = static_cast<std::uint32_t>(layout.optimizer(b, held.number));
  return tensor;
}

Tables make_tables(const FingerprintLayout& layout, const std::vector<HeldTensor>& held,
                   const float* weights) {
  LOCKSTEP_CHECK(layout.buffers <= kMostBuffers);
  Tables tables;
  std::size_t parameters = 0;
  for (const HeldTensor& tensor : held) {
    if (tensor.number >= layout.trained) {
      add_parts(tensor, layout.weights(tensor.number), weights, tables.kept);
      continue;
    }
    LOCKSTEP_CHECK(tensor.local == parameters);
    parameters += tensor.size;
    tables.tensor_of.resize(strides(parameters), static_cast<std::int32_t>(tables.tensors.size()));
    tables.tensors.push_back(tensor_of_update(tensor, layout));
  }
  tables.tensors.push_back({.first = 0, .offset = parameters});
  return tables;
}

template <class T>
DeviceBuffer<T> upload(Device& device, Stream& stream, const std::vector<T>& table) {
  DeviceBuffer<T> buffer(device, table.size());
  if (!table.empty()) stream.copy_to_device(buffer.data(), table.data(), buffer.bytes());
  return buffer;
}

}  // namespace

std::uint64_t device_fingerprint_bytes(const ParameterLayout& parameters, std::size_t optimizer_buffers,
                                       std::int64_t steps) {
  const FingerprintLayout layout = fingerprint_layout(parameters, optimizer_buffers);
  std::uint64_t kept_parts = 0;
  for (const HeldTensor& tensor : held_tensors(parameters))
    if (tensor.number >= layout.trained) kept_parts += (tensor.size + kPartWords - 1) / kPartWords;
  return checked_sum(
      checked_sum((layout.trained + 1) * sizeof(FingerprintTensor), kept_parts * sizeof(KeptPart)),
      checked_sum(strides(parameters.size) * sizeof(std::int32_t),
                  checked_product(checked_product(layout.slots(), steps), sizeof(std::int64_t))));
}

DeviceFingerprints::DeviceFingerprints(Device& device, Stream& stream, const FingerprintLayout& layout,
                                       const std::vector<HeldTensor>& held, const float* weights,
                                       const StepState* state, std::int64_t steps)
    : slots_(layout.slots()),
      tensors_(device, 0),
      tensor_of_(device, 0),
      kept_(device, 0),
      rows_(device, static_cast<std::size_t>(steps) * slots_),
      host_rows_(device, rows_.size()),
      state_(state) {
  const Tables tables = make_tables(layout, held, weights);
  tensors_ = upload(device, stream, tables.tensors);
  tensor_of_ = upload(device, stream, tables.tensor_of);
  kept_ = upload(device, stream, tables.kept);
  zero(stream);
  stream.synchronize();
}

void DeviceFingerprints::add_kept(DeviceOps& ops, Stream& stream) {
  if (kept_.size() == 0) return;
  ops.fingerprint_kept(stream, {.parts = kept_.data(),
                                .count = static_cast<int>(kept_.size()),
                                .slots = slots_,
                                .rows = rows_.data(),
                                .state = state_});
}

StepFingerprints DeviceFingerprints::of_update() const {
  return {.tensors = tensors_.data(), .tensor_of = tensor_of_.data(), .slots = slots_, .rows = rows_.data()};
}

void DeviceFingerprints::append(std::int64_t steps, std::vector<std::uint64_t>& rows) const {
  const auto words = host_rows_.span().first(static_cast<std::size_t>(steps) * slots_);
  for (const std::int64_t word : words) rows.push_back(static_cast<std::uint64_t>(word));
}

}  // namespace lockstep
