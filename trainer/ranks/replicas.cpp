// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// One digest for each tensor.
#include "trainer/ranks/replicas.hpp"

#include "comm/agreement.hpp"
#include "comm/replica_check.hpp"
#include "common/sha256.hpp"

#include <string>
#include <vector>

namespace lockstep {

void expect_equal_replicas(Communicator& comm, const ParameterLayout& layout, std::span<const float> weights,
                           std::int64_t step) {
  std::vector<Digest> digests;
  std::vector<std::string> names;
  for (const Parameter& parameter : layout.tensors()) {
    digests.push_back(sha256(std::as_bytes(weights.subspan(parameter.offset, parameter.size))));
    names.push_back(parameter.name);
  }
  try {
    check_replicas(comm, digests, names, step);
  } catch (const InternalError& error) {
    throw AgreedError(error.code(), error.what(), 0);
  }
}

}  // namespace lockstep
