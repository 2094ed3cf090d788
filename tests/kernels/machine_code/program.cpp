// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "tests/kernels/machine_code/program.hpp"

#include "tests/support/prelude.hpp"

namespace lockstep::machine_code {

namespace {

std::string contents_of(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) throw std::runtime_error("cannot read " + file.string());
  return {std::istreambuf_iterator<char>(stream), {}};
}

template <typename T>
void append(std::vector<T>& to, std::vector<T> from) {
  std::move(from.begin(), from.end(), std::back_inserter(to));
}

}  // namespace

const PtxKernel* Program::ptx_of(const CubinKernel& kernel) const {
  const PtxKernel* newest = nullptr;
  for (const PtxKernel& one : ptx) {
    const bool may_be = one.symbol == kernel.symbol && one.capability <= kernel.capability;
    if (may_be && (newest == nullptr || one.capability > newest->capability)) newest = &one;
  }
  return newest;
}

Program read_program(const std::filesystem::path& file) {
  Program program;
  for (const Image& image : images_of(contents_of(file))) {
    if (image.kind == ImageKind::kCubin) {
      append(program.cubins, kernels_of_cubin(image.bytes, image.capability));
    } else {
      std::vector<PtxKernel> kernels = kernels_of_ptx(image.bytes);
      for (PtxKernel& kernel : kernels) kernel.capability = image.capability;
      append(program.ptx, std::move(kernels));
      program.ptx_options.push_back(image.options);
      if (std::find(program.ptx_for.begin(), program.ptx_for.end(), image.capability) ==
          program.ptx_for.end())
        program.ptx_for.push_back(image.capability);
    }
  }
  return program;
}

namespace {

/// Demands of a kernel's PTX.
struct Demand {
  bool fma32, fma64, quotient32, quotient64, root32, root64, integer_quotient, narrowing;

  explicit Demand(const PtxKernel& ptx)
      : fma32(ptx.count("fma.rn.f32") > 0),
        fma64(ptx.count("fma.rn.f64") > 0),
        quotient32(ptx.count("div.rn.f32") + ptx.count("rcp.rn.f32") > 0),
        quotient64(ptx.count("div.rn.f64") + ptx.count("rcp.rn.f64") > 0),
        root32(ptx.count("sqrt.rn.f32") > 0),
        root64(ptx.count("sqrt.rn.f64") > 0),
        integer_quotient(ptx.count("div.s") + ptx.count("div.u") + ptx.count("rem.s") + ptx.count("rem.u") >
                         0),
        narrowing(ptx.count("cvt.rn.f32.f64") > 0) {}
};

bool may_approximate(Approximation function, const Demand& demand) {
  switch (function) {
    case Approximation::kRcp:
      return demand.quotient32 || demand.integer_quotient;
    case Approximation::kRsq:
      return demand.root32;
    case Approximation::kRcp64:
      return demand.quotient64;
    case Approximation::kRsq64:
      return demand.root64;
  }
  return false;
}

bool adds_nothing(const Instruction& add) {
  return add.second_operand() == kZeroRegister || add.third_operand() == kZeroRegister;
}

/// Moves a constant: -0 times 0, plus the constant.
bool is_move(const Instruction& hfma2) {
  return hfma2.first_operand() == kZeroRegister && hfma2.third_operand() == kZeroRegister;
}

/// True for integers of 32 or 64 bits: u32, s32, u64, s64.
bool is_integer(unsigned atomic_type) {
  return atomic_type <= 2 || atomic_type == 5;
}

/// Why an instruction of the kernel itself may not be; empty, if it may.
std::string forbidden(const Instruction& instruction, const Demand& demand) {
  if (name_of(instruction.operation()).empty()) return "an operation that this test does not know";
  const bool sequence32 = demand.quotient32 || demand.root32, sequence64 = demand.quotient64 || demand.root64;
  switch (instruction.operation()) {
    case Operation::kFfma:
      if (!demand.fma32 && !sequence32 && !sequence64) return "fused, where PTX is not";
      break;
    case Operation::kDfma:
      if (!demand.fma64 && !sequence64) return "fused, where PTX is not";
      break;
    case Operation::kMufu:
      if (!may_approximate(instruction.approximation(), demand)) return "approximate";
      return "";
    case Operation::kHfma2:
      return is_move(instruction) ? "" : "half precision";
    case Operation::kF2i:
      return instruction.flushes() && !demand.integer_quotient ? "flushes denormal numbers" : "";
    case Operation::kI2f:
      return instruction.rounds_to_nearest() || demand.integer_quotient ? "" : "not rounded to nearest";
    case Operation::kF2f64:
      return instruction.narrows() && !demand.narrowing ? "a double becomes a float" : "";
    case Operation::kAtom:
    case Operation::kAtomg:
    case Operation::kAtoms:
    case Operation::kRed:
      return is_integer(instruction.atomic_type()) ? "" : "a sum whose order is chance";
    case Operation::kFadd:
      if (instruction.flushes() && adds_nothing(instruction) && sequence32) return "";
      break;
    case Operation::kFmul:
      if (instruction.flushes() && demand.root32) return "";
      break;
    case Operation::kFmnmx:
    case Operation::kFset:
    case Operation::kFsetp:
    case Operation::kFrnd:
      return instruction.flushes() ? "flushes denormal numbers" : "";
    case Operation::kDadd:
    case Operation::kDmul:
      return instruction.rounds_to_nearest() ? "" : "not rounded to nearest";
    default:
      return "";
  }
  if (instruction.operation() != Operation::kDfma && instruction.flushes()) return "flushes denormal numbers";
  return instruction.rounds_to_nearest() ? "" : "not rounded to nearest";
}

/// True for routines of ptxas that round correctly, "..._rn_noftz_f32_slowpath"; others on floats do not.
bool is_exact(std::string_view routine) {
  const auto has = [&](std::string_view part) { return routine.find(part) != std::string_view::npos; };
  const bool is_float = has("f32") || has("f64") || has("dblrcp") || has("dsqrt");
  if (!is_float) return !has("approx");  // "..._div_u64", "..._shflsync_bfly_p"
  return has("_rn_") && !has("approx") && (!has("ftz") || has("noftz"));
}

}  // namespace

