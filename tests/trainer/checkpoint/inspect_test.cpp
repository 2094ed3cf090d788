// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Texts about checkpoints for people: diff, inspect, verify.
#include "trainer/checkpoint/inspect.hpp"

#include "tests/common/memory_env.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "tests/trainer/checkpoint/checkpoint_support.hpp"
#include "trainer/checkpoint/directory.hpp"

#include <zlib.h>

namespace lockstep {

namespace {

TEST(DiffTest, EqualCheckpointsDoNotDiffer) {
  CheckpointState other = make_state(100);
  other.facts.world["ranks"] = "4";
  const auto difference = diff_checkpoints(make_state(100), other);
  EXPECT_TRUE(difference.empty());
  EXPECT_EQ(to_text(difference), "no difference: the same bits\n");
}

TEST(DiffTest, FirstAndLargestDifferenceAreFound) {
  const CheckpointState a = make_state(100);
  CheckpointState b = a;
  b.weights[1] += 0.25F;                                     // fc.weight[0,1]
  b.weights[5] += 0.5F;                                      // fc.weight[1,2]
  b.optimizer[0].values[7] = -b.optimizer[0].values[7] - 1;  // momentum.fc.bias[1]
  const auto difference = diff_checkpoints(a, b);
  ASSERT_EQ(difference.tensors.size(), 2U);
  const TensorDifference& weight = difference.tensors[0];
  EXPECT_EQ(weight.tensor, "fc.weight");
  EXPECT_EQ(weight.different, 2U);
  EXPECT_EQ(weight.first_index, (std::vector<std::size_t>{0, 1}));
  EXPECT_EQ(weight.first_a, a.weights[1]);
  EXPECT_EQ(weight.largest_index, (std::vector<std::size_t>{1, 2}));
  EXPECT_NEAR(weight.largest, 0.5, 1e-6);
  EXPECT_EQ(difference.tensors[1].tensor, "momentum.fc.bias");
  EXPECT_EQ(difference.tensors[1].first_index, (std::vector<std::size_t>{1}));
  EXPECT_NE(to_text(difference).find("2 of 6"), std::string::npos) << to_text(difference);
}

TEST(DiffTest, SignOfZeroAndNotANumberAreDifferences) {
  CheckpointState a = make_state(100), b = a;
  a.weights[0] = 0.0F;
  b.weights[0] = -0.0F;
  b.weights[6] = std::numeric_limits<float>::quiet_NaN();
  const auto difference = diff_checkpoints(a, b);
  ASSERT_EQ(difference.tensors.size(), 2U);
  EXPECT_EQ(difference.tensors[0].largest, 0);
  EXPECT_EQ(difference.tensors[1].largest, std::numeric_limits<double>::infinity());
}

TEST(DiffTest, BuffersThatOnlyOneHasAreNamed) {
  CheckpointState a = make_state(100), b = a;
  a.optimizer.push_back({"exp_avg", a.weights});
  b.optimizer[0].name = "square_avg";
  EXPECT_EQ(diff_checkpoints(a, b).facts,
            (std::vector<std::string>{"momentum: only in A", "exp_avg: only in A", "square_avg: only in B"}));
}

TEST(DiffTest, FactsAndOtherModelsAreTold) {
  CheckpointState other = make_state(100, 4);
  other.facts.step = 101;
  other.facts.job["model"] = "lenet";
  const auto difference = diff_checkpoints(make_state(100), other);
  ASSERT_EQ(difference.facts.size(), 3U);
  EXPECT_EQ(difference.facts[0], "step: 100 in A, 101 in B");
  EXPECT_EQ(difference.facts[1], "model: net in A, lenet in B");
  EXPECT_NE(difference.facts[2].find("different models"), std::string::npos);
}

TEST(InspectTest, TableNamesEveryTensorAndTheHash) {
  MemoryEnv env;
  env.make_directory("run");
  const CheckpointState state = make_state(100);
  const std::string path = save_checkpoint(env, "run", state);
  const std::string text = inspect_checkpoint(path, load_checkpoint(env, path));
  test::expect_words(text, {"fc.weight", "fc.bias", "momentum.fc.bias", "[2, 3]", "1234", "step"});
  EXPECT_NE(text.find("weights sha256 " + weights_sha256(state.weights)), std::string::npos);
}

TEST(InspectTest, JsonHasEveryFactOfTheManifest) {
  const CheckpointState state = make_state(100);
  const auto json = inspect_json("run", state), facts = facts_json(state.facts);
  for (const auto& [key, value] : facts.items()) EXPECT_EQ(json.at(key), value) << key;
  EXPECT_EQ(json.at("step"), 100);
  EXPECT_TRUE(json.at("test_accuracy").is_null()) << "not measured";
}

/// Mistakes of a beginner: the message names the runs that there are.
TEST(MissingRunTest, IsToldApartFromAFolderOfRunsAndAFile) {
  MemoryEnv env;
  const auto file = [&](const std::string& path) { env.create(path)->close(); };
  env.make_directory("runs");
  env.make_directory("data");
  EXPECT_EQ(
      why_no_run(env, "runs/mnist"),
      "runs/mnist: there is no such run or checkpoint; 'lockstep train JOB.yaml' makes one and says where");
  for (const std::string run : {"runs/mnist", "runs/mnist-2"}) {
    env.make_directory(run);
    file(run + "/job.yaml");
    file(run + "/metrics.jsonl");
  }
  file("data/job.yaml");
  const std::string both = "runs/mnist, runs/mnist-2";
  EXPECT_EQ(why_no_run(env, "runs"), "runs: is not a run, but holds some; say which: " + both);
  EXPECT_EQ(why_no_checkpoint(env, "runs/mnst"),
            "runs/mnst: there is no such run or checkpoint; there are " + both);
  EXPECT_EQ(why_no_checkpoint(env, "mnist/"),
            "mnist/: there is no such run or checkpoint; there are " + both);
  EXPECT_EQ(why_no_checkpoint(env, "runs/mnist/job.yaml"),
            "runs/mnist/job.yaml: is a file; give the directory of a run; there are " + both);
  EXPECT_EQ(why_no_checkpoint(env, "data"),
            "data: is not a run, which has job.yaml and checkpoints; there are " + both);
  EXPECT_TRUE(
      why_no_checkpoint(env, "runs/mnist").starts_with("runs/mnist: this run holds no good checkpoint; "));
}

/// Tables of a network with long names, such as a ResNet's.
TEST(InspectTest, TablesFitATerminalOf80Columns) {
  CheckpointState a = make_state(100);
  a.facts.parameters[0].name = "stage3_block2_downsample_norm.weight";
  CheckpointState b = a;
  b.weights[5] = -1.234567e-20F;
  b.optimizer[0].values[0] = std::numeric_limits<float>::quiet_NaN();
  for (const std::string& text :
       {inspect_checkpoint("run/checkpoints/step-00000100", b), to_text(diff_checkpoints(a, b))}) {
    EXPECT_NE(text.find("momentum.stage3_block2_downsample_norm.weight"), std::string::npos) << text;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 79U) << line;
  }
}

TEST(VerifyReportTest, GoodAndDamagedAreTold) {
  MemoryEnv env;
  env.make_directory("run");
  const std::string path = save_checkpoint(env, "run", make_state(100));
  EXPECT_EQ(verify(env, path).report, path + ": good: 3 files, 11 checksums\n");
  env.file(path + "/model.safetensors").back() ^= std::byte{1};
  const std::string report = verify(env, path).report;
  EXPECT_TRUE(report.starts_with(path + "/model.safetensors: tensor 'scale': ")) << report;
}

// The .npz writer, read back with a few lines of zip of the test's own.

template <typename Integer>
Integer read_at(const std::vector<std::byte>& bytes, std::size_t position) {
  Integer value{};
  std::memcpy(&value, bytes.data() + position, sizeof value);
  return value;
}

std::string text_at(const std::vector<std::byte>& bytes, std::size_t position, std::size_t size) {
  return {reinterpret_cast<const char*>(bytes.data()) + position, size};
}

/// name → contents, through the central directory, with every checksum compared.
std::map<std::string, std::vector<std::byte>> unzip(const std::vector<std::byte>& zip) {
  std::map<std::string, std::vector<std::byte>> files;
  const std::size_t end = zip.size() - 22;
  EXPECT_EQ(text_at(zip, end, 4), "PK\x05\x06");
  std::size_t entry = read_at<std::uint32_t>(zip, end + 16);
  EXPECT_EQ(entry + read_at<std::uint32_t>(zip, end + 12), end);
  for (int i = read_at<std::uint16_t>(zip, end + 10); i > 0; --i) {
    EXPECT_EQ(text_at(zip, entry, 4), "PK\x01\x02");
    const auto size = read_at<std::uint32_t>(zip, entry + 24);
    const auto name_size = read_at<std::uint16_t>(zip, entry + 28);
    const std::size_t local = read_at<std::uint32_t>(zip, entry + 42);
    EXPECT_EQ(text_at(zip, local, 4), "PK\x03\x04");
    EXPECT_EQ(text_at(zip, local + 30, name_size), text_at(zip, entry + 46, name_size));
    const auto data = zip.begin() + static_cast<std::ptrdiff_t>(local + 30 + name_size);
    const std::vector<std::byte> contents(data, data + size);
    EXPECT_EQ(::crc32(0, reinterpret_cast<const Bytef*>(contents.data()), size),
              read_at<std::uint32_t>(zip, entry + 16));
    files[text_at(zip, entry + 46, name_size)] = contents;
    entry += 46U + name_size;
  }
  EXPECT_EQ(entry, end);
  return files;
}

TEST(NpzTest, CheckpointBecomesOneArrayATensor) {
  const CheckpointState state = make_state(100);
  const auto files = unzip(export_npz(state));
  ASSERT_EQ(files.size(), 6U);
  const auto& npy = files.at("fc.weight.npy");
  EXPECT_EQ(text_at(npy, 0, 8), std::string("\x93NUMPY\x01\x00", 8));
  const std::size_t data = 10U + read_at<std::uint16_t>(npy, 8);
  EXPECT_EQ(data % 64, 0U);
  EXPECT_EQ(npy.at(data - 1), std::byte{'\n'});
  EXPECT_TRUE(text_at(npy, 10, data - 10)
                  .starts_with("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3, ), }"));
  ASSERT_EQ(npy.size() - data, 24U);
  EXPECT_EQ(std::memcmp(npy.data() + data, state.weights.data(), 24), 0);
  EXPECT_NE(text_at(files.at("scale.npy"), 10, 100).find("'shape': ()"), std::string::npos);
  EXPECT_TRUE(files.contains("momentum.fc.bias.npy"));
}

TEST(NpzTest, SameStateGivesTheSameBytes) {
  EXPECT_EQ(export_npz(make_state(1)), export_npz(make_state(1)));
}

}  // namespace

}  // namespace lockstep
