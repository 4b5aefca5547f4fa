// runtime/core/errc.cpp -- the texts for runtime::errc.
#include "runtime/core/errc.hpp"

namespace shoal::runtime {

namespace {

class category final : public std::error_category {
public:
  const char* name() const noexcept override { return "runtime"; }
  std::string message(int value) const override {
    switch (static_cast<errc>(value)) {
    case errc::ok:
      return "no error";
    case errc::corrupt:
      return "corrupt bytes";
    case errc::too_large:
      return "too large";
    case errc::unknown:
      return "unknown to this version";
    case errc::not_found:
      return "not found";
    case errc::refused:
      return "refused";
    case errc::no_node:
      return "no node answers";
    case errc::timed_out:
      return "no answer in time";
    case errc::lost:
      return "connection lost";
    case errc::no_quorum:
      return "too few voters are in contact";
    case errc::not_regular:
      return "not a regular file";
    }
    return "unknown error";
  }
};

} // namespace

const std::error_category& runtime_category() noexcept {
  static const category instance;
  return instance;
}

} // namespace shoal::runtime
