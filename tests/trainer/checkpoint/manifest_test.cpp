// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The manifest: round trip, its seal, and contents that are sealed but wrong.
#include "common/error.hpp"
#include "tests/common/memory_env.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/test_settings.hpp"
#include "tests/trainer/checkpoint/checkpoint_support.hpp"
#include "trainer/checkpoint/checkpoint.hpp"

namespace lockstep {
namespace {

std::string manifest_text(const CheckpointState& state = make_state(12)) {
  RunEnv env;
  return text_of(save_checkpoint(env, "run", state) + "/" + kManifestFile, env);
}

template <typename E = DataError>
std::string refusal(const std::string& text) {
  return test::error_of<E>([&] { read_manifest(text, "m.json"); });
}

/// Replaces a piece of the text and seals it again.
std::string forged(const std::string& what, const std::string& by, std::string text = manifest_text()) {
  text.resize(text.size() - manifest_seal("").size());
  const std::size_t position = text.find(what);
  EXPECT_NE(position, std::string::npos) << what;
  text.replace(position, what.size(), by);
  return text + manifest_seal(text);
}

TEST(ManifestTest, RoundTrip) {
  for (const std::size_t width : {std::size_t{3}, std::size_t{20000}}) {  // a block of fc.weight, and three
    const CheckpointState state = make_state(12, width);
    const std::string text = manifest_text(state);
    const Manifest manifest = read_manifest(text, "m.json");
    EXPECT_EQ(manifest.facts, state.facts);
    EXPECT_EQ(write_manifest(manifest), text);
  }
}

/// All that it may say, optional fields included.
TEST(ManifestTest, ThePageExplainsEachField) {
  Manifest manifest = read_manifest(manifest_text(), "m.json");
  CheckpointFacts& facts = manifest.facts;
  facts.arithmetic = {2, 6};
  facts.trail = {12, std::string(64, 'b')};
  facts.test_accuracy = 0.5;
  facts.validation_accuracy = 0.25;
  facts.patience = {0.5, 2, 6};
  facts.data = {{"set", "mnist"}};
  facts.kept = {{"bn.running_mean", {2}}};
  std::ifstream file(test::source_path("docs/checkpoint-format.md"));
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  const auto expect_explained = [&](const nlohmann::json& object) {
    for (const auto& [key, value] : object.items())
      EXPECT_NE(page.find("`" + key + "`"), std::string::npos)
          << key << " is not on docs/checkpoint-format.md";
  };
  const auto json = nlohmann::json::parse(write_manifest(manifest));
  EXPECT_EQ(json.size(), 32U) << json.dump(1);
  expect_explained(json);
  for (const char* key :
       {"unprinted_loss", "unlogged_answers", "gradient_units", "arithmetic", "trail", "metrics", "patience"})
    expect_explained(json.at(key));
  expect_explained(json.at("files")[0]);
  expect_explained(json.at("files")[0].at("sections")[0]);
}

TEST(ManifestTest, ChangedTextBreaksTheSeal) {
  std::string text = manifest_text();
  text[20] = static_cast<char>(text[20] ^ 1);
  EXPECT_NE(refusal(text).find("its own checksum does not match"), std::string::npos);
  EXPECT_NE(refusal(manifest_text() + "\n").find("its own checksum does not match"), std::string::npos);
  EXPECT_NE(refusal("{}").find("too short"), std::string::npos);
}

TEST(ManifestTest, SealedNonsenseIsNamed) {
  const std::pair<std::string, std::string> forgeries[] = {
      {R"("step": 12)", R"("step": "12")"},
      {R"("step": 12)", R"("step": -12)"},
      {R"("step": 12)", R"("step": 9223372036854775808)"},
      {R"("seed": 1234)", R"("seed": 12.5)"},
      {R"("bucket_plan": "1 bucket")", R"("bucket_plan": null)"},
      {R"("bucket_sizes": [)", R"("bucket_sizes": [ -1,)"},
      {R"("lines": 7)", R"("lines": -7)"},
      {"aaaaaaaa", "aaaaaaaA"},
      {"aaaaaaaa", "aaaaaaa"},
      {R"("model": "net")", R"("model": ["net"])"},
      {R"("name": "model.safetensors")", R"("name": "../model.safetensors")"},
      {R"("block_bytes": 65536)", R"("block_bytes": 0)"},
      {R"("crc32": ")", R"("crc32": "g)"},
      {R"("begin": 0)", R"("begin": 1)"},
      {R"("bytes": )", R"("bytes": 1)"},
      {R"("files": [)", R"("files": [], "_": [)"},
      {"-149", "-150"},
      {"-149", "128"},
      {"-149", "-149.0"},
      {"-149,", ""},
      {R"("changed_at": 6)", R"("changed_at": -6)"},
      {R"("epoch_loss_sum": )", R"("epoch_loss_sum": 1e300, "_": )"},
      {R"("epoch_loss_units": [)", R"("epoch_loss_units": [ 1,)"},
      {R"("steps": 3)", R"("steps": -3)"},
      {R"("samples": 192)", R"("samples": "192")"},
      {"4294967295", "4294967296"},
      {R"("format": "lockstep checkpoint")", R"("format": "other")"}};
  for (const auto& [what, by] : forgeries) {
    const std::string why = refusal(forged(what, by));
    EXPECT_TRUE(why.starts_with("m.json: ") && why.find(" is not ") != std::string::npos)
        << by << ": " << why;
  }
  EXPECT_EQ(refusal(forged(R"("epoch": 0,)", "")), "m.json: manifest.epoch is missing");
  const std::string key = R"("crc32": ")", good = manifest_text();
  EXPECT_EQ(refusal(forged(good.substr(good.find(key), key.size() + 8), key + "0000000g", good)),
            "m.json: model.safetensors.sections[0].crc32 is not hexadecimal");
  EXPECT_EQ(
      refusal(forged("-149,", "")),
      "m.json: manifest.gradient_units.exponents is not a list of one number for each of the parameters");
  const auto with_parameter = [](const char* json) {
    return refusal(forged("\"parameters\": [", fmt::format("\"parameters\": [{},", json)));
  };
  EXPECT_EQ(with_parameter(R"({"name": "fc.bias", "shape": [2]})"),
            "m.json: parameters[2].name is not another than those before it");
  EXPECT_EQ(with_parameter(R"({"name": "x", "shape": [4294967296, 4294967296]})"),
            "m.json: parameters[0].shape is not one that fits into memory");
  EXPECT_EQ(refusal(forged(R"("name": "scale")", R"("name": "other")")),
            "m.json: manifest.parameters is not what the sections of model.safetensors are");
  Manifest manifest = read_manifest(manifest_text(), "m.json");
  std::ranges::reverse(manifest.facts.parameters);
  EXPECT_EQ(refusal(write_manifest(manifest)),
            "m.json: manifest.parameters is not what the sections of model.safetensors are");
  Manifest fewer = read_manifest(manifest_text(), "m.json");
  fewer.facts.parameters.pop_back(), fewer.facts.gradient_units.exponents.pop_back();
  EXPECT_EQ(refusal(write_manifest(fewer)),
            "m.json: manifest.parameters is not what the sections of model.safetensors are");
}

TEST(ManifestTest, NumbersHaveTheirRanges) {
  const char *const share = "a number from 0 to 1", *const step = "a step of this run";
  struct Row {
    std::string key, value;
    std::vector<const char*> good, bad;
    const char* expected;
  };
  const Row rows[] = {
      {"test_accuracy", "0.5", {"0", "1"}, {"-0.5", "1.5"}, share},
      {"validation_accuracy", "0.25", {"0", "1"}, {"-0.5", "1.5"}, share},
      {"patience.best", "0.75", {"0", "1"}, {"-0.5", "1.5"}, share},
      {"patience.without_better", "2", {"0", "12"}, {"13"}, "a number of evaluations of this run"},
      {"patience.counted_from", "6", {"0", "12"}, {"13"}, step},
      {"replayed", "8", {"12"}, {"13"}, step},
      {"arithmetic.since", "0", {"12"}, {"13"}, step},
      {"unlogged_answers.correct", "100", {"128"}, {"129"}, "a number of those samples"}};
  CheckpointState state = make_state(12);
  state.facts.replayed = 8;
  state.facts.test_accuracy = 0.5;
  state.facts.validation_accuracy = 0.25;
  state.facts.patience = {0.75, 2, 6};
  const std::string text = manifest_text(state);
  for (const auto& [key, value, good, bad, expected] : rows) {
    const std::string field = '"' + key.substr(key.rfind('.') + 1) + "\": ";
    for (const char* number : good)
      EXPECT_EQ(refusal(forged(field + value, field + number, text)), "") << key << " " << number;
    for (const char* number : bad)
      EXPECT_EQ(refusal(forged(field + value, field + number, text)),
                fmt::format("m.json: manifest.{} is not {}", key, expected));
  }
}

/// Older programs read what version 1 can say: momentum, or nothing.
TEST(ManifestTest, VersionIsTheOldestThatCanSayIt) {
  using Names = std::vector<std::string>;
  Manifest manifest = read_manifest(manifest_text(), "m.json");
  const auto version_now = [&] { return nlohmann::json::parse(write_manifest(manifest)).at("version"); };
  for (const auto& [buffers, version] :
       {std::pair{Names{"momentum"}, 1}, {Names{}, 1}, {Names{"exp_avg", "exp_avg_sq"}, 2}}) {
    manifest.optimizer_buffers = buffers;
    EXPECT_EQ(version_now(), version);
    EXPECT_EQ(read_manifest(write_manifest(manifest), "m.json"), manifest);
  }
  manifest.facts.kept = {{"bn.running_mean", {2}}};
  EXPECT_EQ(version_now(), 3);
}

TEST(ManifestTest, BuffersThatAreNoNamesAreRefused) {
  const std::string key = R"("optimizer_buffers": [
  "momentum"
 ])";
  for (const char* other :
       {R"("momentum")", "[1]", R"([""])", R"(["a", "a"])", R"(["../a"])", R"(["A"])", "{}",
        R"(["a","b","c","d","e","f","g","h","i","j","k","l","m","n","o","p","q"])"}) {
    const std::string why = refusal(forged(key, R"("optimizer_buffers": )" + std::string(other)));
    EXPECT_TRUE(why.starts_with("m.json: manifest.optimizer_buffers is not a list")) << other << ": " << why;
  }
  const char* const sixteen = R"(["a","b","c","d","e","f","g","h","i","j","k","l","m","n","o","p"])";
  EXPECT_EQ(refusal(forged(key, R"("optimizer_buffers": )" + std::string(sixteen))), "");
}

