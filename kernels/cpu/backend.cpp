// kernels/cpu/backend.cpp -- makes the cpu backend and names its target.
#include "kernels/cpu/backend.hpp"

#include <oneapi/dnnl/dnnl.h>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/backend.cpp"
// foreach_target.h must come before the others.
// clang-format off
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace shoal::kernels::cpu::HWY_NAMESPACE {

const char* target_name() {
  return hwy::TargetName(HWY_TARGET);
}

} // namespace shoal::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace shoal::kernels {

namespace cpu {

HWY_EXPORT(target_name);

cpu_backend::cpu_backend(thread_team& team) : team_(team) {
  // Otherwise each operation would query the processor until one has run.
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

std::string cpu_backend::name() const {
  std::string name{"cpu "};
  name += HWY_DYNAMIC_DISPATCH(target_name)();
  const std::string more = to_string(usable_features());
  return more.empty() ? name : name + " " + more;
}

std::string cpu_backend::libraries() const {
  const dnnl_version_t* const v = dnnl_version();
  const auto number = [](auto n) { return std::to_string(n); };
  return "oneDNN " + number(v->major) + "." + number(v->minor) + "."
         + number(v->patch) + ", Highway " + number(HWY_MAJOR) + "."
         + number(HWY_MINOR) + "." + number(HWY_PATCH);
}

} // namespace cpu

std::unique_ptr<backend> make_cpu_backend(thread_team& team) {
  return std::make_unique<cpu::cpu_backend>(team);
}

} // namespace shoal::kernels
#endif
