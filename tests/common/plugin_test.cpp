// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "common/plugin.hpp"

#include "common/error.hpp"
#include "tests/common/sample_plugin.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace lockstep {
namespace {

const Plugin kSample{"lockstep_sample_plugin", "a sample", "use something else"};

std::string device_error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const DeviceError& error) {
    return error.what();
  }
  return "no DeviceError";
}

void expect_one_line_with(const std::string& message, const std::vector<std::string>& parts) {
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  for (const std::string& part : parts) EXPECT_NE(message.find(part), std::string::npos) << message;
}

TEST(PluginTest, ObjectsOfAPluginWorkAndThrowErrorsOfTheirType) {
  const auto make = plugin_function<decltype(sample_plugin_greeter)>(kSample, "sample_plugin_greeter");
  const std::unique_ptr<test::Greeter> greeter(make());
  EXPECT_EQ(greeter->greet("rank 1"), "good morning, rank 1");
  EXPECT_THROW(greeter->greet(""), UsageError);
}

TEST(PluginTest, ErrorsKeepTheirTypeTextAndExitCodeAcrossTheBoundary) {
  const auto fail = plugin_function<decltype(sample_plugin_throw)>(kSample, "sample_plugin_throw");
  EXPECT_THROW(fail(0), DeviceError);
  EXPECT_THROW(fail(1), PeerLostError);
  EXPECT_THROW(fail(2), InternalError);
  try {
    fail(1);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kPeerLost);
    EXPECT_STREQ(error.what(), "peer");
  }
}

TEST(PluginTest, LoadingAgainGivesTheSameAddress) {
  EXPECT_EQ(plugin_symbol(kSample, "sample_plugin_throw"), plugin_symbol(kSample, "sample_plugin_throw"));
}

TEST(PluginTest, AFileThatIsNotThereIsNamedWithThePlacesAndTheFix) {
  const auto message = device_error_of([] {
    plugin_symbol({"lockstep_nothing", "NCCL", "use another one"}, "f");
  });
  expect_one_line_with(message, {"lockstep_nothing.so", plugin_folders()[0].string(),
                                 plugin_folders()[1].string(), "NCCL", "use another one"});
}

TEST(PluginTest, ALibraryThatIsNotThereIsNamedWithTheFix) {
  const auto message = device_error_of([] {
    plugin_symbol({"lockstep_lonely_plugin", "NCCL", "use MPI"}, "lonely_plugin");
  });
  expect_one_line_with(message,
                       {"lockstep_lonely_plugin.so: libmissing_library.so: cannot open shared object",
                        "LD_LIBRARY_PATH", "install NCCL", "use MPI"});
}

TEST(PluginTest, AFunctionThatIsNotThereMeansAnotherVersion) {
  const auto message = device_error_of([] { plugin_symbol(kSample, "sample_plugin_of_next_year"); });
  expect_one_line_with(message, {"'sample_plugin_of_next_year'", "another version", "use something else"});
}

}  // namespace
}  // namespace lockstep
