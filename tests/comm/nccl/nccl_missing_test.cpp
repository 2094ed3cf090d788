// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A program without lockstep_nccl.so beside it.
#include "comm/nccl/nccl.hpp"
#include "common/error.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::testing {
namespace {

TEST(NcclMissingTest, OneLineNamesTheFileAndWhatToDoByWhatTheBuildFound) {
  const char* fix =
      LOCKSTEP_HAS_NCCL ? "which this program was built with, is missing" : "NCCL and build again";
  expect_error<DeviceError>([] { load_nccl(); }, {"lockstep_nccl.so", fix, "use backend mpi"});
}

TEST(NcclDefaultsTest, GraphsRegisterNoBuffersUnlessTheEnvironmentSaysSo) {
  const auto register_after = [](const char* before) {
    unsetenv("NCCL_GRAPH_REGISTER");
    if (before != nullptr) setenv("NCCL_GRAPH_REGISTER", before, 1);
    set_nccl_defaults();
    return std::string(std::getenv("NCCL_GRAPH_REGISTER"));
  };
  EXPECT_EQ(register_after(nullptr), "0");
  EXPECT_EQ(register_after("1"), "1");
}

}  // namespace
}  // namespace lockstep::testing
