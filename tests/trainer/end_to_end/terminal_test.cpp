// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Look of a training on terminals of many widths and kinds.
#include "tests/support/prelude.hpp"
#include "tests/trainer/end_to_end/program.hpp"

namespace lockstep::testing {
namespace {

constexpr const char* kUtf8 = "TERM=xterm-256color LC_ALL=C.UTF-8";

/// Long enough for a bar to be drawn a few times.
std::string training(const TemporaryDirectory& directory) {
  return "$LOCKSTEP_PROGRAM train " + write_small_job(directory) +
         " data.train_samples=8000 train.epochs=1 run.checkpoint_every_steps=0 run.dir=" +
         directory.path("a-run-directory-with-a-long-name");
}

bool is_ascii(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 128; });
}

/// Runs a training in a terminal and checks what holds in each. It ends well, and no line is too wide.
TerminalOutput expect_to_fit(const TerminalRun& run, const std::string& launcher = "") {
  const TemporaryDirectory directory;
  auto output = run_in_terminal(run, launcher + training(directory));
  const Screen screen = screen_of(output.bytes);
  EXPECT_EQ(output.exit_code, 0) << output.bytes;
  EXPECT_LT(screen.widest, run.columns) << screen.text();
  expect_words(screen.text(), {"\nepoch  1/1  ", "\nweights sha256"});
  return output;
}

TEST(TerminalTest, NoLineIsWiderThanTheTerminal) {
  for (const int columns : {40, 60, 80, 120, 200}) {
    const auto output = expect_to_fit({.columns = columns, .environment = kUtf8});
    expect_words(output.bytes, {"\repoch  1/1  ", "ETA "});  // the bar
    const auto loss = output.bytes.find("  loss ");  // the bar's mean of 512 samples, at first about ln(10)
    ASSERT_NE(loss, std::string::npos) << columns;
    EXPECT_LT(std::stod(output.bytes.substr(loss + 7)), 10) << output.bytes;
    EXPECT_EQ(output.bytes.find("━") != std::string::npos || output.bytes.find("╌") != std::string::npos,
              columns > 40);
  }
}

TEST(TerminalTest, UnderMpirunTheLaunchersTerminalCounts) {
  for (const int columns : {40, 100}) {
    const auto output =
        expect_to_fit({.columns = columns, .environment = kUtf8}, "mpirun --bind-to none -np 2 ");
    EXPECT_NE(output.bytes.find("ETA "), std::string::npos) << output.bytes;
  }
}

TEST(TerminalTest, EscapesAreForUtf8AndTerminalsThatRedrawAlone) {
  struct Kind {
    std::string environment;
    bool ascii, bar;
  };
  for (const auto& [environment, ascii, bar] : {Kind{"TERM=xterm LC_ALL=C LANG=en_US.UTF-8", true, true},
                                                {"TERM=xterm LC_CTYPE=de_DE.ISO-8859-1", true, true},
                                                {"TERM=dumb LC_ALL=C.UTF-8", true, false},
                                                {"-u TERM LC_ALL=C.UTF-8", true, false},
                                                {std::string(kUtf8) + " NO_COLOR=1", false, true}}) {
    const auto output = expect_to_fit({.columns = 80, .environment = environment});
    SCOPED_TRACE(environment + "\n" + output.bytes);
    EXPECT_EQ(output.bytes.find('\033'), std::string::npos);
    EXPECT_TRUE(!ascii || is_ascii(output.bytes));
    EXPECT_TRUE(!ascii || bar == (output.bytes.find("  #") != std::string::npos));
    EXPECT_EQ(bar, count_of("\r", output.bytes) > count_of("\r\n", output.bytes));
  }
}

TEST(TerminalTest, AWindowMayBecomeNarrowerWhileARunGoesOn) {
  // Far more epochs than it takes: the bar is drawn anew however fast the machine is.
  const TemporaryDirectory directory;
  const std::string redrawn = "\repoch  ";
  const auto output = run_in_terminal(
      {.columns = 120, .environment = kUtf8, .columns_later = 50, .resize_at = "ETA ", .stop_at = redrawn},
      training(directory) + " train.epochs=100000");
  EXPECT_EQ(output.exit_code, 75) << output.bytes;
  const std::size_t narrow_from = output.after_resize.find(redrawn);
  ASSERT_NE(narrow_from, std::string::npos) << output.bytes;
  // The line that was being drawn may still be a wide one.
  EXPECT_LT(screen_of(output.after_resize.substr(narrow_from)).widest, 50) << output.after_resize;
}

