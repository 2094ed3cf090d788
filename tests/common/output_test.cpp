// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Bars, errors and standard streams that fail, byte by byte.
#include "common/output.hpp"

#include "common/error.hpp"
#include "tests/support/drawn_text.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/set_variable.hpp"
#include "tests/support/small_disk.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace lockstep {
namespace {

using test::SetVariable;

/// Returns the text that an action writes to standard output, a file meanwhile.
std::string captured(const std::function<void()>& action) {
  const SetVariable alone("OMPI_COMM_WORLD_RANK", nullptr);
  ::testing::internal::CaptureStdout();
  action();
  return ::testing::internal::GetCapturedStdout();
}

std::string error_of(const std::string& message) {
  ::testing::internal::CaptureStderr();
  print_error(message);
  return ::testing::internal::GetCapturedStderr();
}

TEST(OutputTest, ErrorsAreOneLineThatATerminalDoesNotObey) {
  EXPECT_EQ(error_of("a\nb\x1b[0m"), "lockstep: a\\x0ab\\x1b[0m\n");
  EXPECT_EQ(captured([] { print("{}: {}\n", "a", "\x1b"); }), "a: \\x1b\n");
}

TEST(OutputTest, AStreamThatRefusesTextIsAnError) {
  std::FILE* const full = std::fopen("/dev/full", "w");
  ASSERT_NE(full, nullptr);
  std::setvbuf(full, nullptr, _IONBF, 0);
  EXPECT_THROW(write_printable(full, "x"), std::system_error);
  std::fclose(full);
}

TEST(OutputTest, AFileTakesAnyWidthAndAPageIsAsWideAsColumnsSays) {
  std::vector<int> widths;
  int any = 0, last = 0;
  captured([&] {
    for (const char* columns : {"", "100", "5", "-3", "20000", "many"}) {
      const SetVariable variable("COLUMNS", columns);
      widths.push_back(page_columns());
    }
    any = output_columns();
    last = last_output_columns();
  });
  EXPECT_EQ(widths, (std::vector{80, 100, 20, 80, 10000, 80}));
  EXPECT_EQ(any, kAnyWidth);
  EXPECT_EQ(last, kAnyWidth);
}

TEST(OutputTest, ATerminalThatDoesNotKnowItsWidthHasThatOfColumns) {
  const SetVariable variable("COLUMNS", "100");
  for (const auto& [told, expected] : {std::pair(50, 49), {0, 99}}) {
    int columns = 0;
    test::drawn_by(static_cast<std::uint16_t>(told), [&] { columns = output_columns(); });
    EXPECT_EQ(columns, expected);
  }
}

/// mpirun, its parent, gives it a terminal of another width.
TEST(OutputTest, ARankOfMpirunIsSeenOnTheTerminalOfItsParent) {
  int status = -1;
  test::drawn_by(50, [&] {
    if (const pid_t child = ::fork(); child != 0) {
      ::waitpid(child, &status, 0);
      return;
    }
    int columns = 0;
    test::drawn_by(30, [&] {
      const SetVariable rank("OMPI_COMM_WORLD_RANK", "0");
      columns = output_columns();
    });
    ::_exit(columns);
  });
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 49);
}

TEST(OutputTest, TheFirstVariableOfTheLocaleThatIsSetCounts) {
  struct Case {
    const char *all, *type, *lang, *term;
    bool unicode;
  };
  for (const Case& each : {Case{"C.UTF-8", nullptr, nullptr, "xterm", true},
                           {nullptr, "", "de_DE.utf8", nullptr, true},
                           {nullptr, "en_US.UTF-8", "C", "xterm", true},
                           {"C", nullptr, "C.UTF-8", "xterm", false},
                           {"", "C", "C.UTF-8", "xterm", false},
                           {nullptr, nullptr, nullptr, "xterm", false},
                           {"C.UTF-8", nullptr, nullptr, "dumb", false}}) {
    const SetVariable all("LC_ALL", each.all), type("LC_CTYPE", each.type), lang("LANG", each.lang),
        term("TERM", each.term);
    OutputTerminal output;
    captured([&] { output = output_terminal(); });
    EXPECT_EQ(output.unicode, each.unicode);
    EXPECT_FALSE(output.is_terminal || output.redraws || output.escapes) << "it is a file";
  }
}

