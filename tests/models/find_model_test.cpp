// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Names and paths of network files.
#include "models/find_model.hpp"

#include "common/error.hpp"
#include "models/network.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace lockstep {
namespace {

namespace fs = std::filesystem;

/// A directory of models that LOCKSTEP_MODELS names for as long as this lives.
class OwnModels {
 public:
  OwnModels() : directory_(fs::temp_directory_path() / ("lockstep_models_" + std::to_string(getpid()))) {
    fs::create_directories(directory_);
    setenv("LOCKSTEP_MODELS", directory_.c_str(), 1);
  }
  ~OwnModels() {
    unsetenv("LOCKSTEP_MODELS");
    std::error_code ignored;
    fs::remove_all(directory_, ignored);
  }
  OwnModels(const OwnModels&) = delete;
  OwnModels& operator=(const OwnModels&) = delete;

  std::string add(const std::string& name, const std::string& yaml) const {
    std::ofstream(directory_ / name) << yaml;
    return (directory_ / name).string();
  }

 private:
  fs::path directory_;
};

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

TEST(FindModelTest, EnvironmentComesFirst) {
  const OwnModels own;
  const std::string mine = own.add("net.yaml", "layers: [linear: classes]");
  EXPECT_EQ(find_model("net"), mine);
  EXPECT_EQ(Network::load("net", {1, 28, 28}, 10).parameters().size, 7850U);
  EXPECT_NE(find_model("lenet"), mine);
}

TEST(FindModelTest, UnknownNameSaysWhatThereIs) {
  try {
    find_model("lnet");
    FAIL() << "found";
  } catch (const ConfigError& error) {
    const std::string message = error.what();
    EXPECT_TRUE(message.starts_with("model 'lnet': there is no such model (did you mean 'lenet'?); known: "))
        << message;
    EXPECT_NE(message.find("lenet, linear, mlp, net"), std::string::npos) << message;
    EXPECT_NE(message.find("./lnet.yaml"), std::string::npos) << message;
  }
}

TEST(FindModelTest, PathThatIsNotThereIsMissing) {
  EXPECT_THROW(Network::load("no/such/model.yaml", {1, 28, 28}, 10), MissingDataError);
}

TEST(FindModelTest, ErrorsNameThePathOfTheFile) {
  const OwnModels own;
  const std::string path = own.add("broken.yaml", "layers: [linear: 7]");
  try {
    Network::load("broken", {1, 28, 28}, 10);
    FAIL() << "accepted";
  } catch (const ShapeError& error) {
    EXPECT_TRUE(std::string(error.what()).starts_with(path + ":1:10: ")) << error.what();
  }
}

}  // namespace
}  // namespace lockstep
