// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Any bytes as a pickle, as one of CIFAR's batches and as its names. What is accepted is what was asked for.
#include "data/sets/cifar_set.hpp"
#include "data/sets/pickle.hpp"
#include "tests/fuzz/checks.hpp"

#include <cstdint>
#include <span>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep::fuzz;
  const std::span file(data, size);
  accepts([&] { lockstep::Pickle(file, "fuzz").texts_at("label_names"); });
  accepts([&] { lockstep::Pickle(file, "fuzz").numbers_at("labels"); });
  accepts([&] {
    const lockstep::CifarLayout layout{.label_bytes = 1, .features = 3, .classes = 10};
    const lockstep::CifarRecords records = lockstep::parse_pickled_cifar(file, "fuzz", layout);
    if (records.labels.empty() || records.images.size() != 3 * records.labels.size() ||
        records.images.size() > size)
      report("records of another size\n");
    for (const std::int32_t label : records.labels)
      if (label < 0 || label >= 10) report("a label of no class\n");
  });
  return 0;
}
