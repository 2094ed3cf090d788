// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// kernel_table PROGRAM [EARLIER]: what each kernel of a program for GPUs takes, as a table in Markdown.
/// Beside what it took in an earlier version, where they differ. Needs neither a GPU nor NVIDIA's tools.
#include "tests/kernels/machine_code/program.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::machine_code {
namespace {

/// Variants of one kernel, by compute capability.
using Kernels = std::map<int, const CubinKernel*>;

/// Without parameters, unless another kernel has the same name and template arguments.
std::string short_name(const std::string& name) {
  return name.substr(0, name.find('('));
}

std::map<std::string, Kernels> by_name(const Program& program) {
  std::set<std::string> symbols;  // each once, whatever the number of front ends
  for (const PtxKernel& kernel : program.ptx) symbols.insert(kernel.symbol);
  std::map<std::string, int> uses;
  for (const std::string& symbol : symbols) ++uses[short_name(readable(symbol))];
  std::map<std::string, Kernels> kernels;
  for (const CubinKernel& kernel : program.cubins) {
    const std::string name = readable(kernel.symbol);
    kernels[uses[short_name(name)] > 1 ? name : short_name(name)][kernel.capability] = &kernel;
  }
  return kernels;
}

std::string change(int before, int now) {
  return before == now ? std::to_string(now) : std::to_string(before) + " → " + std::to_string(now);
}

std::string loop_text(const LoopCost& cost) {
  return std::to_string(cost.instructions) + (cost.fmas > 0 ? " / " + std::to_string(cost.fmas) : "");
}

std::string change(const LoopCost& before, const LoopCost& now) {
  const std::string a = loop_text(before), b = loop_text(now);
  return a == b ? b : a + " → " + b;
}

/// More than 5 % worse.
struct Worse {
  bool registers, warps = false, loop;

  Worse(const CubinKernel& before, const CubinKernel& now)
      : registers(now.registers > 1.05 * before.registers),
        loop(loop_cost(now).per_fma() > 1.05 * loop_cost(before).per_fma()) {
    for (int size = 1; size <= warps_of_largest_block(before); ++size)
      warps = warps || resident_warps(now, size) < 0.95 * resident_warps(before, size);
  }
  std::string text() const {
    std::string list;
    for (const auto& [is_worse, what] :
         {std::pair{registers, "registers"}, {warps, "warps"}, {loop, "loop"}}) {
      if (is_worse) list += (list.empty() ? "" : ", ") + std::string(what);
    }
    return list;
  }
};

bool is_same(const CubinKernel& before, const CubinKernel& now) {
  const LoopCost a = loop_cost(before), b = loop_cost(now);
  return before.registers == now.registers && before.stack_bytes == now.stack_bytes &&
         a.instructions == b.instructions && a.fmas == b.fmas;
}

std::string row(const std::string& name, const CubinKernel& before, const CubinKernel& now) {
  const int warps = warps_of_largest_block(before);
  return "| `" + name + "` | " + std::to_string(now.capability / 10) + "." +
         std::to_string(now.capability % 10) + " | " + change(before.registers, now.registers) + " | " +
         change(before.stack_bytes, now.stack_bytes) + " | " +
         change(resident_warps(before, warps), resident_warps(now, warps)) + " | " +
         change(loop_cost(before), loop_cost(now)) + " | " + Worse(before, now).text() + " |\n";
}

/// @param earlier  the program itself for a table of all kernels as they are
std::string table(const Program& program, const Program& earlier, bool only_changed) {
  std::string text =
      "| kernel | for | registers | stack, bytes | warps | loop / fma in it | more than 5 % worse |\n"
      "|---|---|---|---|---|---|---|\n";
  const auto before = by_name(earlier);
  int same = 0, added = 0;
  for (const auto& [name, kernels] : by_name(program)) {
    const auto found = before.find(name);
    for (const auto& [capability, kernel] : kernels) {
      if (found == before.end() || found->second.count(capability) == 0) {
        ++added;
      } else if (only_changed && is_same(*found->second.at(capability), *kernel)) {
        ++same;
      } else {
        text += row(name, *found->second.at(capability), *kernel);
      }
    }
  }
  if (!only_changed) return text;
  return text + "\nThe same in all of this: " + std::to_string(same) + "; new: " + std::to_string(added) +
         ".\n";
}

int run(int count, char** arguments) {
  if (count < 2 || count > 3) {
    std::fputs("usage: kernel_table PROGRAM [EARLIER]\n", stderr);
    return 2;
  }
  for (int i = 1; i < count; ++i) {
    if (std::filesystem::is_regular_file(arguments[i])) continue;
    std::fprintf(stderr, "kernel_table: no program %s: launch/build\n", arguments[i]);
    return 66;
  }
  const Program program = read_program(arguments[1]);
  const Program earlier = count == 3 ? read_program(arguments[2]) : program;
  std::fputs(table(program, earlier, count == 3).c_str(), stdout);
  return 0;
}

}  // namespace
}  // namespace lockstep::machine_code

int main(int count, char** arguments) {
  try {
    return lockstep::machine_code::run(count, arguments);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "kernel_table: %s\n", error.what());
    return 70;
  }
}
