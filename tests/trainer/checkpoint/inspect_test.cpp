// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Checkpoints for people and other programs: diff, inspect, verify, and .npz.
#include "trainer/checkpoint/inspect.hpp"

#include "common/safetensors.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "tests/trainer/checkpoint/checkpoint_support.hpp"
#include "trainer/checkpoint/file_record.hpp"

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

TEST(DiffTest, ADifferenceIsToldToTheLastWord) {
  CheckpointState a = make_state(100);
  a.weights = a.optimizer[0].values = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  CheckpointState b = a;
  b.weights[1] = 2.5F;
  b.weights[5] = 7;
  b.weights[8] = 8.5F;
  b.optimizer[0].values[7] = -8;
  EXPECT_EQ(to_text(diff_checkpoints(a, b)),
            "fc.weight: 2 of 6 elements differ\n"
            "  first    [0,1]: 2 in A, 2.5 in B\n"
            "  largest  [1,2]: 1 apart\n"
            "scale: 1 of 1 element differ\n"
            "  first    []: 9 in A, 8.5 in B\n"
            "  largest  []: 0.5 apart\n"
            "momentum.fc.bias: 1 of 2 elements differ\n"
            "  first    [1]: 8 in A, -8 in B\n"
            "  largest  [1]: 16 apart\n");
  b = a;
  b.weights[4] = 6, b.weights[5] = 7;  // the first among equals is the largest
  EXPECT_EQ(to_json(diff_checkpoints(a, b)),
            nlohmann::ordered_json::parse(R"({"format": 1, "same": false, "facts": [],
                "tensors": [{"tensor": "fc.weight", "elements": 6, "different": 2, "first_index": [1, 1],
                             "first_a": 5, "first_b": 6, "largest": 1, "largest_index": [1, 1]}]})"));
  EXPECT_EQ(to_json(diff_checkpoints(a, a)).at("same"), true);
}

TEST(DiffTest, EachFactThatDiffersIsTold) {
  CheckpointState a = make_state(100);
  a.facts.epoch_loss_sum = 1.5;
  a.facts.data = {{"set", "x"}, {"directory", "/a"}, {"only", "1"}};
  CheckpointState b = a;
  b.facts.step = 101;
  b.facts.epoch = 2;
  b.facts.step_in_epoch = 3;
  b.facts.seed = 5;
  b.facts.epoch_samples = 7;
  b.facts.epoch_correct = 8;
  b.facts.epoch_loss_sum = 2.5;
  b.facts.job = {{"model", "net"}, {"new", "1"}};
  b.facts.data = {{"set", "y"}, {"directory", "/b"}};
  EXPECT_EQ(to_text(diff_checkpoints(a, b)),
            "step: 100 in A, 101 in B\n"
            "epoch: 1 in A, 2 in B\n"
            "step_in_epoch: 0 in A, 3 in B\n"
            "seed: 1234 in A, 5 in B\n"
            "epoch_samples: 6400 in A, 7 in B\n"
            "epoch_correct: 0 in A, 8 in B\n"
            "epoch_loss_sum: 1.5 in A, 2.5 in B\n"
            "train.seed: 1234 in A, nothing in B\n"
            "new: nothing in A, 1 in B\n"
            "data set: x in A, y in B\n"
            "weights and optimiser state that both have: the same bits\n");
}

