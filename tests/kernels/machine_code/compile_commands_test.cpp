// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The CPU's side of "one arithmetic on every device". No source of this build is compiled with leave to
/// fuse, to reorder or to approximate, and the flags do keep the compiler from it.
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::machine_code {
namespace {

struct Command {
  std::string text, file;
};

std::vector<Command> compile_commands() {
  std::ifstream file(LOCKSTEP_BUILD_FOLDER "/compile_commands.json");
  std::vector<Command> commands;
  for (const auto& entry : nlohmann::json::parse(file))
    commands.push_back({entry.at("command").get<std::string>(), entry.at("file").get<std::string>()});
  return commands;
}

bool has(const Command& command, const std::string& option) {
  return (" " + command.text + " ").find(" " + option + " ") != std::string::npos;
}

bool is_for_gpus(const Command& command) {
  return command.text.find("nvcc ") != std::string::npos;
}

bool is_cpp(const Command& command) {
  return !is_for_gpus(command) && !command.file.ends_with(".c");
}

class CompileCommandsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(LOCKSTEP_BUILD_FOLDER "/compile_commands.json"))
      GTEST_SKIP() << "this build folder has no compile_commands.json (CMAKE_EXPORT_COMPILE_COMMANDS)";
  }
};

TEST_F(CompileCommandsTest, NoSourceMayBeFusedReorderedOrApproximated) {
  const std::vector<Command> commands = compile_commands();
  EXPECT_GT(commands.size(), 50U);
  for (const Command& command : commands) {
    EXPECT_TRUE(!is_cpp(command) || has(command, "-ffp-contract=off")) << command.text;
    for (const char* option :
         {"-ffast-math", "-Ofast", "-funsafe-math-optimizations", "-fassociative-math", "-freciprocal-math",
          "-ffinite-math-only", "-fno-signed-zeros", "-fsingle-precision-constant", "-ffp-contract=fast",
          "-ffp-contract=on", "-mdaz-ftz"})
      EXPECT_FALSE(has(command, option)) << command.text;
  }
}

TEST_F(CompileCommandsTest, NoKernelForGpusMayBeFusedOrApproximated) {
  int count = 0;
  for (const Command& command : compile_commands()) {
    if (!is_for_gpus(command)) continue;
    ++count;
    EXPECT_TRUE(has(command, "--fmad=false")) << command.text;
    for (const char* option :
         {"-use_fast_math", "--use_fast_math", "-ftz=true", "--ftz=true", "-prec-div=false",
          "--prec-div=false", "-prec-sqrt=false", "--prec-sqrt=false", "-fmad=true", "--fmad=true"})
      EXPECT_FALSE(has(command, option)) << command.text;
  }
  if (count == 0) GTEST_SKIP() << "built without CUDA";
}

std::string output_of(const std::string& command) {
  std::string output;
  FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return output;
  char part[4096];
  while (const std::size_t size = std::fread(part, 1, sizeof part, pipe)) output.append(part, size);
  pclose(pipe);
  return output;
}

/// Assembly that this command's flags make of a * b + c, with all instructions of a processor.
std::string assembly_of_sum(const Command& command, const std::string& more_flags) {
  std::istringstream words(command.text);
  std::string flags, compiler;
  for (std::string word; words >> word;) {
    if (word[0] != '-' && (word.ends_with("++") || word.find("++-") != std::string::npos)) compiler = word;
    if (word.rfind("-f", 0) == 0 || word.rfind("-O", 0) == 0 || word.rfind("-m", 0) == 0) flags += " " + word;
  }
  return output_of("echo 'float f(float a, float b, float c) { return a * b + c; }' | " + compiler + flags +
                   " -O2 " + more_flags + " -S -o - -x c++ - 2>&1");
}

TEST_F(CompileCommandsTest, FlagsOfTheCpuKernelsKeepTheCompilerFromFusing) {
#if !defined(__x86_64__)
  GTEST_SKIP() << "looks at x86-64 assembly";
#else
  const std::vector<Command> commands = compile_commands();
  const auto kernels = std::find_if(commands.begin(), commands.end(), [](const Command& command) {
    return is_cpp(command) && command.text.find("lockstep_kernels_cpu.dir") != std::string::npos;
  });
  ASSERT_NE(kernels, commands.end());
  const std::string apart = assembly_of_sum(*kernels, "-mfma"),
                    fused = assembly_of_sum(*kernels, "-mfma -ffp-contract=fast");
  EXPECT_TRUE(contains(apart, {"mulss"}));
  EXPECT_EQ(apart.find("fmadd"), std::string::npos) << apart;
  EXPECT_TRUE(contains(fused, {"fmadd"}));  // So the compiler would, if it might.
#endif
}

}  // namespace
}  // namespace lockstep::machine_code
