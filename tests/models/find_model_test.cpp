// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Names and paths of network files.
#include "common/error.hpp"
#include "models/network.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/set_variable.hpp"
#include "tests/support/temporary_directory.hpp"

namespace lockstep {

namespace {

namespace fs = std::filesystem;

TEST(FindModelTest, ShippedModelsAreFoundByName) {
  for (const char* name : {"net", "lenet", "mlp", "linear"}) {
    EXPECT_TRUE(fs::is_regular_file(find_model(name))) << name;
  }
}

TEST(FindModelTest, PathsStayAsTheyAre) {
  EXPECT_EQ(find_model("some/where"), "some/where");
  EXPECT_EQ(find_model("mine.yaml"), "mine.yaml");
  EXPECT_EQ(find_model("mine.yml"), "mine.yml");
}

TEST(FindModelTest, EnvironmentComesFirstAndErrorsNameThePathOfTheFile) {
  const lockstep::testing::TemporaryDirectory own;
  const test::SetVariable models("LOCKSTEP_MODELS", own.path().c_str());
  std::ofstream(own.path("net.yaml")) << "layers: [linear: classes]";
  std::ofstream(own.path("broken.yaml")) << "layers: [linear: 7]";
  EXPECT_EQ(find_model("net"), own.path("net.yaml"));
  EXPECT_EQ(Network::load("net", {1, 28, 28}, 10).parameters().size, 7850U);
  EXPECT_NE(find_model("lenet"), own.path("lenet.yaml"));
  const auto text = message_of<ShapeError>([] { Network::load("broken", {1, 28, 28}, 10); });
  EXPECT_TRUE(text.starts_with(own.path("broken.yaml") + ":1:10: ")) << text;
  EXPECT_TRUE(contains(message_of<ConfigError>([] { find_model(""); }),
                       {"model '': ", "; known: broken, ", "; looked in " + own.path() + ", ",
                        "; for a file of your own give its path, such as ./my_net.yaml"}));
}

TEST(FindModelTest, UnknownNameSaysWhatThereIs) {
  const auto message = message_of<ConfigError>([] { find_model("lnet"); });
  EXPECT_TRUE(message.starts_with("model 'lnet': there is no such model (did you mean 'lenet'?); known: "))
      << message;
  EXPECT_TRUE(contains(message, {"lenet, linear, mlp, mobilenet_v2, net", "./lnet.yaml"}));
}

TEST(FindModelTest, PathThatIsNotThereIsMissing) {
  EXPECT_THROW(Network::load("no/such/model.yaml", {1, 28, 28}, 10), MissingDataError);
}

}  // namespace

}  // namespace lockstep