std::vector<std::string> findings_in(const CubinKernel& kernel, const PtxKernel& ptx) {
  const Demand demand(ptx);
  const std::string name =
      fmt::format("{} ({}.{})", readable(kernel.symbol), kernel.capability / 10, kernel.capability % 10);
  std::vector<std::string> findings;
  for (const Routine& routine : kernel.routines) {
    if (!is_exact(routine.name))
      findings.push_back(name + ": " + routine.name + ": does not round correctly");
  }
  for (std::size_t i = 0; i < kernel.instructions.size(); ++i) {
    const Instruction& instruction = kernel.instructions[i];
    if (kernel.routine_of(i) != nullptr) continue;
    const std::string why = forbidden(instruction, demand);
    if (why.empty()) continue;
    findings.push_back(
        fmt::format("{}: instruction {}, {}: {}", name, i, name_of(instruction.operation()), why));
  }
  return findings;
}

namespace {

constexpr int kWarpSize = 32;

int pieces(int size, int piece) {
  return (size + piece - 1) / piece;
}

/// The last instruction of the loops within `loop` that this one belongs to. The one before it, if it is in none.
std::size_t end_of_inner(const std::vector<Loop>& loops, const Loop& loop, std::size_t instruction) {
  std::size_t end = instruction - 1;
  for (const Loop& inner : loops) {
    const bool is_within = inner.first > loop.first && inner.last <= loop.last;
    if (is_within && inner.contains(instruction)) end = std::max(end, inner.last);
  }
  return end;
}

LoopCost cost_of(const std::vector<Instruction>& code, const std::vector<Loop>& loops, const Loop& loop) {
  LoopCost cost;
  for (std::size_t i = loop.first; i <= loop.last; ++i) {
    const std::size_t end = end_of_inner(loops, loop, i);
    if (end == i - 1) {
      ++cost.instructions;
      cost.fmas += code[i].is(Operation::kFfma) || code[i].is(Operation::kDfma) ? 1 : 0;
    } else {
      i = end;
    }
  }
  return cost;
}

}  // namespace

LoopCost loop_cost(const CubinKernel& kernel) {
  LoopCost most;
  const std::vector<Loop> loops = loops_of(kernel.instructions, kernel.capability);
  for (const Loop& loop : loops) {
    const LoopCost cost = cost_of(kernel.instructions, loops, loop);
    if (std::tie(cost.fmas, cost.instructions) > std::tie(most.fmas, most.instructions)) most = cost;
  }
  return most;
}

int resident_warps(const CubinKernel& kernel, int warps) {
  // Compute capability 8.0 and 9.0. A quarter of a multiprocessor has 16,384 registers, dealt out to warps
  // eight a thread at a time.
  constexpr int kQuarters = 4, kRegisters = 16384, kMostWarps = 64, kMostBlocks = 32;
  const int of_warp = pieces(std::max(kernel.registers, 1), 8) * 8 * kWarpSize;
  const int room = std::min(kMostWarps, kQuarters * (kRegisters / of_warp));
  return std::min(kMostBlocks, room / warps) * warps;
}

int warps_of_largest_block(const CubinKernel& kernel) {
  return kernel.most_threads > 0 ? pieces(kernel.most_threads, kWarpSize) : 8;
}

}  // namespace lockstep::machine_code
