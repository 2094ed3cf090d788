// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Instructions for Intel's AMX, as compilers made them. All that the engine "amx" needs, and nowhere but in
/// it, since elsewhere no permission was asked for and no tiles are configured.
#include "tests/support/prelude.hpp"

namespace lockstep::machine_code {
namespace {

/// By instruction: the functions that have it, each behind its object file.
std::map<std::string, std::set<std::string>> instructions_for_tiles() {
  std::map<std::string, std::set<std::string>> found;
  FILE* const pipe = popen("objdump -d --no-show-raw-insn " LOCKSTEP_CPU_KERNELS " 2> /dev/null", "r");
  std::string object, function;
  char line[4096];
  while (pipe != nullptr && std::fgets(line, sizeof line, pipe) != nullptr) {
    const std::string text(line);
    if (const auto end = text.find(":     file format"); end != std::string::npos)
      object = text.substr(0, end);
    if (text[0] == '0') function = text.substr(0, text.find_last_not_of('\n') + 1);
    const auto begin = text.find(":\t");
    if (begin == std::string::npos) continue;
    const std::string name = text.substr(begin + 2, text.find_first_of(" \n", begin) - begin - 2);
    if (name.find("tile") != std::string::npos || name.rfind("tdp", 0) == 0)
      found[name].insert(object + " " + function);
  }
  if (pipe != nullptr) pclose(pipe);
  return found;
}

TEST(AmxTest, InstructionsForTilesAreTheEnginesAlone) {
#if !defined(__x86_64__) || !defined(__linux__)
  GTEST_SKIP() << "AMX is of x86-64";
#else
  if (std::system("objdump --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "there is no objdump";
  const auto found = instructions_for_tiles();
  std::set<std::string> names;
  for (const auto& [name, functions] : found) {
    names.insert(name);
    for (const std::string& function : functions) {
      EXPECT_EQ(function.rfind("amx.cpp.o ", 0), 0U) << name << " in " << function;
      EXPECT_EQ(function.find("is_here"), std::string::npos) << name << " in " << function;
    }
  }
  EXPECT_EQ(names, (std::set<std::string>{"ldtilecfg", "tdpbssd", "tileloadd", "tilerelease", "tilestored",
                                          "tilezero"}));
#endif
}

}  // namespace
}  // namespace lockstep::machine_code
