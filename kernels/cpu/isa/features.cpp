// kernels/cpu/isa/features.cpp -- queries the processor and the system.
#include "kernels/cpu/isa/features.hpp"

#include <hwy/highway.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace shoal::kernels::cpu {

namespace {

features& limit() {
  static features f{true, true, true};
  return f;
}

#if defined(__x86_64__)

/// Asks the system for the tiles' 8 KiB of registers (Linux 5.16).
bool tiles_allowed() {
  constexpr long arch_req_xcomp_perm = 0x1023;
  constexpr long xfeature_xtiledata = 18;
  return ::syscall(SYS_arch_prctl, arch_req_xcomp_perm, xfeature_xtiledata)
         == 0;
}

features detect() {
  features f;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0)
    return f;
  f.vnni = (c >> 11 & 1) != 0;
  const bool amx = (d >> 22 & 1) != 0 && (d >> 24 & 1) != 0;
  if (a >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0)
    f.bf16 = (a >> 5 & 1) != 0;
  f.amx = f.bf16 && amx && tiles_allowed();
  return f;
}

#else

features detect() {
  return {};
}

#endif

} // namespace

features usable_features() {
  static const features here = detect();
  // Highway has checked that the system saves the registers of AVX-512.
  if ((hwy::SupportedTargets() & HWY_AVX3) == 0)
    return {};
  const features most = limit();
  return {here.vnni && most.vnni, here.bf16 && most.bf16,
          here.amx && most.bf16 && most.amx};
}

void limit_features(features most) {
  limit() = most;
}

std::string to_string(features f) {
  std::string out;
  for (auto [has, name] : {std::pair{f.vnni, "VNNI"}, std::pair{f.bf16, "BF16"},
                           std::pair{f.amx, "AMX"}})
    if (has)
      out += (out.empty() ? "" : " ") + std::string(name);
  return out;
}

} // namespace shoal::kernels::cpu