TEST(DiffTest, OtherLayersAroundTheSameTensorsAreADifference) {
  CheckpointState a = make_state(100), b = a;
  a.facts.model = {{"mean", "0"}, {"only", "1"}, {"yaml", "layers:\n  - relu\n"}};
  b.facts.model = {{"mean", "0.5"}, {"yaml", "layers:\n  - gelu\n"}};
  a.facts.data = {{"class_names", "cat\ndog"}, {"columns", "x"}, {"set", "pictures"}};
  b.facts.data = {{"class_names", "cat\nfish"}, {"columns", "x\ny"}, {"set", "pictures"}};
  EXPECT_EQ(to_text(diff_checkpoints(a, b)),
            "data class_names: another in A than in B\n"
            "data columns: another in A than in B\n"
            "model mean: 0 in A, 0.5 in B\n"
            "model yaml: another in A than in B\n"
            "weights and optimiser state that both have: the same bits\n");
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

TEST(DiffTest, OtherModelsAreTold) {
  EXPECT_EQ(to_text(diff_checkpoints(make_state(100), make_state(100, 4))),
            "parameters: other names or shapes: these are different models\n");
}

TEST(InspectTest, FactsAreToldInTheirOrder) {
  CheckpointState state = make_state(100);
  state.facts.average = "ema";
  state.facts.step_in_epoch = 2;
  state.facts.epoch_samples = 4;
  state.facts.epoch_correct = 3;
  state.facts.epoch_loss_sum = 2;
  state.facts.validation_accuracy = 0.25;
  state.facts.test_accuracy = 0.5;
  state.facts.data = {{"class_names", "a\nb\nc"}};
  state.weights = {1, 2, 3, 4, 5, 6, INFINITY, 8, 9};
  const std::string text = inspect_checkpoint("p", state);
  EXPECT_EQ(text.substr(0, text.find("fc.bias")),
            "checkpoint     p\n"
            "step           100\n"
            "weights        their average ema\n"
            "epochs done    1, and 2 steps of the next\n"
            "seed           1234\n"
            "epoch so far   4 samples, loss 0.500000, 75.00 % correct\n"
            "validation     accuracy 25.00 %\n"
            "test accuracy  50.00 %\n"
            "buckets        1 bucket\n"
            "written by     ranks 2\n"
            "data           class_names: a, b, c\n"
            "job            model: net\n"
            "job            train.seed: 1234\n" +
                fmt::format("\n{:27} {:17} {:>10} {:>10} {:>10}\n", "tensor", "shape", "smallest", "largest",
                            "mean") +
                fmt::format("{:27} {:17} {:>10} {:>10} {:>10}\n", "fc.weight", "[2, 3]", 1, 6, 3.5));
  test::expect_words(text, {"  1 of 2 elements NaN or infinite\nscale ", "\nmomentum.fc.bias ",
                            "\n\nweights sha256 " + weights_sha256(state.weights) + "\n"});
  state.facts.epoch_samples = 0;
  state.facts.average = "";
  const std::string fewer = inspect_checkpoint("p", state);
  EXPECT_EQ(fewer.find("epoch so far"), fewer.npos);
  EXPECT_EQ(fewer.find("their average"), fewer.npos);
  const auto json = inspect_json("p", state).at("tensors");
  ASSERT_EQ(json.size(), 6U);
  EXPECT_EQ(json.at(0), nlohmann::ordered_json::parse(R"({"tensor": "fc.weight", "shape": [2, 3],
      "smallest": 1, "largest": 6, "mean": 3.5, "not_finite": 0})"));
  EXPECT_EQ(json.at(1).at("not_finite"), 1);
}

/// Every comparison with it is false.
TEST(InspectTest, BesideANaNNoNumberIsTheSmallestOrTheLargest) {
  CheckpointState state = make_state(100);
  for (const std::size_t at : {0U, 1U, 5U}) {
    state.weights = {5, 4, 1, 2, 3, 6, 7, 8, 9};
    state.weights[at] = std::numeric_limits<float>::quiet_NaN();
    const auto weight = inspect_json("p", state).at("tensors").at(0);
    EXPECT_EQ(weight.at("not_finite"), 1);
    for (const char* key : {"smallest", "largest", "mean"})
      EXPECT_TRUE(std::isnan(weight.at(key).get<double>())) << key << " " << at;
    test::expect_words(inspect_checkpoint("p", state),
                       {fmt::format("{:27} {:17} {:>10} {:>10} {:>10}\n  1 of 6 elements NaN", "fc.weight",
                                    "[2, 3]", "nan", "nan", "nan")});
  }
}

/// A manifest's names may be any text: none makes a line that looks like one of the program's.
TEST(InspectTest, ANameWithALineFeedMakesNoLine) {
  CheckpointState a = make_state(100);
  a.facts.parameters[0].name = "fc\nweights sha256 none";
  CheckpointState b = a;
  b.weights[0] += 1;
  b.facts.job["model"] = "net\nmodel: cnn";
  for (const std::string& text : {inspect_checkpoint("p", a), to_text(diff_checkpoints(a, b))}) {
    EXPECT_EQ(text.find("\nweights sha256 none"), text.npos) << text;
    EXPECT_EQ(text.find("\nmodel: cnn"), text.npos) << text;
    EXPECT_NE(text.find("fc\\x0aweights sha256 none"), text.npos) << text;
  }
}

TEST(InspectTest, JsonHasEveryFactOfTheManifest) {
  const CheckpointState state = make_state(100);
  const auto json = inspect_json("run", state), facts = facts_json(state.facts);
  for (const auto& [key, value] : facts.items()) EXPECT_EQ(json.at(key), value) << key;
  EXPECT_EQ(json.at("step"), 100);
  EXPECT_TRUE(json.at("test_accuracy").is_null()) << "not measured";
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
  RunEnv env;
  const std::string path = save_checkpoint(env, "run", make_state(100));
  EXPECT_EQ(verify(env, path).report, path + ": good: 3 files, 11 checksums\n");
  env.file(path + "/model.safetensors").back() ^= std::byte{1};
  const std::string report = verify(env, path).report;
  EXPECT_TRUE(report.starts_with(path + "/model.safetensors: tensor 'scale': ")) << report;
}

TEST(FileRecordTest, ASizeTellsWhatIsCutOff) {
  const FileRecord record{"m", 100, "", {{"", 0, 10, {}}, {"a", 10, 60, {}}, {"b", 60, 100, {}}}};
  for (const auto& [size, tensor, end] : std::vector<std::tuple<std::uint64_t, std::string, std::string>>{
           {0, "", ": cut off inside the header"},
           {9, "", ": cut off inside the header"},
           {10, "tensor 'a': ", ": cut off here"},
           {59, "tensor 'a': ", ": cut off here"},
           {60, "tensor 'b': ", ": cut off here"},
           {99, "tensor 'b': ", ": cut off here"},
           {101, "", ": it was added to"}})
    EXPECT_EQ(to_string(size_damage(record, size, "p")),
              fmt::format("p: {}the file is {} bytes long and should be 100{}", tensor, size, end));
  EXPECT_EQ(checksum_blocks(0), 0U);
  EXPECT_EQ(checksum_blocks(1), 1U);
  EXPECT_EQ(checksum_blocks(65536), 1U);
  EXPECT_EQ(checksum_blocks(65537), 2U);
}

TEST(FileRecordTest, DamagedBytesAreFoundInTheirBlock) {
  const std::vector<float> numbers(16385, 1);  // 65,540 bytes: a block, and four bytes of another
  const std::vector<TensorView> tensors = tensors_of({{"a", {16385}}}, numbers, "");
  auto bytes = write_safetensors(tensors);
  const std::size_t head = bytes.size() - 65540;
  FileRecord record = record_of("m", safetensors_head(tensors), tensors);
  const auto found = [&] {
    std::string text;
    for (const Damage& damage : check_against(record, bytes, "p")) text += to_string(damage) + "\n";
    return text;
  };
  EXPECT_EQ(found(), "");
  EXPECT_EQ(record.sections.at(1).crc32s.size(), 2U);
  bytes.front() ^= std::byte{1};
  bytes.back() ^= std::byte{1};
  EXPECT_EQ(found(), fmt::format("p: header: bytes 0 to {} of the file are damaged\n"
                                 "p: tensor 'a': bytes {} to {} of the file are damaged\n",
                                 head - 1, head + 65536, head + 65539));
  bytes.front() ^= std::byte{1};
  bytes.back() ^= std::byte{1};
  record.sha256[0] = record.sha256[0] == '0' ? '1' : '0';
  EXPECT_EQ(found(), "p: its SHA-256 is not the one in the manifest\n");
  bytes.pop_back();
  EXPECT_EQ(found(), fmt::format("p: tensor 'a': the file is {} bytes long and should be {}: cut off here\n",
                                 bytes.size(), bytes.size() + 1));
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
  EXPECT_EQ(read_at<std::uint16_t>(zip, end + 8), read_at<std::uint16_t>(zip, end + 10));
  for (const std::size_t zero : {4U, 6U, 20U}) EXPECT_EQ(read_at<std::uint16_t>(zip, end + zero), 0);
  for (int i = read_at<std::uint16_t>(zip, end + 10); i > 0; --i) {
    EXPECT_EQ(text_at(zip, entry, 4), "PK\x01\x02");
    EXPECT_EQ(read_at<std::uint16_t>(zip, entry + 4), 20) << "version";
    for (const auto& [field, value] : {std::pair{0, 20}, {2, 0x0800}, {4, 0}, {6, 0}, {8, 0x21}, {24, 0}})
      EXPECT_EQ(read_at<std::uint16_t>(zip, entry + 6 + static_cast<std::size_t>(field)), value) << field;
    EXPECT_EQ(read_at<std::uint32_t>(zip, entry + 20), read_at<std::uint32_t>(zip, entry + 24));
    for (const std::size_t zero : {32U, 34U, 36U}) EXPECT_EQ(read_at<std::uint16_t>(zip, entry + zero), 0);
    EXPECT_EQ(read_at<std::uint32_t>(zip, entry + 38), 0U) << "external attributes";
    const auto size = read_at<std::uint32_t>(zip, entry + 24);
    const auto name_size = read_at<std::uint16_t>(zip, entry + 28);
    const std::size_t local = read_at<std::uint32_t>(zip, entry + 42);
    EXPECT_EQ(text_at(zip, local, 4), "PK\x03\x04");
    EXPECT_EQ(text_at(zip, local + 4, 26), text_at(zip, entry + 6, 26));
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

TEST(NpzTest, WhatDoesNotFitIntoAZipArchiveIsRefused) {
  CheckpointState state = make_state(100);
  const std::size_t size = export_npz(state).size();
  EXPECT_EQ(export_npz(state, size).size(), size);
  test::expect_error<UsageError>([&] { export_npz(state, size - 1); }, {"too large for an .npz file"});
  state.optimizer.clear();
  state.facts.parameters.resize(65'536, {.name = "one", .shape = {1}});
  state.weights.resize(arena_size(state.facts.parameters));
  test::expect_error<UsageError>([&] { export_npz(state); }, {"too large for an .npz file"});
}

}  // namespace
}  // namespace lockstep
