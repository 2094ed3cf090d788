// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Stands in for a profiler: NVTX loads it by $NVTX_INJECTION64_PATH. It appends "begin NAME" and "end" to the file
/// that $LOCKSTEP_NVTX_FILE names.
#include "tests/support/prelude.hpp"

#include <fcntl.h>
#include <nvtx3/nvToolsExt.h>
#include <unistd.h>

namespace {

int append(const std::string& line) {
  static const int file =
      open(std::getenv("LOCKSTEP_NVTX_FILE"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  return write(file, line.data(), line.size()) == static_cast<ssize_t>(line.size()) ? 0 : -1;
}

int begin(const char* name) {
  return append(std::string("begin ") + name + "\n");
}

int end() {
  return append("end\n");
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(
    NvtxGetExportTableFunc_t table_of) {
  const auto* callbacks = static_cast<const NvtxExportTableCallbacks*>(table_of(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable functions = nullptr;
  unsigned int size = 0;
  if (callbacks == nullptr || callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &functions, &size) == 0)
    return 0;
  *functions[NVTX_CBID_CORE_RangePushA] = reinterpret_cast<NvtxFunctionPointer>(begin);
  *functions[NVTX_CBID_CORE_RangePop] = reinterpret_cast<NvtxFunctionPointer>(end);
  return 1;
}