TEST(ProgressBarTest, IsDrawnOverWhatIsThereAndWipedBeforeAnErrorAndAtItsEnd) {
  for (const bool escapes : {false, true}) {
    const std::string wide = "epoch 1  ############............  loss 2",
                      narrow = "epoch 1  " + std::string(24, '#');
    const std::string rest = escapes ? "\033[J" : "",
                      wiped = escapes ? "\r\033[J" : "\r" + std::string(33, ' ') + "\r";
    const std::string drawn = captured([&] {
      ProgressBar progress(ProgressBar::Style::kSilent,
                           {.is_terminal = true, .redraws = true, .escapes = escapes, .unicode = false});
      EXPECT_EQ(progress.style(), ProgressBar::Style::kBar);
      EXPECT_TRUE(progress.is_due());
      progress.draw({{"epoch 1"}, {"loss 2"}}, 0.5);
      progress.draw({{"epoch 1"}}, 1);
      EXPECT_EQ(error_of("oh"), "lockstep: oh\n");
      progress.draw({{"epoch 1"}}, 1);
    });
    EXPECT_EQ(drawn, "\r" + wide + rest + "\r\r" + narrow + (escapes ? rest : std::string(8, ' ')) + "\r" +
                         wiped + "\r" + narrow + rest + "\r" + wiped);
  }
}

/// A line that is wider than the window takes several lines of it.
TEST(ProgressBarTest, IsWipedBeforeItIsDrawnInANarrowerWindow) {
  ProgressBar progress(ProgressBar::Style::kSilent,
                       {.is_terminal = true, .redraws = true, .escapes = false, .unicode = false});
  const std::string wide = "epoch 1  " + std::string(12, '#') + std::string(12, '.') + "  loss 2";
  const std::string in_60 = test::drawn_by(60, [&] { progress.draw({{"epoch 1"}, {"loss 2"}}, 0.5); });
  EXPECT_TRUE(in_60.starts_with("\r" + wide + "\r")) << in_60;
  const std::string in_30 = test::drawn_by(30, [&] {
    progress.draw({{"epoch 1"}}, 1);
    wipe_bar();
  });
  EXPECT_TRUE(
      in_30.starts_with("\r" + std::string(wide.size(), ' ') + "\r\repoch 1  " + std::string(20, '#') + "\r"))
      << in_30;
}

TEST(ProgressBarTest, PlainLinesAreWholeAndSilenceIsSilent) {
  EXPECT_EQ(captured([] {
              ProgressBar plain(ProgressBar::Style::kPlain, OutputTerminal{});
              EXPECT_EQ(plain.style(), ProgressBar::Style::kPlain);
              EXPECT_FALSE(plain.is_due()) << "in five seconds";
              plain.draw({{"epoch 1"}, {"loss 2"}}, 0.5);
              ProgressBar silent(ProgressBar::Style::kPlain, false);
              EXPECT_EQ(silent.style(), ProgressBar::Style::kSilent);
              EXPECT_FALSE(silent.is_due());
            }),
            "epoch 1  loss 2\n");
}

// In a process of their own, since standard output cannot be written afterwards.

void fill_standard_output() {
  if (std::freopen("/dev/full", "w", stdout) == nullptr) std::_Exit(3);
}

void cut_standard_output() {
  std::array<int, 2> ends{};
  std::signal(SIGPIPE, SIG_IGN);
  if (::pipe(ends.data()) != 0 || ::dup2(ends[1], STDOUT_FILENO) < 0) std::_Exit(3);
  ::close(ends[0]);
}

[[noreturn]] void write_twice(void (*spoil)()) {
  spoil();
  write_out("x");
  write_out("y");
  std::_Exit(0);
}

[[noreturn]] void finish(void (*spoil)(), bool is_flushed) {
  spoil();
  std::fputs("x", stdout);
  if (is_flushed) std::fflush(stdout);
  try {
    finish_standard_output();
  } catch (const IoError& error) {
    std::fputs(error.what(), stderr);
    std::_Exit(5);
  }
  std::_Exit(0);
}

