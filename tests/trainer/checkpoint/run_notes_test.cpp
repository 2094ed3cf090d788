// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Notes of a run's directory: checkpoints in doubt, and how the last start stands.
#include "common/error.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "tests/trainer/checkpoint/checkpoint_support.hpp"
#include "trainer/checkpoint/directory.hpp"
#include "trainer/checkpoint/run_status.hpp"

namespace lockstep {
namespace {

TEST(DoubtTest, CheckpointsAfterTheLastSureStepAreInDoubt) {
  RunEnv env;
  for (const std::int64_t step : {1, 2, 3}) save_checkpoint(env, "run", make_state(step));
  EXPECT_FALSE(read_doubt(env, "run"));
  EXPECT_EQ(sure_checkpoints(env, "run").size(), 3U);
  write_doubt(env, "run", {.sure_step = 2, .found_step = 5, .what = "rank 1 erred"});
  EXPECT_EQ(nlohmann::json::parse(text_of("run/doubt.json", env)),
            nlohmann::json::parse(R"({"format": "lockstep doubt", "version": 1, "sure_step": 2,
                "found_step": 5, "what": "rank 1 erred"})"));
  EXPECT_EQ(read_doubt(env, "run")->sure_step, 2);
  const auto sure = sure_checkpoints(env, "run");
  ASSERT_EQ(sure.size(), 2U);
  EXPECT_EQ(sure.front().step, 2);
  write_doubt(env, "run", {.sure_step = 1, .found_step = 5, .what = "rank 1 erred"});
  std::string told;
  EXPECT_EQ(find_latest(env, "run", [&](const std::string& line) { told += line; })->state.facts.step, 1);
  EXPECT_EQ(
      told,
      "run: newer checkpoints are in doubt and passed over: they were saved after step 1, and at step 5 "
      "rank 1 erred");
  write_doubt(env, "run", {.sure_step = 3, .found_step = 5, .what = "rank 1 erred"});
  EXPECT_EQ(require_sure_checkpoint(env, "run"), "");
  write_doubt(env, "run", {.sure_step = 0, .found_step = 5, .what = "rank 1 erred"});
  EXPECT_EQ(message_of<DataError>([&] { require_sure_checkpoint(env, "run"); }),
            "run: all its checkpoints are in doubt: they were saved after step 0, and at step 5 rank 1 "
            "erred. Begin anew with run.resume=never (previous-N keeps what is there), or name one all the "
            "same, such as run/checkpoints/step-00000003");
  const MemoryDisk in_doubt = env.disk();
  env.start_trace();
  for (int time = 0; time < 2; ++time) remove_doubt(env, "run");
  EXPECT_FALSE(read_doubt(env, "run"));
  EXPECT_EQ(after_power_loss(in_doubt, env.trace(), {}).find("run/doubt.json"), -1);
}

TEST(DoubtTest, ADamagedRecordOfDoubtIsNamed) {
  RunEnv env;
  const auto put = [&](const std::string& what, const std::string& by) {
    std::string text =
        R"({"format": "lockstep doubt", "version": 1, "sure_step": 0, "found_step": 5, "what": "x"})";
    text.replace(text.find(what), what.size(), by);
    env.remove_file("run/doubt.json");
    write_synced(env, "run/doubt.json", std::as_bytes(std::span(text)));
  };
  put("1", "1");
  EXPECT_TRUE(read_doubt(env, "run"));
  const std::pair<const char*, const char*> damages[] = {
      {"1", "1.5"}, {"0", "-1"}, {"0", "0.5"}, {"5", "null"}, {"\"x\"", "7"}, {"lockstep doubt", "other"},
      {"}", ""}};
  for (const auto& [what, by] : damages) {
    put(what, by);
    EXPECT_EQ(
        message_of<DataError>([&] { read_doubt(env, "run"); }),
        "run/doubt.json: is damaged: it listed the doubtful checkpoints of this run, since numbers of a rank "
        "were wrong; remove it if you are sure of them ('lockstep prove' tells)");
  }
  put("1", "2");
  EXPECT_EQ(message_of<ConfigError>([&] { read_doubt(env, "run"); }),
            "run/doubt.json: format version 2, this program reads version 1; use the release that wrote it");
}

TEST(RunStatusTest, AStatusComesBackAsItWasWritten) {
  RunEnv env;
  EXPECT_FALSE(read_status(env, "run"));
  write_status(env, "run", {.state = "failed", .step = 7, .exclude_hosts = {"node1", "node2"}});
  const std::string text = text_of("run/status.json", env);
  EXPECT_EQ(nlohmann::json::parse(text),
            nlohmann::json::parse(
                R"({"version": 1, "state": "failed", "step": 7, "exclude_hosts": ["node1", "node2"]})"));
  const auto status = read_status(env, "run");
  ASSERT_TRUE(status);
  write_status(env, "run", *status);
  EXPECT_EQ(text_of("run/status.json", env), text);
  std::string later = text;
  later[later.find('1')] = '2';
  replace_file(env, "run/status.json", std::as_bytes(std::span(later)));
  EXPECT_FALSE(read_status(env, "run")) << "of a later version";
}

}  // namespace
}  // namespace lockstep
