// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The program, in this process.
#pragma once

#include "tests/support/prelude.hpp"
#include "trainer/commands/command_line.hpp"

namespace lockstep {

struct Printed {
  std::string out, err;
};

inline Printed printed_by(const std::function<void()>& call) {
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  call();
  std::string out = ::testing::internal::GetCapturedStdout();
  return {std::move(out), ::testing::internal::GetCapturedStderr()};
}

/// Runs the program with these words. @returns its exit code
inline int run_program(std::vector<std::string> words) {
  words.insert(words.begin(), "lockstep");
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  return run_command_line(static_cast<int>(words.size()), arguments.data());
}

/// Both outputs of the program, which must end with this exit code.
inline Printed said_to(const std::vector<std::string>& words, int expected_code = 0) {
  int code = -1;
  Printed printed = printed_by([&] { code = run_program(words); });
  EXPECT_EQ(code, expected_code) << printed.err;
  return printed;
}

/// Its standard output.
inline std::string answer_to(const std::vector<std::string>& words, int expected_code = 0) {
  return said_to(words, expected_code).out;
}

}  // namespace lockstep
