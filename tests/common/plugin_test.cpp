// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Libraries that are loaded when they are needed, and files that are installed beside the program.
#include "common/error.hpp"
#include "common/installed.hpp"
#include "tests/common/sample_plugin.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/set_variable.hpp"
#include "tests/support/temporary_directory.hpp"

namespace lockstep {
namespace {

using testing::TemporaryDirectory;

const Plugin kSample{"lockstep_sample_plugin", "a sample", "use something else"};

TEST(PluginTest, ObjectsOfAPluginWorkAndThrowErrorsOfTheirType) {
  const auto make = plugin_function<decltype(sample_plugin_greeter)>(kSample, "sample_plugin_greeter");
  const std::unique_ptr<test::Greeter> greeter(make());
  EXPECT_EQ(greeter->greet("rank 1"), "good morning, rank 1");
  EXPECT_THROW(greeter->greet(""), UsageError);
}

TEST(PluginTest, ErrorsKeepTheirTypeTextAndExitCodeAcrossTheBoundary) {
  const auto fail = plugin_function<decltype(sample_plugin_throw)>(kSample, "sample_plugin_throw");
  EXPECT_THROW(fail(0), DeviceError);
  EXPECT_THROW(fail(2), InternalError);
  EXPECT_EQ(message_of<PeerLostError>([&] { fail(1); }), "peer");
}

TEST(PluginTest, AFileThatIsNotThereIsNamedWithThePlacesAndTheFix) {
  const auto text = message_of<DeviceError>([] {
    plugin_symbol({"lockstep_nothing", "NCCL", "use another one"}, "f");
  });
  EXPECT_TRUE(contains(text, {"built without lockstep_nothing.so (looked in " + plugin_folders()[0].string() +
                                  " and " + plugin_folders()[1].string(),
                              "NCCL and build again", "use another one"}));
}

TEST(PluginTest, LoadedOnesAndAddedFoldersAreKnownOnce) {
  for (int i = 0; i < 2; ++i) {
    plugin_symbol(kSample, "sample_plugin_throw");
    look_for_plugins_in("/nowhere/plugins");
  }
  const auto folders = plugin_folders();
  EXPECT_EQ(plugin_symbol(kSample, "sample_plugin_throw"), plugin_symbol(kSample, "sample_plugin_throw"));
  EXPECT_EQ(folders[1], (folders[0] / "../lib/lockstep").lexically_normal());
  EXPECT_EQ(folders.back(), "/nowhere/plugins");
  EXPECT_EQ(std::ranges::count(folders, folders.back()), 1);
  EXPECT_EQ(std::ranges::count(loaded_plugins(), std::filesystem::path("lockstep_sample_plugin.so"),
                               &std::filesystem::path::filename),
            1);
}

TEST(InstalledTest, FilesBesideTheProgramComeFirstAndThoseOfTheSourcesLast) {
  const auto folders = shared_directories("launch/jobs");
  ASSERT_EQ(folders.size(), 2U);
  EXPECT_EQ(folders[0], plugin_folders()[0].parent_path() / "share/lockstep/jobs");
  EXPECT_TRUE(folders[1].string().ends_with("/launch/jobs")) << folders[1];
}

TEST(InstalledTest, AScriptHasItsInstalledNameWhereItIsFound) {
  const TemporaryDirectory directory;
  std::ofstream(directory.path("lockstep-conjure")) << "";
  {
    const test::SetVariable path("PATH", ("/nowhere:" + directory.path()).c_str());
    EXPECT_EQ(script_command("conjure"), "lockstep-conjure");
    EXPECT_EQ(script_command("juggle"), "launch/juggle");
  }
  const test::SetVariable none("PATH", nullptr);
  EXPECT_EQ(script_command("conjure"), "launch/conjure");
  const auto beside = plugin_folders()[0] / "lockstep-conjure-beside-a-test";
  std::ofstream(beside) << "";
  EXPECT_EQ(script_command("conjure-beside-a-test"), "lockstep-conjure-beside-a-test");
  std::filesystem::remove(beside);
}

TEST(PluginTest, ALibraryThatIsNotThereIsNamedWithTheFix) {
  const auto message = message_of<DeviceError>([] {
    plugin_symbol({"lockstep_lonely_plugin", "NCCL", "use MPI"}, "lonely_plugin");
  });
  expect_one_line_with(message,
                       {"lockstep_lonely_plugin.so: libmissing_library.so: cannot open shared object",
                        "LD_LIBRARY_PATH", "install NCCL", "use MPI"});
}

TEST(PluginTest, AFunctionThatIsNotThereMeansAnotherVersion) {
  expect_error<DeviceError>([] { plugin_symbol(kSample, "sample_plugin_of_next_year"); },
                            {"'sample_plugin_of_next_year'", "another version", "use something else"});
}

}  // namespace
}  // namespace lockstep