TEST(ManifestTest, OtherVersionsAreRefusedByTheirNumbers) {  // not as damage
  for (const int version : {0, 4})
    EXPECT_EQ(refusal<ConfigError>(forged(R"("version": 1)", fmt::format(R"("version": {})", version))),
              fmt::format("m.json: format version {}, this program reads versions 1 to 3; use the release "
                          "that wrote it",
                          version));
  const std::string arithmetic = R"(
 "arithmetic": {
  "version": 2,
  "since": 0
 },)";
  std::string later = arithmetic;
  later.replace(later.find('2'), 1, "4");
  for (const auto& [by, number] : {std::pair{std::string(), "1"}, {later, "4"}})
    EXPECT_EQ(refusal<ConfigError>(forged(arithmetic, by)),
              fmt::format("m.json: its steps are of arithmetic {}, this program reads 2 and 3; use the "
                          "release that wrote it",
                          number));
  later.replace(later.find('4'), 1, "3");
  EXPECT_EQ(refusal(forged(arithmetic, later)), "");
}

TEST(ManifestTest, AccuracyOfAnotherStepIsRefused) {
  CheckpointState state = make_state(12);
  state.facts.test_accuracy = 0.75;
  const std::string text = manifest_text(state);
  EXPECT_EQ(read_manifest(text, "m.json").facts.test_accuracy, 0.75);
  EXPECT_EQ(refusal(forged("\"test_step\": 12", "\"test_step\": 11", text)),
            "m.json: manifest.test_step is not its own step");
  for (const double accuracy : {0.0, 1.0}) {
    state.facts.test_accuracy = accuracy;
    EXPECT_EQ(read_manifest(manifest_text(state), "m.json").facts.test_accuracy, accuracy);
  }
}

TEST(ManifestTest, WhatARunIsJudgedByComesBack) {
  for (const auto& patience : {CheckpointPatience{0.75, 3, 6}, CheckpointPatience{}}) {
    CheckpointState state = make_state(12);
    EXPECT_EQ(state.facts.accuracy(), state.facts.test_accuracy);
    state.facts.validation_accuracy = 0.25;
    state.facts.patience = patience;
    const CheckpointFacts facts = read_manifest(manifest_text(state), "m.json").facts;
    EXPECT_EQ(facts.accuracy(), 0.25);
    EXPECT_EQ(facts.patience, patience);
  }
}

TEST(CheckpointPatienceTest, CountsEvaluationsWithoutABetterAccuracy) {
  CheckpointPatience patience;
  for (const auto& [accuracy, best, without] : std::vector<std::tuple<double, double, int>>{
           {0, 0, 0}, {0.5, 0.5, 0}, {0.5, 0.5, 1}, {0.25, 0.5, 2}, {0.75, 0.75, 0}}) {
    patience.count(accuracy);
    EXPECT_EQ(patience, (CheckpointPatience{best, without, 0}));
  }
}

}  // namespace
}  // namespace lockstep
