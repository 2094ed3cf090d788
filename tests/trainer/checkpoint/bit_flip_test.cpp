// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Every flipped bit and every truncation of a checkpoint's files is found, and named with its file and
/// tensor.
#include "common/error.hpp"
#include "common/safetensors/safetensors.hpp"
#include "tests/common/files/memory_env.hpp"
#include "tests/support/effort.hpp"
#include "tests/trainer/checkpoint/checkpoint_support.hpp"
#include "trainer/checkpoint/directory.hpp"

#include <gtest/gtest.h>

namespace lockstep::bit_flip_test {
namespace {

const std::string kRun = "run";

/// Damages one checkpoint in many ways and compares what load says with what was done.
class Damager {
 public:
  explicit Damager(const CheckpointState& state) {
    env_.make_directory(kRun);
    path_ = save_checkpoint(env_, kRun, state);
    for (const char* name : {kModelFile, kOptimizerFile, kManifestFile}) files_.emplace_back(name);
  }

  /// @returns how many cases were tried
  std::size_t flip_every_bit() {
    std::size_t cases = 0;
    for (const std::string& name : files_) {
      const std::size_t bits = 8 * file(name).size();
      for (std::size_t bit = 0; bit < bits && !::testing::Test::HasFailure(); ++bit, ++cases) {
        const auto mask = static_cast<std::byte>(1U << (bit % 8));
        file(name)[bit / 8] ^= mask;
        expect_named(name, bit / 8, "bit " + std::to_string(bit) + " of " + name);
        file(name)[bit / 8] ^= mask;
      }
    }
    return cases;
  }

  std::size_t truncate_everywhere() {
    std::size_t cases = 0;
    for (const std::string& name : files_) {
      const std::vector<std::byte> whole = file(name);
      for (std::size_t size = 0; size < whole.size() && !::testing::Test::HasFailure(); ++size, ++cases) {
        file(name).resize(size);
        expect_named(name, size, name + " cut to " + std::to_string(size));
        file(name) = whole;
      }
    }
    return cases;
  }

  bool good() { return verify_checkpoint(env_, path_).empty(); }

 private:
  std::vector<std::byte>& file(const std::string& name) { return env_.file(path_ + "/" + name); }

  /// The tensor that owns this byte, from the undamaged file; empty for a header.
  std::string owner(const std::string& name, std::size_t byte) {
    if (owners_[name].empty()) {
      const auto parsed = SafetensorsFile::parse(file(name), name);
      std::size_t data = 0;
      for (const TensorView& t : parsed.tensors()) data += t.bytes.size();
      owners_[name].resize(file(name).size() - data);
      for (const TensorView& t : parsed.tensors())
        owners_[name].resize(owners_[name].size() + t.bytes.size(), t.name);
    }
    return owners_[name][byte];
  }

 public:
  /// Looks up all owners while the files are whole.
  void remember_owners() {
    for (const char* name : {kModelFile, kOptimizerFile}) owner(name, 0);
  }

 private:
  void expect_named(const std::string& name, std::size_t byte, const std::string& what) {
    std::string expected = path_ + "/" + name + ": ";
    const std::string tensor = name == kManifestFile ? "" : owner(name, byte);
    if (!tensor.empty()) expected += "tensor '" + tensor + "': ";
    try {
      load_checkpoint(env_, path_);
      ADD_FAILURE() << "not noticed: " << what;
    } catch (const DataError& error) {
      EXPECT_TRUE(std::string(error.what()).starts_with(expected))
          << what << "\nsaid: " << error.what() << "\nexpected: " << expected;
    }
  }

  MemoryEnv env_;
  std::string path_;
  std::vector<std::string> files_;
  std::map<std::string, std::vector<std::string>> owners_;
};

TEST(BitFlipTest, EveryFlippedBitAndTruncationIsFoundAndNamed) {
  constexpr std::size_t kCases = test::effort(100000, 10000);
  std::size_t cases = 0;
  for (std::int64_t step = 1; cases < kCases && !HasFailure(); ++step) {
    Damager damager(make_state(step, static_cast<std::size_t>(step * 5)));
    damager.remember_owners();
    cases += damager.flip_every_bit() + damager.truncate_everywhere();
    EXPECT_TRUE(damager.good());
  }
  RecordProperty("cases", static_cast<int>(cases));
  EXPECT_GE(cases, kCases);
}

TEST(BitFlipTest, VerifyNamesEveryTensorThatIsHit) {
  MemoryEnv env;
  env.make_directory(kRun);
  const std::string path = save_checkpoint(env, kRun, make_state(100));
  auto& model = env.file(path + "/" + kModelFile);
  model.back() ^= std::byte{1};                              // scale, the last tensor
  model[model.size() - 4 - 1] ^= std::byte{1};               // fc.bias before it
  env.file(path + "/" + kOptimizerFile)[0] ^= std::byte{1};  // its header
  const auto damages = verify_checkpoint(env, path);
  ASSERT_EQ(damages.size(), 3U);
  EXPECT_EQ(damages[0].tensor, "fc.bias");
  EXPECT_EQ(damages[1].tensor, "scale");
  EXPECT_EQ(damages[2].path, path + "/" + kOptimizerFile);
  EXPECT_EQ(damages[2].tensor, "");
}

TEST(BitFlipTest, DamageInALargeTensorIsNarrowedToItsBlock) {
  MemoryEnv env;
  env.make_directory(kRun);
  const std::string path = save_checkpoint(env, kRun, make_state(100, 20000));
  auto& model = env.file(path + "/" + kModelFile);
  const auto parsed = SafetensorsFile::parse(model, "m");
  const std::size_t data = model.size() - 4 * (40000 + 2 + 1);
  model[data + kChecksumBlockBytes + 5] ^= std::byte{4};
  const auto damages = verify_checkpoint(env, path);
  ASSERT_EQ(damages.size(), 1U);
  EXPECT_EQ(to_string(damages[0]), path + "/model.safetensors: tensor 'fc.weight': bytes " +
                                       std::to_string(data + kChecksumBlockBytes) + " to " +
                                       std::to_string(data + 2 * kChecksumBlockBytes - 1) +
                                       " of the file are damaged");
}

TEST(BitFlipTest, BytesAtTheEndAreFound) {
  MemoryEnv env;
  env.make_directory(kRun);
  const std::string path = save_checkpoint(env, kRun, make_state(100));
  env.file(path + "/" + kModelFile).push_back(std::byte{0});
  EXPECT_THROW(load_checkpoint(env, path), DataError);
}

}  // namespace
}  // namespace lockstep::bit_flip_test
