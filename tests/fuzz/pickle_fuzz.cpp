// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Any bytes as a pickle, as one of CIFAR's batches and as its names. What is accepted is what was asked for.
#include "common/error.hpp"
#include "data/sets/cifar_set.hpp"
#include "data/sets/pickle.hpp"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <span>

namespace {

[[noreturn]] void report(const char* what) {
  std::fputs(what, stderr);
  std::abort();
}

/// Runs what may refuse with the error that it promises.
void try_to(const std::function<void()>& read) {
  try {
    read();
  } catch (const lockstep::DataError&) {  // NOLINT(bugprone-empty-catch): the expected answer to most inputs
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span file(data, size);
  try_to([&] { lockstep::Pickle(file, "fuzz").texts_at("label_names"); });
  try_to([&] { lockstep::Pickle(file, "fuzz").numbers_at("labels"); });
  try_to([&] {
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