TEST(StandardOutputDeathTest, WhatCannotBeWrittenIsSaidOnceUnlessItsReaderHasGone) {
  using ::testing::ExitedWithCode;
  EXPECT_EXIT(write_twice(fill_standard_output), ExitedWithCode(0),
              "^lockstep: warning: standard output cannot be written, going on without it: No space left on "
              "device\n$");
  EXPECT_EXIT(write_twice(cut_standard_output), ExitedWithCode(0), "^$");
  EXPECT_EXIT(finish(fill_standard_output, false), ExitedWithCode(5),
              "^standard output could not be written: No space left on device$");
  EXPECT_EXIT(finish(fill_standard_output, true), ExitedWithCode(5),
              "^standard output could not be written$");
  EXPECT_EXIT(finish(cut_standard_output, false), ExitedWithCode(0), "^$");
}

/// A pipe that nobody reads is full after 64 KiB.
[[noreturn]] void write_unread(std::size_t bytes_before, int seconds_until_dropped) {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0 || ::dup2(ends[1], STDOUT_FILENO) < 0) std::_Exit(3);
  struct sigaction action = {};
  action.sa_handler = [](int) { drop_unread_output(); };
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGALRM, &action, nullptr);
  if (seconds_until_dropped == 0)
    std::raise(SIGALRM);
  else
    ::alarm(1);
  write_out(std::string(bytes_before, 'x'));
  write_out("y");
  std::_Exit(0);
}

TEST(StandardOutputDeathTest, TextThatNobodyReadsDoesNotHoldAStopUp) {
  using ::testing::ExitedWithCode;
  EXPECT_EXIT(write_unread(1 << 20, 1), ExitedWithCode(0), "^$") << "while it writes";
  EXPECT_EXIT(write_unread(1 << 20, 0), ExitedWithCode(0), "^$");
  EXPECT_EXIT(write_unread(1 << 16, 0), ExitedWithCode(0), "^$") << "no room at all";
}

[[noreturn]] void write_where_there_is_room() {
  std::array<int, 2> ends{};
  std::fflush(stdout);
  if (::pipe(ends.data()) != 0 || ::dup2(ends[1], STDOUT_FILENO) < 0) std::_Exit(3);
  drop_unread_output();
  write_out("kept");
  ::close(ends[1]);
  ::close(STDOUT_FILENO);
  std::array<char, 8> read{};
  std::_Exit(::read(ends[0], read.data(), read.size()) == 4 ? 0 : 1);
}

TEST(StandardOutputDeathTest, TextThatThereIsRoomForIsNotDropped) {
  EXPECT_EXIT(write_where_there_is_room(), ::testing::ExitedWithCode(0), "^$");
}

/// A line of 64 MiB of text fits in no heap of malloc, and 4 MiB are left.
TEST(StandardErrorDeathTest, AnErrorThatMemoryDoesNotHoldIsAnErrorAllTheSame) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "AddressSanitizer needs more address space";
#else
  const auto print_without_memory = [] {
    const std::string text(std::size_t{64} << 20, 'x');
    const rlim_t used = 1024 * std::stoull(value_after("/proc/self/status", "VmSize:"));
    const SoftLimit space(RLIMIT_AS, used + (rlim_t{4} << 20));
    print_error(text);
    std::_Exit(0);
  };
  EXPECT_EXIT(print_without_memory(), ::testing::ExitedWithCode(0), "^lockstep: not enough memory\n$");
#endif
}

dev_t device_behind(int descriptor) {
  struct stat status {};
  return ::fstat(descriptor, &status) == 0 ? status.st_rdev : 0;
}

[[noreturn]] void close_and_open_streams(const std::vector<int>& closed) {
  struct stat null {};
  ::stat("/dev/null", &null);
  for (const int stream : closed) ::close(stream);
  open_standard_streams();
  const bool are_null =
      std::ranges::all_of(closed, [&](int stream) { return device_behind(stream) == null.st_rdev; });
  const int next = ::open("/dev/null", O_RDONLY);
  std::_Exit(are_null && next > STDERR_FILENO ? 0 : 1);
}

TEST(StandardOutputDeathTest, StreamsThatAreClosedAreOpenedAndTheOthersStay) {
  for (const std::vector<int>& closed : {std::vector{0, 1}, {1}, {2}, {0, 1, 2}})
    EXPECT_EXIT(close_and_open_streams(closed), ::testing::ExitedWithCode(0), "^$");
}

}  // namespace
}  // namespace lockstep