TEST(TerminalTest, ATerminalThatDoesNotKnowItsWidthHasThatOfColumns) {
  const TemporaryDirectory directory;
  const auto output =
      run_in_terminal({.columns = 0, .environment = std::string(kUtf8) + " COLUMNS=44"}, training(directory));
  EXPECT_LT(screen_of(output.bytes).widest, 44) << output.bytes;
}

TEST(TerminalTest, APipeGetsWholeLines) {
  const TemporaryDirectory directory;
  const auto output =
      run_in_terminal({.columns = 40, .environment = kUtf8}, "sh -c '" + training(directory) + " | cat'");
  expect_words(output.bytes, {"train loss", "run directory " +
                                                directory.path("a-run-directory-with-a-long-name") + "\r\n"});
  EXPECT_EQ(output.bytes.find('\033'), std::string::npos);
}

/// Tables of a run: its newest checkpoint, and the differences from its oldest.
void expect_tables_to_fit(const std::string& run) {
  std::string oldest;
  for (const auto& entry : std::filesystem::directory_iterator(run + "/checkpoints"))
    if (oldest.empty() || entry.path().string() < oldest) oldest = entry.path().string();
  for (const std::string& command : {" inspect " + run, " diff " + oldest + " " + run}) {
    const auto output = run_in_terminal({.columns = 80, .environment = kUtf8}, "$LOCKSTEP_PROGRAM" + command);
    const Screen screen = screen_of(output.bytes);
    EXPECT_LT(screen.widest, 80) << screen.text();
    EXPECT_GT(screen.lines.size(), 20U) << screen.text();
  }
}

TEST(TerminalTest, AProofHasABarOnATerminalAndNothingButItsVerdictInAPipe) {
  const TemporaryDirectory directory;
  const auto run = directory.path("run"), proof = "$LOCKSTEP_PROGRAM prove " + run;
  succeed("train " + write_small_job(directory) + " run.dir=" + run);
  for (const int columns : {40, 80}) {
    const auto output = run_in_terminal({.columns = columns, .environment = kUtf8}, proof);
    EXPECT_EQ(output.exit_code, 0) << output.bytes;
    expect_words(output.bytes, {"\rproving", " steps"});
    const std::string screen = screen_of(output.bytes).text();
    EXPECT_EQ(screen.find("proving"), std::string::npos) << "the bar is not wiped:\n" << screen;
    expect_words(screen, {"proved: steps 1 to 6\n"});
  }
  const auto by_two = run_in_terminal({.environment = kUtf8}, proof + " --ranks 2");
  expect_words(by_two.bytes, {"\rproving, part 1 of 2  "});
  const auto json = run_in_terminal({.environment = kUtf8}, proof + " --json");
  EXPECT_TRUE(json.bytes.starts_with("{")) << json.bytes;
  const auto followed =
      run_in_terminal({.environment = kUtf8}, "$LOCKSTEP_PROGRAM report " + run + " --follow");
  EXPECT_TRUE(followed.bytes.starts_with("\033[H\033[J")) << followed.bytes;
  const auto piped = run_shell(proof);
  EXPECT_EQ((piped.out + piped.err).find("proving"), std::string::npos) << piped.everything();
  expect_tables_to_fit(run);
}

TEST(TerminalTest, AnObjectForProgramsHasNoBar) {
  const auto output = run_in_terminal({.environment = kUtf8},
                                      "$LOCKSTEP_PROGRAM burn --time 0s --threads 1 --backend thread --ranks "
                                      "2 --without jobs,speed --json");
  EXPECT_TRUE(output.bytes.starts_with("{")) << output.bytes;
}

TEST(TerminalTest, ABurnOfLevel2HasTenMinutes) {
  const std::string left = " left";
  const auto output = run_in_terminal(
      {.columns = 80, .environment = kUtf8, .columns_later = 79, .resize_at = left, .stop_at = left},
      "$LOCKSTEP_PROGRAM burn --level 2 --device cpu --threads 1");
  EXPECT_EQ(output.exit_code, 75) << output.bytes;
  expect_words(output.bytes, {"  level 2  round 1  jobs  9:"});
}

TEST(TerminalTest, HelpFitsToo) {
  for (const std::string command : {"", "train ", "predict ", "bench allreduce "}) {
    for (const int columns : {60, 80}) {
      const auto output = run_in_terminal({.columns = columns, .environment = kUtf8},
                                          "$LOCKSTEP_PROGRAM " + command + "--help");
      const Screen screen = screen_of(output.bytes);
      EXPECT_LT(screen.widest, columns) << screen.text();
      EXPECT_GT(screen.lines.size(), 5U);
    }
  }
}

}  // namespace
}  // namespace lockstep::testing
